"""A participant in a DDS domain, and the domain's configuration on this machine.

Decides: the interface, discovery, lease and cache settings of Cyclone DDS. A domain is configured once per process; a
second participant shares the configuration. The default is loopback without multicast.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from cyclonedds.core import (
    DDSException,
    Entity,
    GuardCondition,
    InstanceState,
    Qos,
    ReadCondition,
    SampleState,
    ViewState,
    WaitSet,
)
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.internal import DDS
from cyclonedds.qos import Policy
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from qsctl.config.qos_libraries.transport_properties import DOMAIN_ID_MAX, TcpTransport
from qsctl.endings import leaves
from qsctl.errors import Refused, Unavailable, UsageError
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import Boundary
from qsctl.transport.dds.diagnosis.library_log import LIBRARY_LOG
from qsctl.transport.dds.peers.peer_addresses import addresses_of
from qsctl.transport.dds.wire.raw import ONE_THREAD_AT_A_TIME, batching_functions, close_entity

LEASE_DURATION_NS: Final[Nanoseconds] = 5 * SECOND_NS
"""Time after which a vanished process counts as gone; a process that leaves in good order is noticed at once."""

ANNOUNCEMENT_NS: Final[Nanoseconds] = SECOND_NS
"""Interval at which a participant announces itself; with a short lease, a quarter of the lease.

By default the library does not contact a peer again that did not answer the first time, so that a lost datagram would
separate two processes for ever; and it renews a lease of 5 s after 4 s, so that a process delayed by a second would
count as gone.
"""

LOOPBACK: Final = "lo"

TOPIC_ATTEMPTS: Final = 4
"""Number of attempts to create a topic when the library reports a bad parameter, as it does for an invalid name.

