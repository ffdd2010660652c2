"""The numbers in a listing's State column: their meaning, and the operator's remedy.

Decides: names, meanings and remedies. Numbers up to 20 are places where a message waits; those from 100 on are reasons
for which it is in the error database.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from qsctl.core.integration.administration import keeper_of
from qsctl.core.integration.message import STATE_NAMES, State


class StateHolder(NamedTuple):
    """The thread that holds the messages of a state."""

    side: str
    """`source`, `destination` or `translation`."""


SOURCE: Final = StateHolder("source")
DESTINATION: Final = StateHolder("destination")
TRANSLATION: Final = StateHolder("translation")


class StateMeaning(NamedTuple):
    """The meaning of one number in the column State, with the operator's remedy."""

    code: int
    name: str
    meaning: str
    remedy: str
    holder: StateHolder | None = None
    """The thread that holds such a message; None: the message is in the error database."""

    @property
    def stop_first(self) -> str | None:
        """The thread, or the whole process, that must stop before such a message is deleted; None: neither."""
        if self.holder is None:
            return None
        return str(keeper_of(State(self.code)))


LAST_QUEUE: Final = 99
"""Numbers up to here are places; from 100 on, errors."""


def _place(state: State, meaning: str, remedy: str, holder: StateHolder | None) -> StateMeaning:
    return StateMeaning(int(state), STATE_NAMES[state], meaning, remedy, holder)


_PLACES: Final = (
    _place(State.INBOUND_PRE_TPS, "read from the connection, stored, waits for the inbound procedures",
           "If it grows: an inbound procedure is slow or loops.", SOURCE),
    _place(State.INBOUND_POST_TPS, "produced by the inbound procedures, waits to be sent to translation",
           "If it grows: the process is busy, or translation is behind.", SOURCE),
    _place(State.SENT_TO_TRANSLATION, "between the inbound thread and translation",
           "Wait; after a restart it is back in its former queue.", SOURCE),
    _place(State.STAGED_AT_TRANSLATION, "received by translation, not yet in its queue", "Wait.", TRANSLATION),
    _place(State.PRE_TRANSLATION, "waits to be routed and translated",
           "If it grows: translation is the bottleneck, look at its time a message.", TRANSLATION),
    _place(State.IN_TRANSLATION, "is routed and translated; so are results in the route-detail and partial queues",
           "If one stays: its translation loops or crashes the process. Stop the process, take it out.", TRANSLATION),
    _place(State.POST_TRANSLATION, "translated, its destination thread is stopped or does not take it",
           "Start the destination thread. To delete: stop the whole process first.", TRANSLATION),
    _place(State.SENT_TO_DESTINATION, "between translation and the destination thread",
           "Wait; after a restart it is back in post-translation.", TRANSLATION),
    _place(State.STAGED_AT_DESTINATION, "received by the destination thread, not yet in its queue", "Wait.",
           DESTINATION),
    _place(State.OUTBOUND_PRE_TPS, "waits for the outbound procedures",
           "If it grows: an outbound procedure is slow or loops.", DESTINATION),
    _place(State.OUTBOUND_POST_TPS, "waits to be delivered: the connection is down, slow, or waits for a reply",
           "Bring the remote system back. To delete: stop the outbound thread first.", DESTINATION),
    _place(State.FORWARD_PRE_TPS, "forwarded, waits for procedures", "As 10.", DESTINATION),
    _place(State.FORWARD_POST_TPS, "forwarded, waits to be delivered", "As 11.", DESTINATION),
    _place(State.DELIVERED, "delivered; the reply, or its removal, is outstanding",
           "If it stays: the remote system does not reply.", DESTINATION),
    _place(State.FAILED_DELIVERY, "could not be delivered; the procedures for that decide", "Look at the thread's log.",
           DESTINATION),
    _place(State.RESERVED_FOR_REPLY, "kept until the reply to it is in", "If it stays: no reply came.", DESTINATION),
    _place(State.PRE_WRITE, "being written: after a crash it may be at the destination already",
           "Ask the remote system before you resend or delete it.", DESTINATION),
    _place(State.UNBACKED, "in memory alone, listed for completeness", "It does not survive a restart.", SOURCE),
    _place(State.JAVA_INBOUND, "in an inbound protocol driver in Java", "Look at the driver's log.", SOURCE),
    _place(State.JAVA_OUTBOUND, "in an outbound protocol driver in Java", "Look at the driver's log.", DESTINATION),
)  # fmt: skip

_TRX: Final = "Correct the thread's transaction id, or its routes; then resend."
_ROUTE: Final = "Correct the route or the site's configuration; then resend."
_TPS: Final = "Correct the procedure; then resend."
_XLT: Final = "Correct the translation, or the data in a copy; then resend."
_DRIVER: Final = "Correct the procedure of the protocol thread; then resend outbound."
_CHARSET: Final = "Correct the thread's encoding, or the data; then resend."
_INTERNAL: Final = "Check the site's configuration and its files; then resend."

