"""Sample selectors, as a peer sends them: parsed, or refused with a `SelectorSyntaxError`."""

from __future__ import annotations

import contextlib

from qsctl.core.selector.parse import SelectorSyntaxError, parse_selector

DICTIONARY = (
    b"@sample_queue_status",
    b"@original_sample_identity.writer_guid.value",
    b"@original_sample_identity.sequence_number",
    b"UNDELIVERED_MESSAGE_STATUS",
    b"SENT_MESSAGE_STATUS",
    b" AND ",
    b" OR ",
    b"NOT ",
    b"<>",
    b"TRUE",
    b"&hex(",
    b"0x",
)


def one_input(data: bytes) -> None:
    with contextlib.suppress(SelectorSyntaxError):
        parse_selector(data.decode("utf-8", errors="replace"))