It searches its table of types without a lock, and may find an incomplete type for some microseconds while a peer with
other types is discovered.
"""

TOPIC_PAUSE_S: Final = 0.005

_FEW_WORDS: Final = frozenset({"none", "severe", "warning"})
"""Verbosities of the library whose lines are reported like ours: counted, at a limited rate."""


@dataclass(frozen=True, slots=True)
class DomainSettings:
    """The settings with which a process joins a domain.

    `peers` are the `address[:port]` of hosts that multicast does not reach; names are resolved when the domain is
    entered.
    """

    interface: str = LOOPBACK
    peers: tuple[str, ...] = ()
    lease_duration_ns: Nanoseconds = LEASE_DURATION_NS
    tcp: TcpTransport | None = None
    participant_index_max: int = 99
    verbosity: str = "severe"
    """Verbosity of the log that Cyclone DDS itself writes to standard error, in its own format."""

    def document(self, *, stands_for: int | None = None) -> str:
        """Return the XML configuration of Cyclone DDS.

        Args:
            stands_for: the domain id by which peers identify the domain, if this process uses another id internally.
        """
        interface = (
            f"<NetworkInterface address={quoteattr(self.interface)}/>"
            if self.interface[:1].isdigit()
            else f"<NetworkInterface name={quoteattr(self.interface)}/>"
        )
        # Discovery never gives up a silent peer: it may be started, or its host switched on, days later.
        peers = "".join(f'<Peer address={quoteattr(peer)} PruneDelay="inf"/>' for peer in self.peers)
        external = ""
        tcp = ""
        if self.tcp is not None:
            tcp = f"<TCP><Enable>true</Enable><Port>{self.tcp.listen_port or -1}</Port><NoDelay>true</NoDelay></TCP>"
            if self.tcp.public_address:
                host = self.tcp.public_address.rpartition(":")[0] or self.tcp.public_address
                external = f"<ExternalNetworkAddress>{host}</ExternalNetworkAddress>"
        if self.interface == LOOPBACK and not peers and self.tcp is None:
            peers = '<Peer address="127.0.0.1" PruneDelay="inf"/>'
        # Fragments as large as messages: else a reader puts a frame of 15 kB together from a dozen.
        sizes = "<MaxMessageSize>65000B</MaxMessageSize><FragmentSize>60000B</FragmentSize>"
        return (
            f'<CycloneDDS><Domain Id="any"><General><Interfaces>{interface}</Interfaces>'
            f"<AllowMulticast>false</AllowMulticast>{sizes}{external}"
            f"{'<Transport>tcp</Transport>' if self.tcp else ''}</General>"
            f"<Discovery>{'' if stands_for is None else f'<ExternalDomainId>{stands_for}</ExternalDomainId>'}"
            "<ParticipantIndex>auto</ParticipantIndex>"
            f"<MaxAutoParticipantIndex>{self.participant_index_max}</MaxAutoParticipantIndex>"
            f"<LeaseDuration>{self.lease_duration_ns}ns</LeaseDuration>"
            f"<SPDPInterval>{min(ANNOUNCEMENT_NS, self.lease_duration_ns // 4)}ns</SPDPInterval>"
            f"<Peers>{peers}</Peers></Discovery>"
            # A reader drops what comes before the first heartbeat, and asks for both 10 ms after it saw the writer, or
            # when the writer repeats itself. With these it takes 1 to 10 ms, not 10 to 200, until the two are in step.
            '<Internal><HeartbeatInterval minsched="5 ms" max="200 ms">5 ms</HeartbeatInterval>'
            "<NackDelay>10 ms</NackDelay><PreEmptiveAckDelay>1 ms</PreEmptiveAckDelay>"
            "<Watermarks><WhcHigh>8MiB</WhcHigh><WhcHighInit>8MiB</WhcHighInit><WhcLow>4MiB</WhcLow><WhcAdaptive>false</WhcAdaptive></Watermarks>"
            f"</Internal>{tcp}<Tracing><OutputFile>stderr</OutputFile><Verbosity>{self.verbosity}</Verbosity></Tracing>"
            "</Domain></CycloneDDS>"
        )


class _Domains:
    """The domains configured in this process. The objects must stay referenced: collecting one deletes its entities.

    A process that ends by `endings.leave` keeps a domain that it has left, and uses it again: Cyclone DDS 11.0.1
    sometimes aborts when a domain is deleted whose table of types is not empty (eclipse-cyclonedds/cyclonedds#2426).
    Other processes delete the domain, because they may continue for long without it and must not answer for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, tuple[Domain, str, int]] = {}

    def enter(self, domain_id: int, settings: DomainSettings, *, stands_for: int | None = None) -> None:
        document = settings.document(stands_for=stands_for)
        with self._lock:
            known = self._open.get(domain_id)
            if known is not None and not known[2] and known[1] != document:
                close_entity(known[0])
                known = None
            if known is None:
                numeric = replace(settings, peers=addresses_of(settings.peers))
                # A more verbose log of the library is written to standard error unchanged.
                instead = LIBRARY_LOG.instead_of_stderr if settings.verbosity in _FEW_WORDS else contextlib.nullcontext
                with instead():
                    domain = Domain(domain_id, numeric.document(stands_for=stands_for))
                batching = batching_functions()
                if batching is not None:
                    batching[0](True)
                self._open[domain_id] = (domain, document, 1)
                return
            domain, configured, users = known
            if configured != document:
                raise Refused(
                    f"DDS domain {domain_id} is in use in this process with another interface, lease or transport",
                    remedy="Give all participants of a domain the same settings, or use another domain id.",
                )
            self._open[domain_id] = (domain, configured, users + 1)

    def leave(self, domain_id: int) -> None:
        with self._lock:
            domain, document, users = self._open[domain_id]
            if users > 1 or leaves():
                self._open[domain_id] = (domain, document, users - 1)
                return
            del self._open[domain_id]
            close_entity(domain)

    def user_count(self, domain_id: int) -> int:
        with self._lock:
            return self._open[domain_id][2] if domain_id in self._open else 0


_DOMAINS = _Domains()


def participant_count(domain_id: int) -> int:
    """Return the number of participants of this process in a domain."""
    return _DOMAINS.user_count(domain_id)