_ERRORS: Final = (
    StateMeaning(100, "no transaction id", "the transaction id could not be determined", _TRX),
    StateMeaning(101, "unsupported transaction id", "no route is for its transaction id", _TRX),
    StateMeaning(103, "transaction id: procedure failed", "the procedure that determines it failed", _TPS),
    StateMeaning(104, "no destination for the reply", "the thread that the reply is for is unknown", _ROUTE),
    StateMeaning(105, "no destination for the message", "the destination thread is unknown", _ROUTE),
    StateMeaning(106, "gateway routing not allowed", "it would leave by a gateway that is not allowed", _ROUTE),
    StateMeaning(107, "wrong remote ICL server", "its destination changed in the configuration while it waited",
                 _ROUTE),
    StateMeaning(108, "wrong destination", "the destination does not take it", _ROUTE),
    StateMeaning(200, "inbound reply procedure failed", "an inbound procedure for replies ended with an error", _TPS),
    StateMeaning(201, "inbound data procedure failed", "an inbound procedure for data ended with an error", _TPS),
    StateMeaning(202, "outbound reply procedure failed", "an outbound procedure for replies ended with an error", _TPS),
    StateMeaning(203, "outbound data procedure failed", "an outbound procedure for data ended with an error", _TPS),
    StateMeaning(204, "forward reply procedure failed", "a procedure for forwarded replies ended with an error", _TPS),
    StateMeaning(205, "forward data procedure failed", "a procedure for forwarded data ended with an error", _TPS),
    StateMeaning(300, "translation not loadable", "the file of the translation cannot be loaded", _XLT),
    StateMeaning(301, "translation: internal failure", "the translator itself failed", _XLT),
    StateMeaning(302, "translation: called procedure failed", "a procedure that the translation calls failed", _XLT),
    StateMeaning(303, "translation: called procedure aborted", "a procedure ended the translation on purpose", _XLT),
    StateMeaning(304, "translation: no data fetched", "a field could not be read", _XLT),
    StateMeaning(305, "translation: no data stored", "a field could not be written", _XLT),
    StateMeaning(306, "translation: copy failed", "a bulk copy failed", _XLT),
    StateMeaning(307, "translation: input invalid", "the message does not fit the input format", _XLT),
    StateMeaning(308, "translation: output invalid", "the result does not fit the output format", _XLT),
    StateMeaning(309, "translation: no default", "a default value could not be read", _XLT),
    StateMeaning(310, "translation: arithmetic failed", "a calculation failed", _XLT),
    StateMeaning(311, "translation: no output values", "a procedure set no output values", _XLT),
    StateMeaning(312, "translation: numbers not comparable", "a comparison of numbers failed", _XLT),
    StateMeaning(313, "translation: texts not comparable", "a comparison of texts failed", _XLT),
    StateMeaning(314, "translation: XSLT failed", "the style sheet failed", _XLT),
    StateMeaning(400, "protocol startup failed", "the thread's connection could not be started", _DRIVER),
    StateMeaning(401, "acknowledgment procedure failed", "the procedure for ACK and NAK failed", _DRIVER),
    StateMeaning(402, "procedure after sending failed", "the procedure for successful deliveries failed", _DRIVER),
    StateMeaning(403, "procedure after failure failed", "the procedure for failed deliveries failed", _DRIVER),
    StateMeaning(404, "reply procedure failed", "the procedure that makes replies failed", _DRIVER),
    StateMeaning(405, "too many retries", "delivery was tried as often as is allowed",
                 "Bring the remote system back; then resend outbound."),
    StateMeaning(406, "startup: procedure after sending failed", "it failed as the thread started", _DRIVER),
    StateMeaning(407, "startup: procedure after failure failed", "it failed as the thread started", _DRIVER),
    StateMeaning(408, "driver procedure failed", "a procedure of the protocol driver failed", _DRIVER),
    StateMeaning(409, "pre-write procedure failed", "the procedure before writing failed", _DRIVER),
    StateMeaning(410, "reserved message not recovered", "an outbound message that waited for a reply was not recovered",
                 "Ask the remote system whether it has it; then resend or delete."),
    StateMeaning(414, "read procedure failed", "the driver's own procedure for reading failed", _DRIVER),
    StateMeaning(415, "write procedure failed", "the driver's own procedure for writing failed", _DRIVER),
    StateMeaning(416, "inbound encoding failed", "it does not fit the encoding of its inbound thread", _CHARSET),
    StateMeaning(417, "outbound encoding failed", "it does not fit the encoding of its outbound thread", _CHARSET),
    StateMeaning(418, "server connection gone", "the connection that it was for no longer exists",
                 "Let the client connect again; then resend outbound."),
    StateMeaning(500, "data not readable", "the stored data of the message is damaged",
                 "Ask the source to send it again; delete this one."),
    StateMeaning(1000, "route did not start", "the route could not be started", _INTERNAL),
    StateMeaning(1001, "route configuration wrong", "the route's configuration is wrong", _INTERNAL),
    StateMeaning(1002, "no route configuration", "the source has no routes", _INTERNAL),
    StateMeaning(1003, "route detail wrong", "a detail of the route is wrong", _INTERNAL),
    StateMeaning(1004, "format wrong", "the format that the route names is wrong", _INTERNAL),
)  # fmt: skip

STATES: Final[Mapping[int, StateMeaning]] = {each.code: each for each in (*_PLACES, *_ERRORS)}
"""Every number that is known, in order."""


def meaning_of(code: int) -> StateMeaning:
    """Return the meaning of a number; an unknown one is named `unknown queue` or `unknown error`."""
    known = STATES.get(code)
    if known is not None:
        return known
    kind = "queue" if code <= LAST_QUEUE else "error"
    return StateMeaning(
        code, f"unknown {kind} {code}", "an unknown number", "Look it up in the vendor's documentation."
    )


def is_error(code: int) -> bool:
    """Return whether a message with this number belongs in the error database."""
    return code > LAST_QUEUE
