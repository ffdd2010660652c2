"""RabbitMQ: the output of `rabbitmqctl list_queues`, as text and as JSON, and exported definitions.

A listing has a heading where columns were named, else the columns name and messages; `arguments` are Erlang's terms in
the text. JSON of the management API (`GET /api/queues`, `rabbitmqadmin -f raw_json list queues`) has the same names,
and rates of publishing with them. Definitions have queues with their arguments, and policies.

A limit that the arguments and a policy both set is the lower of the two; of anything else the arguments count
(RabbitMQ, "Queue Length Limit", "Time-To-Live and Expiration", "Dead Letter Exchanges").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from qsctl.declared.problems import ProblemList, shown
from qsctl.instant import MILLISECOND_NS
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.listed._documents import COUNT_MAX, ListedObject, duration_text, whole
from qsctl.sim.brokers.listed._rabbitmq_policies import NamePattern, read_pattern
from qsctl.sim.brokers.listed.model import ForeignQueue

POLICIES_MAX: Final = 500
_LIMITS: Final = ("max-length", "max-length-bytes", "message-ttl", "delivery-limit")
"""Keys of a policy of which the lower value counts; as arguments they begin with `x-`."""
_WORDS: Final = ("overflow", "dead-letter-exchange", "max-priority", "single-active-consumer")
_TYPES: Final = {
    "quorum": BrokerKind.RABBITMQ_QUORUM,
    "rabbit_quorum_queue": BrokerKind.RABBITMQ_QUORUM,
    "classic": BrokerKind.RABBITMQ_CLASSIC,
    "rabbit_classic_queue": BrokerKind.RABBITMQ_CLASSIC,
}
_OTHER_TYPES: Final = frozenset({"stream", "rabbit_stream_queue", "rabbit_mqtt_qos0_queue"})
_ARGUMENT: Final = re.compile(
    r'\{"(x-[a-z-]{1,40})",\s{0,4}(?:"?[a-z]{1,20}"?,\s{0,4})?(?:<<)?"?([^{}\[\],"<>]{1,200})"?(?:>>)?\}'
)
"""An argument as Erlang writes it, with or without its type: `{"x-max-length",long,1000}`."""
COLUMNS: Final = (
    "name", "messages", "messages_ready", "messages_unacknowledged", "consumers", "arguments", "type", "policy",
    "message_bytes", "vhost",
)  # fmt: skip
"""Columns of a listing that are read."""
_ROW: Final = re.compile(r"[^\t]{1,255}\t[0-9]{1,19}")


def is_heading(line: str) -> bool:
    """Return whether a line is a heading of `list_queues`."""
    words = line.split("\t")
    return "name" in words and len(words) == len(set(words)) and bool((set(words) - {"name"}) & set(COLUMNS))


def is_announced(line: str) -> bool:
    """Return whether a line is the announcement that `rabbitmqctl` writes before a listing of queues."""
    return line.startswith("Listing queues")


def is_row(line: str) -> bool:
    """Return whether a line is a row of a listing without a heading: a name and a number of messages."""
    return _ROW.fullmatch(line) is not None


def read_table(lines: Sequence[tuple[int, str]], findings: ProblemList) -> Iterator[ForeignQueue]:
    """Yield the queues of a listing's text.

    Args:
        lines: of the listing, with their numbers; a heading first, where there is one.
        findings: receives a finding for each row that cannot be read.
    """
    columns: Sequence[str] = ("name", "messages")
    for number, line in lines:
        if is_announced(line):
            columns = ("name", "messages")
            continue
        if is_heading(line):
            columns = line.split("\t")
            continue
        cells = line.split("\t")
        if len(cells) != len(columns):
            findings.add(
                number,
                "the row has another number of columns than the heading",
                found=f"{len(cells)} columns",
                allowed=shown(f"{len(columns)}: {' '.join(columns)[:80]}"),
            )
            continue
        row: dict[str, Any] = dict(zip(columns, cells, strict=True))
        row["arguments"] = dict(_ARGUMENT.findall(row.get("arguments", "")))
        found = queue_of(ListedObject(number, row, findings, row["name"][:80]))
        if found is not None:
            yield found


def read_queues(rows: Sequence[object], line: int, findings: ProblemList) -> Iterator[ForeignQueue]:
    """Yield the queues of a listing in JSON."""
    for row in rows:
        if not isinstance(row, dict):
            findings.add(line, "the entry is passed over", found=repr(row)[:80], allowed="a queue")
            continue
        made = {**row, "arguments": _arguments(row.get("arguments"))}
        name = row.get("name")
        found = queue_of(ListedObject(line, made, findings, name[:80] if isinstance(name, str) else ""))
        if found is not None:
            yield found


def read_definitions(document: ListedObject) -> Iterator[ForeignQueue]:
    """Yield the queues of exported definitions, each with the policy that applies to it."""
    policies = _Policies(document)
    rows = document.values.get("queues")
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            document.findings.add(
                document.line, "the queue is passed over", found=repr(row)[:80], allowed="an object with a name"
            )
            continue
        arguments = _arguments(row.get("arguments"))
        kind = _kind(arguments, row)
        definition = {} if kind is None else policies.of(row["name"], row.get("vhost"), kind)
        made = {**row, "arguments": arguments, "effective_policy_definition": definition}
        found = queue_of(ListedObject(document.line, made, document.findings, row["name"][:80]))
        if found is not None:
            yield found


def queue_of(row: ListedObject) -> ForeignQueue | None:
    """Return the queue in a row of a listing; None where it has no name, or is of a type without a preset."""
    name = row.text("name")
    if name is None:
        row.findings.add(row.line, "the row is passed over", allowed="a queue with a name")
        return None
    arguments = row.inner("arguments")
    kind = _kind(arguments.values, row.values)
    if kind is None:
        row.findings.add(row.line, "a stream is not a queue: the row is passed over", path=name[:80])
        return None
    policy = row.inner("effective_policy_definition")
    settings = dict(_settings(arguments, policy))
    waiting, outstanding = row.count("messages_ready"), row.count("messages_unacknowledged")
    messages = row.count("messages")
    if waiting is None and messages is not None:
        waiting = max(0, messages - (outstanding or 0))
    stored, size = row.count("message_bytes"), None
    if stored and messages:
        size = max(1, stored // messages)
    publishing = row.inner("message_stats")
    arrived = publishing.count("publish")
    rate = publishing.inner("publish_details").rate("rate")
    return ForeignQueue(
        name, kind, settings, row.count("consumers"), waiting, outstanding, arrived=arrived, arrivals_per_s=rate,
        size_bytes=size,
    )  # fmt: skip


def _kind(arguments: Mapping[str, Any], row: Mapping[str, Any]) -> BrokerKind | None:
    """Return the kind of a queue; None where its type has no preset."""
    for word in (arguments.get("x-queue-type"), row.get("type")):
        if isinstance(word, str):
            if word in _OTHER_TYPES:
                return None
            if word in _TYPES:
                return _TYPES[word]
    return BrokerKind.RABBITMQ_CLASSIC


def _arguments(found: object) -> dict[str, Any]:
    """Return the arguments of a queue in JSON: an object, or the list of lists that some formatters make of it."""
    if isinstance(found, dict):
        return found
    made: dict[str, Any] = {}
    for each in found if isinstance(found, list) else []:
        if isinstance(each, list) and len(each) in {2, 3} and isinstance(each[0], str):
            made[each[0]] = each[-1]
    return made


def _settings(arguments: ListedObject, policy: ListedObject) -> Iterator[tuple[str, str]]:
    """Yield the settings of a queue, under the words of policies: those of arguments, without `x-`."""
    for word in _LIMITS:
        low = -1 if word == "delivery-limit" else 0
        found = [each for each in (arguments.count(f"x-{word}", low), policy.count(word, low)) if each is not None]
        bounded = [each for each in found if each >= 0]
        if bounded:
            least = min(bounded)
            yield word, duration_text(least, MILLISECOND_NS) if word == "message-ttl" else str(least)
        elif found:
            yield word, "unlimited"
    for word in _WORDS:
        for holder, key in ((arguments, f"x-{word}"), (policy, word)):
            value = holder.values.get(key)
            if value is None or value == "":
                continue
            yield word, _word(value)
            break


def _word(value: object) -> str:
    """Return a text, a whole number or a truth value as text, cut to a bounded length."""
    if isinstance(value, bool):
        return "true" if value else "false"
    number = whole(value)
    return str(value)[:200] if number is None or abs(number) > COUNT_MAX else str(number)


class _Policies:
    """The policies of exported definitions."""

    def __init__(self, document: ListedObject) -> None:
        rows = document.values.get("policies")
        rows = rows if isinstance(rows, list) else []
        if len(rows) > POLICIES_MAX:
            document.findings.add(
                document.line,
                "further policies are passed over",
                found=str(len(rows)),
                allowed=f"at most {POLICIES_MAX}",
            )
        self._policies: list[tuple[int, object, str, NamePattern, Mapping[str, Any]]] = []
        for row in rows[:POLICIES_MAX]:
            if not isinstance(row, dict) or not isinstance(row.get("definition"), dict):
                continue
            pattern = row.get("pattern")
            read = read_pattern(pattern) if isinstance(pattern, str) else None
            if read is None:
                document.findings.add(
                    document.line,
                    "the policy is not applied: its pattern is not understood",
                    path=str(row.get("name"))[:80],
                    found=repr(pattern)[:80],
                    allowed="characters, ., .*, .+, | and a group around all",
                )
                continue
            priority = whole(row.get("priority")) or 0
            applies = row.get("apply-to")
            self._policies.append(
                (priority, row.get("vhost"), applies if isinstance(applies, str) else "all", read, row["definition"])
            )
        self._policies.sort(key=lambda each: -each[0])

    def of(self, name: str, vhost: object, kind: BrokerKind) -> Mapping[str, Any]:
        """Return the settings of the policy that applies to a queue; empty where none does."""
        own = "quorum_queues" if kind is BrokerKind.RABBITMQ_QUORUM else "classic_queues"
        for _, of_vhost, applies, pattern, definition in self._policies:
            if applies in {"all", "queues", own} and of_vhost == vhost and pattern.is_in(name):
                return definition
        return {}