class Waiter:
    """A waitset on which a thread sleeps, for readers of any participants and domains of this process."""

    def __init__(self) -> None:
        owner: Any = _Library()
        self._waitset: WaitSet | None = WaitSet(owner)
        self._guard: GuardCondition | None = GuardCondition(owner)
        self._waitset.attach(self._guard)
        self._is_woken = False
        self._wakes = threading.RLock()
        """Held while the guard is set, so that no other thread deletes it; reentrant, for signal handlers."""
        self._library = _waitset_functions()
        self._conditions: dict[int, tuple[ReadCondition, object | None]] = {}
        """Watched read conditions and their owners, by the reference that the waitset returns."""
        self._muted: set[int] = set()
        self._found: Any = (ctypes.c_void_p * 16)()

    def wait(self, timeout_ns: Nanoseconds) -> None:
        """Sleep until a watched reader has data, `wake` is called, or the time is over."""
        if self._waitset is not None:
            self._waitset.wait(max(timeout_ns, 0))
        if self._is_woken and self._guard is not None:
            self._is_woken = False
            self._guard.take()

    def wake(self) -> None:
        """End a `wait` of another thread, or the next one of this thread; do nothing after `close`."""
        with self._wakes:
            if self._guard is not None:
                self._guard.set(True)
                # Behind the guard: a wait that ends in between leaves it for the next one to take.
                self._is_woken = True

    def watch(self, reader: DataReader[Any], owner: object | None = None) -> ReadCondition:
        """Let data in a reader end waits, until the returned condition is passed to `unwatch`.

        Args:
            reader: the reader to watch.
            owner: the object that `ready` returns while the reader has data.
        """
        condition = ReadCondition(reader, ViewState.Any | InstanceState.Any | SampleState.Any)
        self._conditions[condition._ref] = (condition, owner)
        self._attach(condition._ref)
        return condition

    def unwatch(self, condition: ReadCondition) -> None:
        """Stop watching a reader."""
        reference = condition._ref
        if self._conditions.pop(reference, None) is not None:
            self._detach(reference)
            self._muted.discard(reference)
        close_entity(condition)

    def mute(self, condition: ReadCondition, *, is_muted: bool) -> None:
        """Suspend or resume a watched reader, whose data is left unread for a while: suspended, it ends no wait."""
        reference = condition._ref
        if is_muted is (reference in self._muted) or reference not in self._conditions:
            return
        if is_muted:
            self._muted.add(reference)
            self._detach(reference)
        else:
            self._muted.remove(reference)
            self._attach(reference)

    def ready(self) -> list[Any]:
        """Return the owners of the watched readers that have data.

        A single call of the library, however many readers are watched.
        """
        if self._waitset is None:
            return []
        if len(self._conditions) >= len(self._found):
            self._found = (ctypes.c_void_p * (2 * len(self._conditions)))()
        count = self._library.dds_waitset_wait(self._waitset._ref, self._found, len(self._found), 0)
        owners: list[Any] = []
        for reference in self._found[: max(0, min(count, len(self._found)))]:
            watched = self._conditions.get(reference or 0)
            if watched is not None and watched[1] is not None:
                owners.append(watched[1])
        return owners

    def _attach(self, reference: int) -> None:
        if self._waitset is not None:
            code = self._library.dds_waitset_attach(self._waitset._ref, reference, reference)
            if code < 0:
                raise DDSException(code, "while a reader was to be watched")

    def _detach(self, reference: int) -> None:
        if self._waitset is not None:
            self._library.dds_waitset_detach(self._waitset._ref, reference)

    def close(self) -> None:
        """Delete the waitset."""
        for reference in self._conditions.keys() - self._muted:
            self._detach(reference)
        self._conditions.clear()
        self._muted.clear()
        close_entity(self._waitset)
        self._waitset = None
        with self._wakes:
            guard, self._guard = self._guard, None
        close_entity(guard)


@functools.cache
def _waitset_functions() -> Any:
    """Return the library's waitset functions: the binding does not return which conditions are true."""
    library = ctypes.CDLL(DDS._dll_handle._name)  # a handle of its own, see `announcements`
    library.dds_waitset_attach.argtypes = [ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p]
    library.dds_waitset_detach.argtypes = [ctypes.c_int32, ctypes.c_int32]
    library.dds_waitset_wait.argtypes = [ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64]
    for function in (library.dds_waitset_attach, library.dds_waitset_detach, library.dds_waitset_wait):
        function.restype = ctypes.c_int32
    return library


class _Library:
    """The library itself as the owner of an entity: `DDS_CYCLONEDDS_HANDLE`, which exists once a domain does."""

    _ref: Final = 0x7FFF_0100


