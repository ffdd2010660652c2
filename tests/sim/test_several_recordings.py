"""A replay of several recordings: each replication has the load of another one, as it was, and later ones are drawn."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from qsctl.errors import InvalidInput
from qsctl.eventlog.location import location
from qsctl.eventlog.run_folder import SERVICE_FILE
from qsctl.sim.replay.recording import read_recording
from qsctl.sim.replay.replay import recorded_scenario, replay, with_recordings
from qsctl.sim.replication import simulate_figures
from qsctl.sim.scenario.forms.text import scenario_text
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import read_scenario
from qsctl.summary.sweeps._carried import CarriedScenario

MONDAY = Path(__file__).parents[2] / "fixtures/recordings/monday"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another day: the load of Monday with a queue that takes five samples, as a run of its own."""
    folder = tmp_path_factory.mktemp("days") / "tuesday"
    replay(MONDAY, folder, overrides={"queue[Orders]/max-count": "5"})
    return folder


def both(other: Path) -> Scenario:
    return with_recordings(recorded_scenario(location(str(MONDAY))), [location(str(other))])


@pytest.mark.slow
def test_each_replication_has_the_load_of_another_recording(other: Path) -> None:
    scenario = both(other)
    assert scenario.replay is not None
    assert scenario.replay.recordings == (str(MONDAY), str(other))
    alone = [
        dataclasses.replace(
            recorded_scenario(location(str(each)), scenario.replay.service), horizon_ns=scenario.horizon_ns
        )
        for each in (MONDAY, other)
    ]
    found = [simulate_figures(scenario, number) for number in range(4)]
    assert found[0] == simulate_figures(alone[0], 0)
    assert alone[1].replay is not None
    as_it_was = dataclasses.replace(alone[1], replay=dataclasses.replace(alone[1].replay, resample_blocks=0))
    assert found[1] == simulate_figures(as_it_was, 1)
    # Behind the recordings loads are drawn, from one after the other.
    assert found[2] == simulate_figures(alone[0], 2)
    assert found[2] != found[0]
    assert found[3] != found[1]


def test_the_scenario_is_written_and_read_again_with_paths_of_its_own(other: Path, tmp_path: Path) -> None:
    scenario = both(other)
    text = scenario_text(scenario)
    assert text.count("<also ") == 1
    file = tmp_path / "scenario.xml"
    file.write_text(text)
    shutil.copy(other / SERVICE_FILE, tmp_path)
    again = read_scenario(file)
    assert again.replay is not None
    assert again.replay.recordings == (str(MONDAY), str(other))
    shutil.copytree(other, tmp_path / "moved")
    file.write_text(text.replace(str(other), "moved"))
    moved = read_scenario(file)
    assert moved.replay is not None
    assert moved.replay.recordings == (str(MONDAY), str((tmp_path / "moved").resolve()))


def test_all_recordings_travel_to_other_machines(other: Path) -> None:
    scenario = both(other)
    placed = CarriedScenario.elsewhere(scenario).placed(scenario)
    assert placed.replay is not None
    places = placed.replay.recordings
    assert len(set(places) - {str(MONDAY), str(other)}) == 2
    assert [len(read_recording(location(each)).arrivals) for each in places] == [
        len(read_recording(location(str(each))).arrivals) for each in (MONDAY, other)
    ]


def test_a_recording_of_another_service_is_refused(tmp_path: Path, other: Path) -> None:
    scenario = both(other)
    assert scenario.replay is not None
    few = dataclasses.replace(
        scenario,
        replay=dataclasses.replace(
            scenario.replay, service=dataclasses.replace(scenario.replay.service, participants=())
        ),
    )
    with pytest.raises(InvalidInput, match="which the service of the first recording lacks"):
        with_recordings(few, [location(str(other))])
