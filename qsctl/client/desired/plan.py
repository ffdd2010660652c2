"""The plan of commands that make a service's configuration equal to a file's.

Decides: the order. Changes are first, then creations, then deletions, and last creations that require a deletion: after
an interruption the existing queues work, and a new plan has the remaining steps. Each command is tried on a model of
the service: one that the service would refuse becomes an obstacle in the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from qsctl.client.desired._differences import INHERITED, other_changes, queue_changes, with_inherited
from qsctl.client.desired.steps import Action, Obstacle, Plan, PlanStep, SettingChange
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.hosted_service import HostedService
from qsctl.core.queue.change import WITHOUT_LOSS, fixed_differences
from qsctl.core.queue.hosting import queue_identifier, reply_topic, subscriber_identifier
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, SharedSubscriberSettings, queues_of
from qsctl.errors import QsctlError, Refused
from qsctl.identity import no_incarnation
from qsctl.resource import ResourceIdentifier

_REPLICATED: Final = (
    "The members of a cluster change together: use `qsctl create-subscriber` and `qsctl delete-subscriber` with a "
    "--target that means all of them"
)


@dataclass(frozen=True, slots=True)
class Wishes:
    """The changes that a plan may make.

    prune: delete queues that are not in the file. replace: delete queues that cannot be changed in place, and create
        them again.
    """

    prune: bool = False
    replace: bool = False


def plan_of(
    live: ServiceConfiguration, wanted: ServiceConfiguration, wishes: Wishes, *, compares_service: bool = True
) -> Plan:
    """Return the plan that makes a service equal to a file.

    Args:
        live: the current configuration of the service.
        wanted: the configuration in the file.
        wishes: the permitted deletions.
        compares_service: whether what is outside of the participants is compared; an embedded service uses none of it.
    """
    orders = live.service_qos.configuration_replication.replication.enabled
    planning = _Planning(live.service, wanted.service, wishes, members_follow=orders)
    planning.run()
    restarts = [
        each for each in other_changes(live, wanted) if compares_service or "/domain_participant[" in f"/{each.path}"
    ]
    return Plan(planning.steps, planning.obstacles, [*restarts, *planning.inherited], planning.extras)


class _Planning:
    """One plan under construction.

    Args:
        live: the current configuration of the service.
        wanted: the configuration in the file.
        wishes: the permitted deletions.
        members_follow: whether all members of a cluster execute the commands sent to one [QS 7.2].
    """

    def __init__(self, live: ServiceSettings, wanted: ServiceSettings, wishes: Wishes, *, members_follow: bool) -> None:
        self._live = _subscribers(live)
        self._wanted = _subscribers(wanted)
        self._wishes = wishes
        self._members_follow = members_follow
        replicates = any(queue.replication.enabled for _, _, queue in queues_of(live))
        self._model = HostedService(live, 0, draw=no_incarnation, journals_everything=False, replicates=replicates)
        """The service as it will be after the steps so far."""
        self._creations: list[PlanStep] = []
        self._deletions: list[PlanStep] = []
        self._going: dict[ResourceIdentifier, tuple[set[str], set[str]]] = {}
        """Names and topics of the queues that are deleted, by subscriber."""
        self.steps: list[PlanStep] = []
        self.obstacles: list[Obstacle] = []
        self.extras: list[ResourceIdentifier] = []
        self.inherited: list[SettingChange] = []
        """Values of queues that only a restart changes."""

    def run(self) -> None:
        """Compare the configurations by subscriber, then order the steps."""
        participants = self._model.participants()
        for resource, subscriber in self._wanted.items():
            if resource.parent not in participants:
                continue  # only a restart makes a participant: it is among the other differences
            if resource not in self._live:
                self._try(PlanStep(Action.CREATE_SUBSCRIBER, resource, "not there", replace(subscriber, queues=())))
            self._compare(resource, self._live.get(resource, SharedSubscriberSettings("")), subscriber)
        for resource in self._live:
            if resource not in self._wanted:
                self._miss(PlanStep(Action.DELETE_SUBSCRIBER, resource, "not in the file"))
        for step in self._deletions:
            if step.action is Action.DELETE_QUEUE:
                names, topics = self._going.setdefault(step.resource.parent, (set(), set()))
                names.add(step.resource.name)
                topics.add(self._model.queue(step.resource).settings.topic_name)
        deferred = [step for step in self._creations if not self._is_possible_now(step)]
        # A queue goes before the one that holds its dead letters.
        dead = {resource for resource, settings in self._model.queues().items() if settings.is_dead_letter}
        for step in sorted(self._deletions, key=lambda each: each.resource in dead):
            self._try(step)
        for step in deferred:
            self._try(step)

    def _compare(
        self, subscriber: ResourceIdentifier, live: SharedSubscriberSettings, wanted: SharedSubscriberSettings
    ) -> None:
        held = {each.name: each for each in live.queues}
        anew = self._anew(held, wanted) if self._wishes.replace else {}
        for queue in _in_order_of_creation(wanted.queues):
            resource = _queue(subscriber, queue)
            former = held.pop(queue.name, None)
            if former is None:
                self._creations.append(PlanStep(Action.CREATE_QUEUE, resource, "not there", queue))
            elif (reason := anew.get(queue.name)) is not None:
                changes = queue_changes(former, queue)
                self._deletions.append(PlanStep(Action.DELETE_QUEUE, _queue(subscriber, former), reason, None, changes))
                self._creations.append(PlanStep(Action.CREATE_QUEUE, resource, reason, queue))
            else:
                self._change(resource, former, queue)
        for left in held.values():
            self._miss(PlanStep(Action.DELETE_QUEUE, _queue(subscriber, left), "not in the file"))

    def _anew(self, held: dict[str, SharedReaderQueueSettings], wanted: SharedSubscriberSettings) -> dict[str, str]:
        """Return the queues to delete and create again, with reasons; they include queues of a replaced dead-letter
        queue.
        """
        reasons: dict[str, str] = {}
        for queue in _in_order_of_creation(wanted.queues):
            former = held.get(queue.name)
            if former is None:
                continue
            if fixed := _fixed(former, queue):
                reasons[queue.name] = f"{', '.join(fixed)} cannot be changed in place"
            elif former.dead_letter_queue in reasons:
                reasons[queue.name] = f"its dead-letter queue {former.dead_letter_queue} is created anew"
        return reasons

    def _change(
        self, resource: ResourceIdentifier, live: SharedReaderQueueSettings, wanted: SharedReaderQueueSettings
    ) -> None:
        """Change a queue in place, or record the obstacle."""
        settings = with_inherited(wanted, live)
        self.inherited += [
            replace(each, path=f"{resource.bare}/{each.path}") for each in queue_changes(settings, wanted)
        ]
        if settings == live:
            return
        changes = queue_changes(live, settings)
        if fixed := _fixed(live, wanted):
            how = (
                _REPLICATED if live.replication.enabled else f"{WITHOUT_LOSS}. Or --replace: delete it, create it anew"
            )
            what = f"{', '.join(fixed)} cannot be changed in place"
            self.obstacles.append(Obstacle(resource, what, how, changes))
        else:
            self._try(PlanStep(Action.UPDATE_QUEUE, resource, "differs", settings, changes))

    def _miss(self, deletion: PlanStep) -> None:
        """Delete a resource that is not in the file, or keep it without --prune."""
        if self._wishes.prune:
            self._deletions.append(deletion)
        else:
            self.extras.append(deletion.resource)

    def _is_possible_now(self, step: PlanStep) -> bool:
        """Try to create a queue before any deletion; return whether that became a step."""
        settings = step.settings
        assert isinstance(settings, SharedReaderQueueSettings)
        names, topics = self._going.get(step.resource.parent, (set(), set()))
        if settings.dead_letter_queue in names:
            return False  # it would hold fast what goes, to be created anew
        if reply_topic(settings) in topics:
            return False  # the deleted queue would be replaced by its implicit reply queue
        try:
            self._do(step)
        except QsctlError:
            return False
        self.steps.append(step)
        return True

    def _try(self, step: PlanStep) -> None:
        """Add a command as a step, or as an obstacle if the service would refuse it."""
        try:
            self._do(step)
        except QsctlError as error:
            how = error.remedy.rstrip(".")
            if step.action is Action.CREATE_QUEUE and self.extras:
                how += ". Or --prune: delete what is not in the file"
            self.obstacles.append(Obstacle(step.resource, error.message, how, step.changes))
        else:
            self.steps.append(step)

    def _do(self, step: PlanStep) -> None:
        """Execute a step on the model of the service.

        Raises:
            QsctlError: the service would refuse the step.
        """
        model, resource, settings = self._model, step.resource, step.settings
        if isinstance(settings, SharedSubscriberSettings):
            model.create_subscriber(0, resource.parent, settings)
        elif step.action is Action.CREATE_QUEUE and settings is not None:
            self._refuse_replicated([settings], resource)
            # A subscriber gets its sessions when it is created.
            subscriber = self._live.get(resource.parent) or self._wanted[resource.parent]
            if settings.session not in [each.name for each in subscriber.sessions]:
                raise Refused(
                    f"its shared subscriber has no session {settings.session!r}, and gets none while it works",
                    remedy="Put the queue into another shared subscriber, or start the service with the file.",
                )
            model.create_queue(0, resource.parent, settings)
        elif settings is not None:
            model.change_queue(0, resource, settings)
        elif step.action is Action.DELETE_QUEUE:
            self._refuse_replicated([model.queue(resource).settings], resource)
            model.delete_queue(0, resource)
        else:
            self._refuse_replicated(model.subscribers()[resource].queues, resource)
            model.delete_subscriber(0, resource)

    def _refuse_replicated(self, queues: Iterable[SharedReaderQueueSettings], resource: ResourceIdentifier) -> None:
        if not self._members_follow and any(each.replication.enabled for each in queues):
            raise Refused(f"{resource} is replicated", remedy=_REPLICATED)


def _subscribers(service: ServiceSettings) -> dict[ResourceIdentifier, SharedSubscriberSettings]:
    return {
        subscriber_identifier(participant.name, subscriber.name): subscriber
        for participant in service.participants
        for subscriber in participant.subscribers
    }


def _queue(subscriber: ResourceIdentifier, queue: SharedReaderQueueSettings) -> ResourceIdentifier:
    return queue_identifier(subscriber.parent.name, subscriber.name, queue)


def _fixed(live: SharedReaderQueueSettings, wanted: SharedReaderQueueSettings) -> list[str]:
    return [each for each in fixed_differences(live, wanted) if not each.startswith(INHERITED)]


def _in_order_of_creation(queues: Iterable[SharedReaderQueueSettings]) -> Iterator[SharedReaderQueueSettings]:
    """Yield dead-letter queues first, since others name them, then declared reply queues, since they replace implied
    ones.
    """
    listed = list(queues)
    replies = {reply_topic(each) for each in listed}
    yield from sorted(listed, key=lambda each: (not each.is_dead_letter, each.topic_name not in replies))