class Participant:
    """A domain participant with its topics.

    Args:
        domain_id: the DDS domain.
        settings: of this process in the domain.
        name: the entity name, which DDS tools show.
        waiter: shared with other participants; by default its own.
        user_data: the USER_DATA policy, which other participants read.
        boundary: checks the messages that its readers receive; shared with other participants, or its own.
        instance: number of the library's instance of the domain in this process. Each instance has receiving threads of
            its own; peers see them all as one domain.

    Raises:
        UsageError: the domain id is out of range.
        Refused: the domain runs in this process with other settings.
        Unavailable: Cyclone DDS cannot start, for example on an interface that does not exist.
    """

    def __init__(
        self,
        domain_id: int,
        settings: DomainSettings | None = None,
        *,
        name: str = "",
        waiter: Waiter | None = None,
        user_data: Any = None,
        boundary: Boundary | None = None,
        instance: int = 0,
    ) -> None:
        if not 0 <= domain_id <= DOMAIN_ID_MAX:
            raise UsageError(
                f"domain id {domain_id} does not exist", remedy=f"Domain ids run from 0 to {DOMAIN_ID_MAX}."
            )
        self.domain_id = domain_id
        self.name = name
        self._owns_boundary = boundary is None
        self.boundary = boundary if boundary is not None else Boundary()
        self.settings = settings or DomainSettings()
        self._own_id = domain_id + instance * (DOMAIN_ID_MAX + 1)
        try:
            _DOMAINS.enter(self._own_id, self.settings, stands_for=domain_id if instance else None)
        except DDSException as error:
            raise self._cannot_start(error) from error
        try:
            policies = [*([Policy.EntityName(name)] if name else ()), *([user_data] if user_data is not None else ())]
            qos = Qos(*policies) if policies else None
            self.entity: DomainParticipant | None = DomainParticipant(self._own_id, qos=qos)
        except DDSException as error:
            _DOMAINS.leave(self._own_id)
            raise self._cannot_start(error) from error
        LIBRARY_LOG.listen(self._own_id, self.boundary)
        self._owns_waiter = waiter is None
        self.waiter = waiter if waiter is not None else Waiter()
        self._topics: dict[str, Topic[Any]] = {}
        self._undertaker: ThreadPoolExecutor | None = None

    def _cannot_start(self, error: DDSException) -> Unavailable:
        if self.settings.tcp is not None:
            return Unavailable(
                f"DDS does not start in domain {self.domain_id} over TCP: {error.msg}",
                remedy="This build of Cyclone DDS has perhaps no TCP (its wheels have none): remove the "
                "dds.transport.tcp properties, or install a build with TCP.",
            )
        return Unavailable(
            f"DDS does not start in domain {self.domain_id} on interface {self.settings.interface!r}: {error.msg}",
            remedy="Choose an interface of `ip address`; 'lo' is the loopback.",
        )

    def topic(self, name: str, data_type: type[Any]) -> Topic[Any]:
        """Return the topic of this name and type; it is created at the first call.

        Raises:
            Refused: the name is used with another type here, or is not valid for a topic.
        """
        known = self._topics.get(name)
        if known is not None:
            if known.data_type is not data_type:
                raise Refused(
                    f"topic {name!r} is used with the types {known.data_type.__name__} and {data_type.__name__}",
                    remedy="Use another topic name.",
                )
            return known
        topic = self._topics[name] = self._make_topic(name, data_type)
        return topic

    def has_topic(self, name: str) -> bool:
        """Return whether `topic` has created a topic of this name, which exists until the participant is closed."""
        return name in self._topics

    def own_topic(self, name: str, data_type: type[Any]) -> Topic[Any]:
        """Return a new topic that the caller must close; the participant keeps no reference.

        Raises:
            Refused: as from `topic`.
        """
        if name in self._topics:
            self.topic(name, data_type)
        return self._make_topic(name, data_type)

    def _make_topic(self, name: str, data_type: type[Any]) -> Topic[Any]:
        assert self.entity is not None
        attempt = 0
        while True:
            attempt += 1
            try:
                with ONE_THREAD_AT_A_TIME:
                    return Topic(self.entity, name, data_type)
            except DDSException as error:
                if attempt == TOPIC_ATTEMPTS or error.code != DDSException.DDS_RETCODE_BAD_PARAMETER:
                    raise Refused(
                        f"{name!r} cannot be a DDS topic: {error.msg}", remedy="Avoid spaces, *, ? and #."
                    ) from error
            time.sleep(TOPIC_PAUSE_S)

    def discard(self, *entities: Entity | None) -> None:
        """Delete entities in a background thread, one after the other.

        Deleting a writer waits until its readers have received its data or are considered gone: up to a second, in
        which a service must serve other peers.
        """
        if self._undertaker is None:
            self._undertaker = ThreadPoolExecutor(1, thread_name_prefix="qsctl-undertaker")
        for entity in entities:
            self._undertaker.submit(close_entity, entity)

    def close(self) -> None:
        """Delete all entities of the participant and leave the domain. Peers see it at once."""
        if self.entity is None:
            return
        if self._owns_waiter:
            self.waiter.close()
        LIBRARY_LOG.forget(self._own_id, self.boundary)
        if self._owns_boundary:
            self.boundary.close()
        self._topics.clear()
        if self._undertaker is not None:
            self._undertaker.shutdown()
        close_entity(self.entity)
        self.entity = None
        _DOMAINS.leave(self._own_id)
