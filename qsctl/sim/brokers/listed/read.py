"""Recognition of the tool that wrote a file, and the queues in it.

JSON is known by its keys, text by its heading. A file may have a terminal's text around the output, and several outputs
one behind the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from qsctl.declared.problems import ProblemList, error_at
from qsctl.profiles.listings.captures import decoded
from qsctl.profiles.listings.problems import unread
from qsctl.profiles.listings.terminal import shown_lines
from qsctl.sim.brokers.listed import _kafka as kafka
from qsctl.sim.brokers.listed import _nats as nats
from qsctl.sim.brokers.listed import _rabbitmq as rabbitmq
from qsctl.sim.brokers.listed import _sqs as sqs
from qsctl.sim.brokers.listed._documents import ListedObject
from qsctl.sim.brokers.listed.model import ForeignQueue, ForeignQueues

LIMIT_BYTES: Final = 16 * 1024 * 1024
ROWS_MAX: Final = 200_000
QUEUES_MAX: Final = 10_000
KNOWN: Final = (
    "`rabbitmqctl list_queues` as text or JSON, RabbitMQ definitions, `nats consumer info --json`, `nats stream info "
    "--json`, SQS queue attributes in JSON, `kafka-consumer-groups --describe`"
)
_OF_DEFINITIONS: Final = ("rabbit_version", "rabbitmq_version", "policies", "exchanges", "bindings", "vhosts")
"""Keys beside the queues of exported definitions; which of them are there depends on what was exported."""
_BEGINS: Final = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)
_NEXT: Final = re.compile(r"\s*(?=[{\[])")
_NOISE: Final = re.compile(r"\s*$|Timeout: |Warning|\[?warn|Consumer group .* has no active|\$ |#|\.\.\.done", re.ASCII)
"""Lines around a table that belong to no row: blank ones, prompts, and the tools' remarks about themselves."""


def read_queues(data: bytes, file: str) -> ForeignQueues:
    """Return the queues of a file's content.

    Args:
        data: at most `LIMIT_BYTES`; UTF-8, or UTF-16 with a byte order mark.
        file: the name for problems.

    Raises:
        InvalidFile: it is of no known tool, or has no queue: with the line, what was found and what is allowed.
    """
    if len(data) > LIMIT_BYTES:
        raise unread(
            [error_at(file, 0, "the file is too large", found=f"{len(data)} bytes", allowed=f"{LIMIT_BYTES} bytes")]
        )
    text, bad_line, bad_byte = decoded(data)
    if not text.strip():
        raise unread([error_at(file, 0, "the file is empty", allowed=KNOWN)])
    findings = ProblemList(file)
    if bad_line:
        findings.add(bad_line, "this is not UTF-8", bad_byte, "UTF-8")
    begins = _BEGINS.search(text)
    lines = _table_lines(text, findings)
    found = list(islice(_tables(lines, findings), QUEUES_MAX + 1) if lines else ())
    if begins is not None and not found:
        found = list(islice(_documents(text, begins.end(), findings), QUEUES_MAX + 1))
    if not found:
        raise unread(
            findings.problems or [error_at(file, 1, "no queue is listed in it", found=text.strip()[:80], allowed=KNOWN)]
        )
    if len(found) > QUEUES_MAX:
        findings.add(0, "further queues are passed over", allowed=f"at most {QUEUES_MAX}")
    return ForeignQueues(tuple(found[:QUEUES_MAX]), findings.notes)


def _table_lines(text: str, findings: ProblemList) -> list[tuple[int, str]]:
    """Return the lines from the first heading on, with their numbers; none where there is no table."""
    shown, numbers = shown_lines(text)
    lines = shown.split("\n", ROWS_MAX)
    if len(lines) > ROWS_MAX:
        findings.add(ROWS_MAX + 1, "further lines are passed over", allowed=f"at most {ROWS_MAX}")
        lines.pop()
    first = next((at for at, line in enumerate(lines) if _tool(line) is not None), None)
    rows = [
        (numbers[at] if numbers else at + 1, line)
        for at, line in enumerate(lines[first or 0 :], first or 0)
        if not _NOISE.match(line)
    ]
    return rows if first is not None or all(rabbitmq.is_row(line) for _, line in rows) else []


def _tables(lines: list[tuple[int, str]], findings: ProblemList) -> Iterator[ForeignQueue]:
    """Yield the queues of the tables, each up to the heading of another tool's."""
    starts = [at for at, (_, line) in enumerate(lines) if _tool(line) is not None]
    begins = 0
    for at in [*starts[1:], len(lines)]:
        if at < len(lines) and _tool(lines[at][1]) is _tool(lines[begins][1]):
            continue
        yield from (_tool(lines[begins][1]) or rabbitmq).read_table(lines[begins:at], findings)
        begins = at


def _tool(line: str) -> Any:
    if kafka.is_heading(line):
        return kafka
    return rabbitmq if rabbitmq.is_heading(line) or rabbitmq.is_announced(line) else None


def _documents(text: str, start: int, findings: ProblemList) -> Iterator[ForeignQueue]:
    """Yield the queues of the documents of JSON in a text."""
    decoder = json.JSONDecoder()
    at, counted, line = start, 0, 1
    while True:
        line += text.count("\n", counted, at)
        counted = at
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else "it is cut, or no JSON"
            findings.add(line, f"the document cannot be read: {reason}", text[at : at + 80].strip())
            return
        yield from _of_document(document, line, findings)
        begins = _NEXT.match(text, at) or _BEGINS.search(text, at)
        if begins is None:
            return
        at = begins.end()


def _of_document(document: object, line: int, findings: ProblemList) -> Iterator[ForeignQueue]:
    """Yield the queues of a document: of one object, or of a list of them."""
    if isinstance(document, list):
        others = [each for each in document if not isinstance(each, dict) or not _is_rabbitmq(each)]
        if document and not others:
            yield from rabbitmq.read_queues(document, line, findings)
            return
        for each in document:
            if isinstance(each, dict):
                yield from _of_object(ListedObject(line, each, findings))
        return
    if isinstance(document, dict):
        yield from _of_object(ListedObject(line, document, findings))


def _is_rabbitmq(row: dict[str, Any]) -> bool:
    return "name" in row and "config" not in row


def _of_object(document: ListedObject) -> Iterator[ForeignQueue]:
    values = document.values
    found: ForeignQueue | None = None
    if nats.is_consumer(document):
        found = nats.consumer_of(document)
    elif nats.is_stream(document):
        found = nats.stream_of(document)
    elif sqs.is_attributes(document):
        found = sqs.queue_of(document)
    elif isinstance(values.get("queues"), list) and not values.keys().isdisjoint(_OF_DEFINITIONS):
        yield from rabbitmq.read_definitions(document)
        return
    else:
        for key in ("consumers", "streams", "items", "queues"):
            inner = values.get(key)
            if isinstance(inner, list):
                yield from _of_document(inner, document.line, document.findings)
                return
        document.findings.add(
            document.line,
            "the object is of another kind",
            found=", ".join(sorted(map(str, values))[:8])[:80],
            allowed=KNOWN,
        )
    if found is not None:
        yield found
