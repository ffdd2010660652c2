"""`qsctl.Service`: a queuing service as an object, whose methods have the names, arguments and results of the
commands.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, Unpack, overload

from qsctl.cli.caller import ProgramCaller, called_by
from qsctl.cli.location import open_connection, seconds
from qsctl.client.administration import Administration
from qsctl.errors import Damaged, QsctlError, Refused, UsageError
from qsctl.programs._held_service import HeldService, HeldWaitedService
from qsctl.programs.called import assignments, called
from qsctl.programs.command_result import CommandResult
from qsctl.programs.consumed_sample import ConsumedSample
from qsctl.programs.queue_settings import QueueSettingOptions, check_settings

if TYPE_CHECKING:
    from types import TracebackType

    from qsctl.cli.administer.answers import ServiceAnswers
    from qsctl.cli.administer.desired import DesiredOptions
    from qsctl.cli.administer.desired_results import Planned
    from qsctl.cli.administer.get_results import Messages, QueueDataList, Statuses
    from qsctl.cli.administer.live_configuration import LiveConfiguration
    from qsctl.cli.administer.record_results import RecordingStates
    from qsctl.cli.confirmation import DestructionOptions
    from qsctl.cli.monitoring.wait import Waited
    from qsctl.cli.samples.export import Exported
    from qsctl.cli.samples.move_results import MovedSamples
    from qsctl.cli.samples.produce_results import ProducedSamples
    from qsctl.cli.samples.sample_files import FileFormat
    from qsctl.client.codec import Codec
    from qsctl.client.connection import Connection
    from qsctl.client.consumer import QueueConsumer
    from qsctl.client.producer import QueueProducer
    from qsctl.client.replier import QueueReplier
    from qsctl.client.requester import QueueRequester
    from qsctl.core.messages import Delivery
    from qsctl.instant import Nanoseconds
    from qsctl.programs._queue_clients import Place, QueueClients

Text = bytes | str
FilePath = str | PathLike[str]
Value = TypeVar("Value")
Request = TypeVar("Request")
Reply = TypeVar("Reply")

_EMBEDDED: weakref.WeakSet[Service] = weakref.WeakSet()
"""The embedded services of this process, closed ones too."""

_IN_USE_S: Final = 1.0
"""Longest wait at the end of the program for a call of a daemon thread."""


class Service:
    """A queuing service that a program uses: embedded in a directory, or reached over DDS.

    Methods have the names and arguments of the commands, return their output as a `CommandResult`, and print nothing.
    They raise `qsctl.errors.QsctlError`, with the command's exit status.

    Any thread may call any method. Calls of one object are serialized; during `wait`, other calls are admitted. A child
    process of `os.fork` must open its own object. After `close` every method raises `Refused`.

    >>> import qsctl
    >>> with qsctl.Service.embedded("state") as service:
    ...     created = service.create_queue("Orders", max_delivery_retries=2)
    ...     produced = service.produce("Orders", [b"first", b"second"])
    ...     for sample in service.consume("Orders", count=1):
    ...         sample.acknowledge()
    ...     [row["payload"] for row in service.messages("Orders")]
    ['second']
    """

    def __init__(
        self,
        connection: AbstractContextManager[Connection],
        location: str,
        *,
        target: str = "*",
        timeout: str = "10s",
    ) -> None:
        """Open a service. Use `embedded`, `connect` or `serve`.

        Args:
            connection: the connection, entered at once and exited by `close`.
            location: location of the service, in the syntax of `--service`.
            target: application name of the service, or a pattern that matches several.
            timeout: longest wait for a reply.
        """
        self.location = location
        self._lock = threading.RLock()
        self._notes: list[str] = []
        self._held = ExitStack()
        self._clients: QueueClients | None = None
        self._process_id = os.getpid()
        self._timeout = timeout
        with called_by(ProgramCaller(self._notes.append)):
            self._connection: Connection | None = self._held.enter_context(connection)
        if self.domain_id is None:
            _EMBEDDED.add(self)
        self.options = HeldService(service=location, target=target, timeout=timeout, opener=self._opened)
        """The options by which command functions open this service."""

    @classmethod
    def embedded(
        cls,
        path: FilePath = ".qsctl",
        *,
        configuration: FilePath | None = None,
        config_name: str | None = None,
        timeout: str = "10s",
        discard_damaged: bool = False,
        now: Callable[[], Nanoseconds] = time.time_ns,
    ) -> Service:
        """Open the service of a state directory in this process; the directory is created if it does not exist.

        Other processes, including commands, wait until `close` releases the directory.

        Args:
            path: the directory, as for `--state-dir`.
            configuration: XML file for a new service; an existing service keeps its configuration.
            config_name: name of the service in the file; None: the only one.
            timeout: longest wait for another process that uses the directory.
            discard_damaged: continue without samples that can no longer be read.
            now: the service's clock, in nanoseconds since 1970, for timeouts and lifespans.

        Raises:
            NoAnswer: another process, or another `Service` of this one, uses the directory; the message names it.
            Refused: an existing service has another configuration than `configuration`.
            Damaged: stored samples cannot be read.
            InvalidInput: the configuration is not valid, or the directory cannot be used.
        """
        place = "" if configuration is None else fspath(configuration)
        location = f"embedded:{place}" + (f"#{config_name}" if config_name else "")
        opened = open_connection(location, Path(path), timeout, discard_damaged=discard_damaged, now=now)
        return cls(opened, location, timeout=timeout)

    @classmethod
    def connect(
        cls,
        location: str | None = None,
        *,
        context: str | None = None,
        target: str = "*",
        timeout: str = "10s",
        state_dir: FilePath = ".qsctl",
        key_file: FilePath | None = None,
    ) -> Service:
        """Connect to a service by its location or by a context.

        Args:
            location: as for `--service`: `dds:60`, `dds:60?interface=eth0`, `embedded:`, `embedded:FILE.xml#NAME`.
            context: name of a context of `qsctl context`; its options replace omitted arguments.
            target: application name of the service, or a POSIX pattern, if several run in the domain.
            timeout: longest wait for a reply.
            state_dir: the directory of an embedded service.
            key_file: file with the key that signs commands, for services that require it.

        Raises:
            UsageError: the location is invalid, or not exactly one of location and context is given.
            NotFound: the context does not exist.
            Unavailable: DDS cannot be started on this machine.
        """
        if (location is None) == (context is None):
            raise UsageError("give a location or a context", remedy="As in Service.connect('dds:60').")
        if context is not None:
            from qsctl.cli.context.file import read_contexts

            options = read_contexts().named(context).options
            location = options.get("service", "embedded:")
            target = options.get("target", target)
            timeout = options.get("timeout", timeout)
            state_dir = options.get("state_dir", state_dir)
            key_file = options.get("key_file", key_file)
        assert location is not None
        opened = open_connection(
            location, Path(state_dir), timeout, key_file=None if key_file is None else Path(key_file)
        )
        return cls(opened, location, target=target, timeout=timeout)

    @classmethod
    def serve(
        cls,
        configuration: FilePath | None = None,
        *,
        config_name: str | None = None,
        variables: Mapping[str, object] | None = None,
        domain: int | None = None,
        directory: FilePath = ".",
        timeout: str = "30s",
    ) -> Service:
        """Start a service on DDS as a child process of this program, on loopback, and connect to it.

        The service is ready when this returns; `close` stops it, and so does any end of the program. Persistent samples
        stay in its files.

        Args:
            configuration: XML file, or a `str://` literal; None: one shared subscriber without queues.
            config_name: name of the service in the file; None: the only one.
            variables: values of `$(NAME)`, as for `--var`.
            domain: domain id of the first participant and of administration; those of other participants are shifted by
                the same amount. None: a free one, which `domain_id` returns.
            directory: the service's working directory, to which relative file names refer.
            timeout: longest wait for the service to start, and for each reply.

        Raises:
            InvalidFile: the configuration is invalid; it lists every problem.
            QsctlError: the service did not start; it has the service's message and exit status.
            NoAnswer: the service did not reply in time.
        """
        from qsctl.programs._started_service import LITTLE_CONFIGURATION, first_domain, free_domain, started_service

        source = LITTLE_CONFIGURATION if configuration is None else _absolute(fspath(configuration))
        place = Path(directory)
        given = {name: str(value) for name, value in (variables or {}).items()}
        wait_s = seconds(timeout, "timeout")
        with ExitStack() as held:
            first = first_domain(source, config_name, given, place)
            domain_id = held.enter_context(free_domain()) if domain is None else domain
            options = [f"--domain-id-base={domain_id - first}"]
            options += [f"--config-name={config_name}"] if config_name else []
            options += [f"--var={each}" for each in assignments(given)]
            started = started_service(source, options, domain_id, place, wait_s)
            service = cls(started, f"dds:{domain_id}", timeout=timeout)
            service._held.push(held.pop_all())  # release the domain after the service has stopped
        return service

    @property
    def domain_id(self) -> int | None:
        """Return the administration domain of a service on DDS; None for an embedded service."""
        kind, _, rest = self.location.partition(":")
        return int(rest.partition("?")[0]) if kind == "dds" else None

    def close(self) -> None:
        """Close the clients and the service; consumed samples that were not acknowledged return to their queues.

        May be repeated. In a child process of `os.fork` it does nothing.
        """
        self._leave(None, None, None)

    def _close_at_exit(self) -> None:
        """Close the service at the end of the program, unless another thread is using it."""
        if os.getpid() == self._process_id and self._lock.acquire(timeout=_IN_USE_S):
            with suppress(QsctlError):
                self.close()
            self._lock.release()

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.getpid() != self._process_id:
            return  # in a child of os.fork the open resources belong to the parent
        with self._lock, called_by(ProgramCaller(self._notes.append)):
            try:
                if self._clients is not None:
                    self._clients.leave(kind, error, trace)
            finally:
                self._connection = None
                self._held.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave(kind, error, traceback)

    def __repr__(self) -> str:
        return f"<qsctl.Service {self.location}{', closed' * (self._connection is None)}>"

    @property
    def notes(self) -> Sequence[str]:
        """Warnings from opening and closing the service, on its configuration, on damage and on recordings."""
        return tuple(self._notes)

    def create_queue(
        self,
        name: str = "",
        *,
        subscriber: str = "",
        file: FilePath | None = None,
        xml: str | None = None,
        idempotent: bool = False,
        **settings: Unpack[QueueSettingOptions],
    ) -> CommandResult[ServiceAnswers]:
        """Create a shared reader queue, by settings or from XML.

        Args:
            name: name of the queue; may be omitted if the XML has one.
            subscriber: its shared subscriber; empty: the only one.
            file: XML snippet with the configuration.
            xml: the XML snippet as text.
            idempotent: accept a queue that exists already with the same configuration.
            settings: the settings of `QueueSettingOptions`.

        Raises:
            UsageError: a name or a value is wrong, or settings contradict each other.
            Duplicated, AlreadyExists: a queue of that name exists, with the same or another configuration.
        """
        from qsctl.cli.administer.queue import create_queue
        from qsctl.cli.administer.queue_options import QueueOptions

        check_settings(settings)
        return called(
            lambda: create_queue(
                name, subscriber, _path(file), xml,
                options=QueueOptions(**settings), idempotent=idempotent, service=self.options,
            )
        )  # fmt: skip

    def delete_queue(
        self, queue: str, *, idempotent: bool = False, dry_run: bool = False
    ) -> CommandResult[ServiceAnswers]:
        """Delete a queue with its samples; with `dry_run` return what would be deleted.

        Raises:
            NotFound: the queue does not exist, and `idempotent` is False.
        """
        from qsctl.cli.administer.queue import delete_queue

        return called(lambda: delete_queue(queue, idempotent, consent=_consent(dry_run), service=self.options))

    def flush_queue(self, queue: str, *, select: str = "", dry_run: bool = False) -> CommandResult[ServiceAnswers]:
        """Remove the samples of a queue, all or those that a selector matches.

        Raises:
            NotFound: the queue does not exist.
            UsageError: the selector is not valid.
        """
        from qsctl.cli.administer.queue import flush_queue

        return called(lambda: flush_queue(queue, select, consent=_consent(dry_run), service=self.options))

    def create_subscriber(
        self,
        name: str = "",
        *,
        participant: str = "",
        session: str = "",
        file: FilePath | None = None,
        xml: str | None = None,
        idempotent: bool = False,
    ) -> CommandResult[ServiceAnswers]:
        """Create a shared subscriber in a domain participant; arguments and errors as for `create_queue`."""
        from qsctl.cli.administer.subscriber import create_subscriber

        return called(
            lambda: create_subscriber(name, participant, session, _path(file), xml, idempotent, service=self.options)
        )

    def delete_subscriber(
        self, subscriber: str, *, idempotent: bool = False, dry_run: bool = False
    ) -> CommandResult[ServiceAnswers]:
        """Delete a shared subscriber with its queues and their samples; arguments and errors as for `delete_queue`."""
        from qsctl.cli.administer.subscriber import delete_subscriber

        return called(
            lambda: delete_subscriber(subscriber, idempotent, consent=_consent(dry_run), service=self.options)
        )

    def status(self, queue: str = "") -> CommandResult[Statuses]:
        """Return the counters, throughput and latency of a queue, or of every queue: one row each.

        Each call resets the `change` counters to zero.

        Raises:
            NotFound: the queue does not exist.
        """
        from qsctl.cli.administer.get import statuses_of

        def look() -> Statuses:
            with self.options.open() as administration:
                return statuses_of(administration, queue)

        return called(look)

    def data(self, queue: str = "") -> CommandResult[QueueDataList]:
        """Return the queues that the service hosts: a row for each, with topic, type and resource identifier."""
        from qsctl.cli.administer.get import get_data

        return called(lambda: get_data(queue, service=self.options))

    def messages(
        self, queue: str, *, select: str = "", count: int = 0, types: FilePath | None = None
    ) -> CommandResult[Messages]:
        """Return the samples in a queue, in the queue's order, without consuming them.

        Args:
            queue: name of the queue, as in the commands.
            select: a selector, as in "@sample_queue_status = SENT_MESSAGE_STATUS".
            count: largest number of samples; 0: all.
            types: file that defines the queue's type, to decode payloads as objects.
        """
        from qsctl.cli.administer.get import get_messages

        _check_count("count", count)
        return called(lambda: get_messages(queue, select, count, _path(types), service=self.options))

    def configuration(self) -> CommandResult[LiveConfiguration]:
        """Return the current configuration of the service; `content.xml()` is a file for `apply`."""
        from qsctl.cli.administer.live_configuration import get_config

        return called(lambda: get_config(service=self.options))

    def produce(
        self,
        queue: str,
        payloads: Text | Iterable[Text],
        *,
        lifespan: str = "infinite",
        writer_guid: str = "",
        first_sequence_number: int = 1,
    ) -> CommandResult[ProducedSamples]:
        """Write samples to the topic of a queue; every queue of the topic enqueues its own copy.

        For continuous writing, `qsctl.client.QueueProducer` is faster.

        Args:
            queue: name of a queue or of a topic.
            payloads: one sample or several, octets or text.
            lifespan: longest time of a sample in a queue.
            writer_guid: GUID of the writer, 32 hexadecimal digits; empty: a random one.
            first_sequence_number: sequence number of the first sample; the others follow.

        Returns:
            A row for each queue, with the numbers of samples that it accepted, rejected and did not acknowledge.

        Raises:
            NotFound: the queue or topic does not exist.
            PartlyDone: writing failed after some samples were written.
        """
        from qsctl.cli.samples.produce import OriginOptions, origin_of
        from qsctl.cli.samples.writer import write_all
        from qsctl.client.topics import topic_named

        of = origin_of(
            OriginOptions(lifespan=lifespan, writer_guid=writer_guid, first_sequence_number=first_sequence_number)
        )
        contents = [payloads] if isinstance(payloads, bytes | str) else payloads

        def write() -> ProducedSamples:
            with self.options.open() as administration:
                topic = topic_named(queue, administration.hosted())
                return write_all(administration.connection, topic, map(_octets, contents), of)

        return called(write)

    def consume(self, queue: str, *, count: int = 0, timeout: str = "0s") -> Iterator[ConsumedSample]:
        """Yield samples of a queue; acknowledge or reject each before the next.

        A rejected sample is delivered again in the same iteration until its retries are exhausted. One that is neither
        acknowledged nor rejected returns to the queue after the queue's response timeout, or at `close`.

        Args:
            queue: name of the queue, as in the commands.
            count: largest number of samples; 0: until the queue is empty.
            timeout: longest wait for each sample; other threads cannot use the service during the wait.

        Raises:
            UsageError: the previous sample was neither acknowledged nor rejected.
            NotFound: the queue does not exist.
        """
        from qsctl.core.admin.resolve import short_name

        wait_s = seconds(timeout, "timeout")
        _check_count("count", count)
        with self.options.open() as administration:
            resource = administration.queue_named(queue)
            administration.require_delivering(resource)
        yielded_count = 0
        while not count or yielded_count < count:
            with self.options.open() as administration:
                found = administration.connection.receive(short_name(resource), 1, wait_s)
            if not found:
                return
            sample = ConsumedSample(found[0], self._answer)
            yielded_count += 1
            yield sample
            if not sample.is_answered and yielded_count != count:
                raise UsageError(
                    f"sample {sample.identity} of {queue} was neither acknowledged nor rejected",
                    remedy="Call acknowledge() or reject() before the next sample.",
                )

    @overload
    def producer(self, queue: str) -> QueueProducer[bytes]: ...

    @overload
    def producer(self, queue: str, codec: Codec[Value] | type[Value]) -> QueueProducer[Value]: ...

    def producer(self, queue: str, codec: Codec[Value] | type[Value] | None = None) -> QueueProducer[Value]:
        """Open a producer of a queue over DDS, in the queue's domain; it is closed with this Service.

        One thread uses a client; a thread that ends later than this Service closes its client itself.

        Args:
            queue: name of the queue, as in the commands.
            codec: converts values to payloads; a type: its values are written as JSON; None: values are octets.

        Raises:
            NotFound: the queue does not exist.
            Refused: the service is embedded; `produce` and `consume` work there.
            NoAnswer: the queue was not discovered within ten seconds.
        """
        return self._opened_clients().producer(self._place(queue), codec)

    @overload
    def consumer(self, queue: str, *, unacked_threshold: int | None = None) -> QueueConsumer[bytes]: ...

    @overload
    def consumer(
        self, queue: str, codec: Codec[Value] | type[Value], *, unacked_threshold: int | None = None
    ) -> QueueConsumer[Value]: ...

    def consumer(
        self, queue: str, codec: Codec[Value] | type[Value] | None = None, *, unacked_threshold: int | None = None
    ) -> QueueConsumer[Value]:
        """Open a consumer of a queue over DDS, as `producer` does.

        If an exception leaves the `with` block of this Service, the batch in progress is rejected.

        Args:
            queue: as for `producer`.
            codec: as for `producer`.
            unacked_threshold: threshold of outstanding samples; None: the queue's setting.

        Raises:
            NotFound, Refused, NoAnswer: as for `producer`.
        """
        return self._opened_clients().consumer(self._place(queue), codec, unacked_threshold)

    @overload
    def requester(self, queue: str) -> QueueRequester[bytes, bytes]: ...

    @overload
    def requester(
        self, queue: str, codec: Codec[Request] | type[Request], reply_codec: Codec[Reply] | type[Reply]
    ) -> QueueRequester[Request, Reply]: ...

    def requester(
        self,
        queue: str,
        codec: Codec[Request] | type[Request] | None = None,
        reply_codec: Codec[Reply] | type[Reply] | None = None,
    ) -> QueueRequester[Request, Reply]:
        """Open a requester of a queue that has a reply queue, as `producer` does.

        Args:
            queue: the request queue, as for `producer`.
            codec: codec of the requests, as for `producer`.
            reply_codec: codec of the replies.

        Raises:
            NotFound, Refused, NoAnswer: as for `producer`.
        """
        return self._opened_clients().requester(self._place(queue), codec, reply_codec)

    @overload
    def replier(self, queue: str) -> QueueReplier[bytes, bytes]: ...

    @overload
    def replier(
        self, queue: str, codec: Codec[Request] | type[Request], reply_codec: Codec[Reply] | type[Reply]
    ) -> QueueReplier[Request, Reply]: ...

    def replier(
        self,
        queue: str,
        codec: Codec[Request] | type[Request] | None = None,
        reply_codec: Codec[Reply] | type[Reply] | None = None,
    ) -> QueueReplier[Request, Reply]:
        """Open a replier of a queue that has a reply queue, as `producer` does.

        Args:
            queue: as for `requester`.
            codec: as for `requester`.
            reply_codec: as for `requester`.

        Raises:
            NotFound, Refused, NoAnswer: as for `producer`.
        """
        return self._opened_clients().replier(self._place(queue), codec, reply_codec)

    def _opened_clients(self) -> QueueClients:
        if self._clients is None:
            from qsctl.programs._queue_clients import QueueClients

            self._clients = QueueClients()
        return self._clients

    def _place(self, queue: str) -> Place:
        from qsctl.programs._queue_clients import place_of

        with self.options.open() as administration:
            return place_of(administration, queue)

    def move(
        self,
        queue: str,
        to_queue: str,
        *,
        select: str = "",
        limit: int = 0,
        rate: float = 0.0,
        dry_run: bool = False,
    ) -> CommandResult[MovedSamples]:
        """Move samples to another queue; they keep identity, flags and expiry time.

        Args:
            queue: the source queue.
            to_queue: the destination queue.
            select: a selector; empty: every sample that is not with a consumer.
            limit: largest number of samples; 0: all.
            rate: largest number of samples per second; 0: unlimited.
            dry_run: return the result of the move without making it.

        Raises:
            UsageError: both queues are the same, or their types differ.
            PartlyDone: the move failed after some samples were moved.
        """
        from qsctl.cli.samples.move import TransferOptions, move

        _check_count("limit", limit)
        transfer = TransferOptions(select, limit, rate, dry_run)
        return called(lambda: move(queue, to_queue, transfer=transfer, service=self.options))

    def requeue(
        self,
        queue: str,
        *,
        came_from: str = "",
        reason: str | None = None,
        select: str = "",
        limit: int = 0,
        rate: float = 0.0,
        dry_run: bool = False,
    ) -> CommandResult[MovedSamples]:
        """Move dead letters back into the queues from which they came.

        Args:
            queue: a dead-letter queue.
            came_from: move only dead letters from this queue, as `--from` of the command; empty: from all.
            reason: LIFESPAN or MAX_RETRIES; None: both.
            select: as for `move`.
            limit: as for `move`.
            rate: as for `move`.
            dry_run: as for `move`.

        Raises:
            UsageError: the queue is not a dead-letter queue, or the reason is unknown.
        """
        from qsctl.cli.samples.move import DeathReason, TransferOptions, requeue

        _check_count("limit", limit)
        known = tuple(DeathReason)
        if reason is not None and reason not in known:
            raise UsageError(f"reason {reason!r} does not exist", remedy=f"Give one of {', '.join(known)}.")
        wanted = None if reason is None else DeathReason(reason)
        transfer = TransferOptions(select, limit, rate, dry_run)
        return called(lambda: requeue(queue, came_from, wanted, transfer=transfer, service=self.options))

    def export(
        self,
        queue: str,
        file: FilePath,
        *,
        select: str = "",
        limit: int = 0,
        format: str | None = None,
        types: FilePath | None = None,
        force: bool = False,
    ) -> CommandResult[Exported]:
        """Write the samples of a queue to a file, in jsonl or parquet, without consuming them.

        Raises:
            UsageError: the format is unknown, or the file exists and `force` is False.
        """
        from qsctl.cli.samples.export import export

        _check_count("limit", limit)
        return called(
            lambda: export(
                queue, Path(file), select, limit, _file_format(format), _path(types), force, service=self.options
            )
        )

    def import_(
        self,
        file: FilePath,
        queue: str,
        *,
        format: str | None = None,
        types: FilePath | None = None,
        skip: int = 0,
        limit: int = 0,
        rate: float = 0.0,
        keep_expiry: bool = False,
        keep_flag: bool = False,
        dry_run: bool = False,
    ) -> CommandResult[MovedSamples]:
        """Enqueue the samples of a file that `export` wrote, each once; arguments as the options of `qsctl import`.

        Raises:
            InvalidInput: a line of the file is not a sample; no sample was imported.
            PartlyDone: the import failed after some samples were imported.
        """
        from qsctl.cli.samples.import_ import import_

        _check_count("limit", limit)
        _check_count("skip", skip)
        return called(
            lambda: import_(
                Path(file), queue, _file_format(format), _path(types), skip, limit, rate, keep_expiry, keep_flag,
                dry_run, service=self.options,
            )
        )  # fmt: skip

    def plan(
        self,
        file: FilePath,
        *,
        config_name: str | None = None,
        variables: Mapping[str, object] | None = None,
        domain_id_base: int = 0,
        prune: bool = False,
        replace: bool = False,
        force: bool = False,
    ) -> CommandResult[Planned]:
        """Return the steps that `apply` would take to make the service match a configuration file; nothing is
        changed.
        """
        from qsctl.cli.administer.desired import plan

        options = _desired(config_name, variables, domain_id_base, prune, replace, force)
        return called(lambda: plan(fspath(file), options=options, service=self.options))

    def apply(
        self,
        file: FilePath,
        *,
        config_name: str | None = None,
        variables: Mapping[str, object] | None = None,
        domain_id_base: int = 0,
        prune: bool = False,
        replace: bool = False,
        force: bool = False,
    ) -> CommandResult[Planned]:
        """Make the service match a configuration file: create and change resources, and with `prune` delete others.

        Args:
            file: the configuration.
            config_name: name of its `<queuing_service>`; None: the only one.
            variables: values of `$(NAME)`.
            domain_id_base: number that is added to every domain id.
            prune: delete resources that are not in the file.
            replace: delete and create again the resources that cannot be changed in place.
            force: delete also queues that hold samples.

        Raises:
            Refused: a step is not possible; nothing was changed.
            PartlyDone: the service refused a step after others were done.
        """
        from qsctl.cli.administer.desired import apply

        options = _desired(config_name, variables, domain_id_base, prune, replace, force)
        return called(lambda: apply(fspath(file), options=options, yes=True, service=self.options))

    def wait(
        self,
        queue: str,
        *,
        until: str | Sequence[str] = (),
        empty: bool = False,
        timeout: str = "30s",
        interval: str = "500ms",
    ) -> CommandResult[Waited]:
        """Wait until a queue exists and its status meets conditions; other threads may use the service meanwhile.

        Args:
            queue: name of the queue.
            until: conditions such as "current_message_count=0", all of which must hold.
            empty: wait until the queue holds no sample, and none waits outside a full queue.
            timeout: longest wait.
            interval: time between two polls.

        Raises:
            NoAnswer: the conditions did not hold in time; the message states the last status.
        """
        from qsctl.cli.monitoring.wait import wait

        held = HeldWaitedService(
            service=self.location, timeout=timeout, target=self.options.target, opener=self._opened
        )
        conditions = [until] if isinstance(until, str) else list(until)
        return called(lambda: wait(queue, conditions, empty, interval, service=held))

    def record_start(
        self, folder: FilePath, *, level: str = "messages", max_size: str | None = None, sample: str | None = None
    ) -> CommandResult[RecordingStates]:
        """Begin to record the service's events into a run folder on its machine; arguments as for `qsctl record start`.

        Raises:
            UsageError: a value is invalid.
            Refused: a recording is in progress, or the folder is not empty.
        """
        from qsctl.cli.administer.record import record_start
        from qsctl.cli.administer.recording_options import MAX_DEFAULT, SAMPLE_DEFAULT, RecordLevel

        if level not in tuple(RecordLevel):
            raise UsageError(f"level {level!r} does not exist", remedy=f"Give one of {', '.join(RecordLevel)}.")
        return called(
            lambda: record_start(
                fspath(folder), RecordLevel(level), max_size or MAX_DEFAULT, sample or SAMPLE_DEFAULT,
                service=self.options,
            )
        )  # fmt: skip

    def record_stop(self) -> CommandResult[RecordingStates]:
        """End the recording, and wait until its folder is finished."""
        from qsctl.cli.administer.record import record_stop

        return called(lambda: record_stop(service=self.options))

    def record_status(self) -> CommandResult[RecordingStates]:
        """Return the state of the recording in progress, or else of the last one."""
        from qsctl.cli.administer.record import record_status

        return called(lambda: record_status(service=self.options))

    @contextmanager
    def record(
        self, folder: FilePath, *, level: str = "messages", max_size: str | None = None, sample: str | None = None
    ) -> Iterator[CommandResult[RecordingStates]]:
        """Record the service's events during the block; arguments as for `record_start`."""
        started = self.record_start(folder, level=level, max_size=max_size, sample=sample)
        try:
            yield started
        finally:
            self.record_stop()

    def shutdown(self, *, fresh: bool = False, dry_run: bool = False) -> CommandResult[ServiceAnswers]:
        """Stop the service.

        Args:
            fresh: also remove the stored configuration of an embedded service.
            dry_run: return the result of the shutdown without making it.

        Raises:
            Refused: the service runs inside another program.
        """
        from qsctl.cli.administer.shutdown import shutdown

        return called(lambda: shutdown(service=self.options, fresh=fresh, consent=_consent(dry_run)))

    @contextmanager
    def _opened(self, target: str) -> Iterator[Administration]:
        """Yield the administration for one command; a lock admits one thread at a time.

        Raises:
            Refused: the service was closed, or was opened by the parent of this process.
        """
        if os.getpid() != self._process_id:
            raise Refused(
                f"the Service of {self.location} was opened by the parent of this process",
                remedy="Open one in this process.",
            )
        with self._lock:
            connection = self._connection
            if connection is None:
                raise Refused(f"the Service of {self.location} is closed", remedy="Open another one.")
            try:
                yield Administration(connection, target)
            except (OSError, sqlite3.Error) as error:
                raise Damaged(
                    f"the service of {self.location} cannot use its files: {error}",
                    remedy="Close this Service and open another one: its directory may be gone, or its disk full.",
                ) from error

    def _answer(self, delivery: Delivery, ok: bool) -> None:
        with self._opened(self.options.target) as administration:
            administration.connection.acknowledge(delivery, ok)


