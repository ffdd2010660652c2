"""The models whose runs can be branched, and the creation of such a run."""

from __future__ import annotations

from qsctl.errors import InvalidInput
from qsctl.sim.scenario.scenario import Model, Scenario
from qsctl.sim.splitting.question import Question
from qsctl.sim.splitting.trajectory import Trajectory


def trajectory_of(scenario: Scenario, replication: int, question: Question) -> Trajectory:
    """Return a run of the scenario in its initial state.

    Raises:
        InvalidInput: runs of the model cannot be branched, or no messages come to the queue.
    """
    match scenario.model:
        case Model.SOLACE | Model.TIBCO:
            from qsctl.sim.egress.runs.trajectory import EgressTrajectory

            return EgressTrajectory(scenario, replication, question)
        case Model.SHARED_READER_QUEUE:
            from qsctl.sim.service.trajectory import ServiceTrajectory

            return ServiceTrajectory(scenario, replication, question)
        case _:
            raise InvalidInput(
                f"--rare: runs of the model {scenario.model} cannot be branched",
                remedy="Ask for rare events of a scenario of the models solace, tibco or shared_reader_queue.",
            )
