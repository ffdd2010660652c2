"""The execution of a plan: its steps as commands to a service, and the requests that precede them.

Decides: when a step counts as done. Each step is one command whose reply confirms that it is stored; a step that is
already in effect counts as done, so an interrupted plan can be made and executed again.
"""

from __future__ import annotations

from collections.abc import Iterator

from qsctl.client.administration import Administration
from qsctl.client.desired.steps import DESTROYS, Action, Obstacle, Plan, PlanStep
from qsctl.config.live import read_live_text
from qsctl.config.settings import ServiceConfiguration
from qsctl.config.writer import queue_text, subscriber_text
from qsctl.core.admin.command import CreateQueue, CreateSubscriber
from qsctl.core.admin.request import body_of_xml
from qsctl.core.admin.resolve import short_name
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings, queues_by_name
from qsctl.errors import UsageError
from qsctl.resource import ResourceIdentifier, parse_resource


def live_configuration(administration: Administration) -> tuple[str, ServiceConfiguration]:
    """Return the name of the only service that answers, and its current configuration.

    Raises:
        UsageError: several services answered.
        Refused: the service does not report its configuration: it is another make, or an earlier version.
    """
    found = administration.configurations()
    if len(found) != 1:
        names = ", ".join(each.service for each in found)
        raise UsageError(f"several services answered: {names}", remedy="Name one with --target.")
    return found[0].service, read_live_text(found[0].body.xml)


def held_back(administration: Administration, plan: Plan, live: ServiceConfiguration) -> list[Obstacle]:
    """Return an obstacle for each queue that a plan deletes and that holds samples."""
    queues = [parse_resource(each.resource) for each in administration.hosted().queues]
    declared = queues_by_name(live.service)
    return [
        Obstacle(queue, "holds samples", "Consume, move or flush them first. Or --force: delete them with it")
        for step in plan.steps
        if step.action in DESTROYS
        for queue in queues
        if _goes_with(queue, step, short_name(queue) in declared) and administration.messages(queue, count=1)
    ]


def carry_out(administration: Administration, plan: Plan, *, force: bool = False) -> Iterator[PlanStep]:
    """Execute the steps, yielding each one after its reply.

    Args:
        administration: the administration of one service.
        plan: a plan without obstacles.
        force: whether queues are deleted even if they hold samples.

    Raises:
        QsctlError: the service refuses a step, or does not answer; the steps yielded before are done.
    """
    for step in plan.steps:
        _carry_out(administration, step, force=force)
        yield step


def _carry_out(administration: Administration, step: PlanStep, *, force: bool) -> None:
    resource, settings = step.resource, step.settings
    if isinstance(settings, SharedSubscriberSettings):
        command: CreateQueue | CreateSubscriber = CreateSubscriber(resource.parent, settings)
        administration.create_exactly(command, body_of_xml(subscriber_text(settings)))
    elif isinstance(settings, SharedReaderQueueSettings) and step.action is Action.CREATE_QUEUE:
        command = CreateQueue(resource.parent, settings)
        administration.create_exactly(command, body_of_xml(queue_text(settings)))
    elif isinstance(settings, SharedReaderQueueSettings):
        administration.update_queue(resource, settings)
    elif step.action is Action.DELETE_QUEUE:
        administration.delete_queue(resource, idempotent=True, only_if_empty=not force)
    else:
        administration.delete_subscriber(resource, idempotent=True, only_if_empty=not force)


def _goes_with(queue: ResourceIdentifier, step: PlanStep, is_declared: bool) -> bool:
    """Return whether a step deletes a queue: by itself, with its subscriber, or as the implied reply queue of
    another.
    """
    going = step.resource
    if step.action is Action.DELETE_SUBSCRIBER:
        return queue.parent == going
    return queue == going or (not is_declared and queue.parent == going.parent and queue.name == f"{going.name}Reply")