@atexit.register
def _close_embedded() -> None:
    """Close what the program left open: once the interpreter is being taken down, nothing can be written."""
    for service in list(_EMBEDDED):
        service._close_at_exit()


def _octets(payload: Text) -> bytes:
    return payload.encode() if isinstance(payload, str) else payload


def _absolute(source: str) -> str:
    return source if source.startswith("str://") else ";".join(str(Path(each).absolute()) for each in source.split(";"))


def _path(file: FilePath | None) -> Path | None:
    return None if file is None else Path(file)


def _consent(dry_run: bool) -> DestructionOptions:
    from qsctl.cli.confirmation import DestructionOptions

    return DestructionOptions(yes=True, dry_run=dry_run)


def _check_count(name: str, count: int) -> None:
    """Raise an error for a negative number, as the command's option does.

    Raises:
        UsageError: the number is negative.
    """
    if count < 0:
        raise UsageError(f"{name} is {count}", remedy="Give a number from 0; 0 is all.")


def _file_format(name: str | None) -> FileFormat | None:
    from qsctl.cli.samples.sample_files import FileFormat

    if name is not None and name not in tuple(FileFormat):
        raise UsageError(f"format {name!r} does not exist", remedy=f"Give one of {', '.join(FileFormat)}.")
    return None if name is None else FileFormat(name)


def _desired(
    config_name: str | None,
    variables: Mapping[str, object] | None,
    domain_id_base: int,
    prune: bool,
    replace: bool,
    force: bool,
) -> DesiredOptions:
    from qsctl.cli.administer.desired import DesiredOptions

    return DesiredOptions(config_name, assignments(variables), domain_id_base, prune, replace, force)
