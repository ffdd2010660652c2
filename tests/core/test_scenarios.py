"""Golden transcripts: commands above `----`, what the engine did below it. `--rewrite` writes what it does now."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qsctl.core.admin.command import Command, CreateQueue, DeleteQueue, FlushQueue, GetStatus, Shutdown, UpdateQueue
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandRequest,
    ConsumerAvailability,
    ConsumerJoined,
    ConsumerLeft,
    ProducerLeft,
    Write,
)
from qsctl.core.payloads import fill_payloads, records_with_payloads
from qsctl.core.queue.settings import (
    DistributionSettings,
    MonitoringSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ReplacementKind,
    ResourceLimitSettings,
    SampleBufferSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.records import Enqueued, QueueDeleted, Record
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import Refused
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS, format_duration, parse_duration
from qsctl.resource import ResourceIdentifier, ResourceKind
from tests.batches import records_of

FOLDER = Path(__file__).parents[2] / "fixtures" / "transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))


def guid(name: str) -> Guid:
    return Guid(name.encode().ljust(16, b"\0")) if name else NIL_GUID


def identity(label: str) -> SampleIdentity:
    """`S12` is sample 12 of the producer S."""
    writer, number = re.fullmatch(r"([A-Za-z]+)(\d+)", label).groups()  # type: ignore[union-attr]
    return SampleIdentity(guid(writer), int(number))


def queue_settings(name: str, options: dict[str, str]) -> SharedReaderQueueSettings:
    def flag(key: str) -> bool:
        return options.pop(key, None) is not None

    def number(key: str, default: int = -1) -> int:
        return int(options.pop(key, default))

    def duration(key: str) -> int:
        return parse_duration(options.pop(key)) if key in options else INFINITE_NS

    def percent(key: str) -> int | None:
        return int(options.pop(key).rstrip("%")) if key in options else None

    monitoring = MonitoringSettings()
    if "publish_every" in options:
        monitoring = MonitoringSettings(True, duration("publish_every"))
    settings = SharedReaderQueueSettings(
        name=name,
        topic_name=options.pop("topic", name.capitalize()),
        type_name="Text",
        reply_type=options.pop("reply_type", ""),
        reply_topic=options.pop("reply_topic", ""),
        dead_letter_queue=options.pop("dead_letters", ""),
        distribution=DistributionSettings(
            unacked_threshold=number("threshold"),
            allow_consumer_feedback=flag("feedback"),
            mark_last_undelivered_sample=flag("mark_last"),
        ),
        lifespan_ns=duration("lifespan"),
        redelivery=RedeliverySettings(number("retries", 0), duration("response_timeout")),
        persistence=PersistenceSettings(
            PersistenceKind.PERSISTENT if flag("persistent") else PersistenceKind.VOLATILE,
            in_memory_state=not flag("on_disk_only"),
            restore=options.pop("restore", "on") == "on",
        ),
        app_ack_sample_to_producer=options.pop("producer_ack", "on") == "on",
        limits=ResourceLimitSettings(
            max_count=number("max_count"),
            max_in_memory_bytes=number("max_bytes"),
            max_sample_bytes=number("max_sample"),
            high_watermark_percent=percent("high"),
            low_watermark_percent=percent("low"),
            replacement=(
                ReplacementKind.WAIT_WITHOUT_REPLACEMENT if flag("wait") else ReplacementKind.REJECT_WITHOUT_REPLACEMENT
            ),
            waiting_count_max=number("waiting_max"),
        ),
        sample_buffer=SampleBufferSettings(number("min_size", 256), not flag("keep_buffers")),
        monitoring=monitoring,
    )
    assert not options, f"unknown options of a queue: {options}"
    return settings


class World:
    """One service, its store and a clock, driven by the lines of a transcript."""

    def __init__(self, printer: Any) -> None:
        self.printer = printer
        self.subscribers: dict[str, list[SharedReaderQueueSettings]] = {}
        self.engine: ServiceEngine | None = None
        self.stored: list[Record] = []
        self.now = 0
        self.request = 0
        self.payload_max = -1
        self.draw = counted_incarnations()

    def run(self, line: str) -> list[str]:
        verb, *words = line.split()
        options = dict(word.partition("=")[::2] for word in words if "=" in word)
        command: Callable[[list[str], dict[str, str]], list[str] | None] = getattr(self, f"do_{verb.replace('-', '_')}")
        plain = [word for word in words if "=" not in word]
        return command(plain, options) or []

    # What is configured.

    def do_show(self, _words: list[str], _options: dict[str, str]) -> None:
        self.printer.shows_all = True

    def do_service(self, _words: list[str], options: dict[str, str]) -> None:
        self.payload_max = int(options["payload_max"])

    def do_queue(self, words: list[str], options: dict[str, str]) -> None:
        options |= dict.fromkeys(words[1:], "")
        subscriber = options.pop("subscriber", "S")
        self.subscribers.setdefault(subscriber, []).append(queue_settings(words[0], options))

    def do_dead_letter_queue(self, words: list[str], options: dict[str, str]) -> None:
        self.do_queue(words, options)
        made = self.subscribers["S"][-1]
        self.subscribers["S"][-1] = replace(made, is_dead_letter=True, type_name="")

    def do_start(self, _words: list[str], _options: dict[str, str]) -> list[str]:
        try:
            self.service()
        except Refused as error:
            return [f"refused: {error.message}"]
        return self.turn()

    def service(self) -> ServiceEngine:
        if self.engine is None:
            self.engine = self.fresh()
            self.engine.finish_restore(self.now)
        return self.engine

    def fresh(self) -> ServiceEngine:
        subscribers = tuple(SharedSubscriberSettings(name, (), tuple(held)) for name, held in self.subscribers.items())
        settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, subscribers),))
        return ServiceEngine(
            settings,
            started_at=self.now,
            draw=self.draw,
            journal=Journal.PERSISTENT_ONLY,
            payload_size_bytes_max=self.payload_max,
        )

    # What happens.

    def do_join(self, words: list[str], options: dict[str, str]) -> list[str]:
        threshold = int(options["threshold"]) if "threshold" in options else None
        for word in words:
            joined = ConsumerJoined(self.queue(options), guid(word), guid(options.get("source", "")), threshold)
            self.service().receive(self.now, joined)
        return self.turn()

    def do_leave(self, words: list[str], options: dict[str, str]) -> list[str]:
        unsent = tuple(int(position) for position in options.get("unsent", "").split(",") if position)
        left = ConsumerLeft(self.queue(options), guid(words[0]), "hands-back" in words, unsent)
        self.service().receive(self.now, left)
        return self.turn()

    def do_write(self, words: list[str], options: dict[str, str]) -> list[str]:
        for word in words:
            write = Write(
                "P",
                options.get("topic", self.first().topic_name),
                identity(word),
                b"x" * int(options.get("size", 1)),
                guid(options.get("source", "")),
                guid(options.get("for", "")),
                identity(options["answers"]) if "answers" in options else NIL_IDENTITY,
                guid(options.get("reader", "")),
                lifespan_ns=parse_duration(options.get("lifespan", "infinite")),
                waits_when_full="plain" in options,
            )
            self.service().receive(self.now, write)
        return self.turn()

    def do_ack(self, words: list[str], options: dict[str, str]) -> list[str]:
        return self.settle(words, options, AckResponse.ACCEPTED)

    def do_reject(self, words: list[str], options: dict[str, str]) -> list[str]:
        return self.settle(words, options, AckResponse.REJECTED)

    def settle(self, words: list[str], options: dict[str, str], response: AckResponse) -> list[str]:
        for word in words[1:]:
            queue = self.queue(options)
            ack = Acknowledgment(queue, guid(words[0]), self.named(queue, word), response)
            self.service().receive(self.now, ack)
        return self.turn()

    def named(self, queue: str, word: str) -> SampleIdentity:
        """The identity by which a sample is acknowledged: a dead letter has its own. `S1/2` is the second such one."""
        wanted, _, which = word.partition("/")
        resource = self.resource(queue)
        if resource.kind is not ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE:
            return identity(wanted)
        found = [each for each in self.service().hosted.samples(resource) if each.original_identity == identity(wanted)]
        return found[int(which or 1) - 1].identity

    def do_availability(self, words: list[str], options: dict[str, str]) -> list[str]:
        threshold = int(options.get("threshold", -1))
        report = ConsumerAvailability(self.queue(options), guid(words[0]), words[1] == "on", threshold)
        self.service().receive(self.now, report)
        return self.turn()

    def do_producer_left(self, words: list[str], options: dict[str, str]) -> list[str]:
        topic = options.get("topic", self.first().topic_name)
        self.service().receive(self.now, ProducerLeft("P", topic, guid(words[0])))
        return self.turn()

    def do_advance(self, words: list[str], _options: dict[str, str]) -> list[str]:
        """Let time pass as a driver does: from deadline to deadline."""
        until = self.now + parse_duration(words[0])
        lines: list[str] = []
        while (deadline := self.service().next_deadline()) is not None and deadline <= until:
            self.now = deadline
            self.service().advance(self.now)
            if done := self.turn():
                lines += [f"at {format_duration(self.now)}", *done]
        self.now = until
        return lines

    def do_restart(self, words: list[str], options: dict[str, str]) -> list[str]:
        """Lose everything but the store; come back after a while, perhaps with other retries configured."""
        self.now += parse_duration(words[0]) if words else 0
        stored = list(self.stored)
        if "retries" in options:
            for held in self.subscribers.values():
                held[:] = [replace(one, redelivery=RedeliverySettings(int(options["retries"]))) for one in held]
            stored = [record for record in stored if hasattr(record, "queue")]
        self.engine = self.fresh()
        self.engine.restore(self.now, stored)
        return self.turn()

    def do_compact(self, _words: list[str], _options: dict[str, str]) -> list[str]:
        self.stored = list(records_with_payloads(self.service().snapshot(), self.read))
        return list(map(self.printer.record_line, (record for record in self.stored if hasattr(record, "queue"))))

    def do_lose(self, words: list[str], options: dict[str, str]) -> None:
        """Take the last records of a queue from its store, as a crash does that comes before they are written."""
        name = self.queue(options)
        own = [at for at, record in enumerate(self.stored) if getattr(record, "queue", "") == name]
        for at in reversed(own[-int(words[0]) :]):
            del self.stored[at]

    # What administration does and sees.

    def do_flush(self, words: list[str], options: dict[str, str]) -> list[str]:
        wanted = " OR ".join(
            f"@original_sample_identity.writer_guid.value = &hex({one.writer_guid.hex()}) AND "
            f"@original_sample_identity.sequence_number = (0,{one.sequence_number})"
            for one in map(identity, words)
        )
        return self.command(FlushQueue(self.resource(self.queue(options)), wanted))

    def do_create_queue(self, words: list[str], options: dict[str, str]) -> list[str]:
        settings = queue_settings(words[0], options | dict.fromkeys(words[1:], ""))
        return self.command(CreateQueue(self.resource("P/S/x").parent, settings))

    def do_update_queue(self, words: list[str], options: dict[str, str]) -> list[str]:
        """Give a queue of the first subscriber all these settings."""
        name = self.queue({"queue": words[0]})
        settings = queue_settings(words[0], options | dict.fromkeys(words[1:], ""))
        if self.service().hosted.by_name[name].settings.is_dead_letter:
            settings = replace(settings, is_dead_letter=True, type_name="")
        return self.command(UpdateQueue(self.resource(name), settings))

    def do_delete_queue(self, words: list[str], _options: dict[str, str]) -> list[str]:
        return self.command(DeleteQueue(self.resource(f"P/S/{words[0]}")))

    def do_get_status(self, _words: list[str], options: dict[str, str]) -> list[str]:
        return self.command(GetStatus(self.resource(self.queue(options))))

    def do_shutdown(self, words: list[str], _options: dict[str, str]) -> list[str]:
        lines = self.command(Shutdown(), target=words[0] if words else "svc")
        return [*lines, f"shutting down: {'yes' if self.service().hosted.shutting_down else 'no'}"]

    def command(self, command: Command, target: str = "svc") -> list[str]:
        self.request += 1
        request = CommandRequest(SampleIdentity(guid("admin"), self.request), target, command)
        self.service().receive(self.now, request)
        return self.turn()

    def do_held(self, _words: list[str], options: dict[str, str]) -> list[str]:
        samples = self.service().hosted.samples(self.resource(self.queue(options)))
        return [self.printer.sample_line(sample) for sample in samples] or ["nothing"]

    def do_queues(self, _words: list[str], _options: dict[str, str]) -> list[str]:
        return [f"{resource} topic={held.topic_name}" for resource, held in self.service().hosted.queues().items()]

    def do_refused(self, _words: list[str], _options: dict[str, str]) -> list[str]:
        return [f"refused messages: {self.service().refused_message_count}"]

    # What is printed.

    def turn(self) -> list[str]:
        ready = self.service().take_ready()
        fill_payloads(ready, self.read)
        for record in ready.service_records:
            if isinstance(record, QueueDeleted):  # its store goes with it
                gone = f"{record.participant}/{record.subscriber}/{record.name}"
                self.stored = [each for each in self.stored if getattr(each, "queue", "") != gone]
        self.stored += records_of(ready)
        self.printer.note(ready.events)
        return [
            *(self.printer.record_line(record) for record in records_of(ready) if hasattr(record, "queue")),
            *map(self.printer.message_line, ready.messages),
            *(line for event in ready.events if (line := self.printer.event_line(event))),
        ]

    def read(self, queue: str, positions: Sequence[int]) -> list[bytes]:
        found = {
            (record.queue, record.position): record.payload for record in self.stored if isinstance(record, Enqueued)
        }
        return [found[queue, position] for position in positions]

    # What a line leaves out.

    def first(self) -> SharedReaderQueueSettings:
        return next(iter(self.subscribers.values()))[0]

    def queue(self, options: dict[str, str]) -> str:
        subscriber, queue = next(iter(self.subscribers)), self.first().name
        given = options.get("queue", queue)
        return f"P/{given}" if "/" in given else f"P/{subscriber}/{given}"

    def resource(self, name: str) -> ResourceIdentifier:
        participant, subscriber, queue = name.split("/")
        dead = any(one.is_dead_letter and one.name == queue for one in self.subscribers.get(subscriber, ()))
        kind = ResourceKind.DEAD_LETTER_SHARED_READER_QUEUE if dead else ResourceKind.SHARED_READER_QUEUE
        outer = ResourceIdentifier(((ResourceKind.DOMAIN_PARTICIPANT, participant),))
        return outer.child(ResourceKind.SHARED_SUBSCRIBER, subscriber).child(kind, queue)


def play(text: str, printer: Any) -> str:
    """The transcript with the output that the engine gives now."""
    return "\n\n".join(_blocks(text, printer)) + "\n"


def _blocks(text: str, printer: Any) -> Iterator[str]:
    world = World(printer)
    for block in text.strip().split("\n\n"):
        commands = block.split("\n----")[0].splitlines()
        output = [line for command in commands if not command.startswith("#") for line in world.run(command)]
        done = [line for line in commands if not line.startswith("#")]
        yield "\n".join([*commands, *(["----", *output] if done else [])])


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_engine_follows_the_transcript(path: Path, rewrite: bool, printer: Any) -> None:
    text = path.read_text(encoding="utf-8")
    played = play(text, printer)
    if rewrite:
        path.write_text(played, encoding="utf-8")
    assert played == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_begins_with_the_rule_it_shows(path: Path) -> None:
    comment = re.match(r"(# .+\n)+", path.read_text(encoding="utf-8"))
    assert comment is not None
    assert comment[0].endswith((".\n", ")\n"))


def test_each_rule_has_its_transcript() -> None:
    assert len(TRANSCRIPTS) >= 60
