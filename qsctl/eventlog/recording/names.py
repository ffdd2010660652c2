"""The names of a recording: its producers by their numbers, its queues' full names, and its service's settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from qsctl.core.settings import ServiceSettings, queues_by_name
from qsctl.errors import UNREADABLE, Damaged
from qsctl.eventlog.checked_files import RESTORE, checked_text
from qsctl.eventlog.names import TOPICS_MAX, names_from
from qsctl.eventlog.reader import batches_of
from qsctl.eventlog.recording.queue_state import shown_names
from qsctl.eventlog.run_folder import SERVICE_FILE
from qsctl.instant import INFINITE_NS

if TYPE_CHECKING:
    import pyarrow as pa

    from qsctl.eventlog.location import Location
    from qsctl.eventlog.run_folder import RunInfo


def names_of_recording(
    info: RunInfo, counters: pa.Table, *, peers: Mapping[int, str], full_names: Mapping[str, str], service: bytes
) -> dict[str, pa.Table]:
    """Return the tables of names of a recording.

    Args:
        info: the recording.
        counters: the present counters.
        peers: the peers' GUIDs by number.
        full_names: the queues' full names, by their names in the counters.
        service: the service's settings as JSON (`service.json`).
    """
    topics = [(number, peers[number]) for number in sorted(peers)[:TOPICS_MAX]]
    settings = _settings_of("", json.loads(service))
    return names_from(info, counters, topics=topics, settings=settings, full_names=full_names)


def names_in_folder(folder: Location, info: RunInfo, counters: pa.Table) -> dict[str, pa.Table]:
    """Return the tables of names for a recording whose folder lacks them: one of format 3, or one just begun.

    Raises:
        Damaged: a file of it is missing or was changed.
    """
    service = checked_text(folder, info, SERVICE_FILE)
    try:
        queues = list(queues_by_name(msgspec.json.decode(service, type=ServiceSettings)))
    except UNREADABLE as error:
        raise Damaged(f"{folder / SERVICE_FILE} is damaged: {error}", remedy=RESTORE) from None
    full_names = {shown: name for name, shown in shown_names(queues).items()}
    return names_of_recording(
        info, counters, peers=peers_in(folder, info), full_names=full_names, service=service.encode()
    )


def peers_in(folder: Location, info: RunInfo) -> dict[int, str]:
    """Return the GUIDs of a recording's or a replay's peers by their numbers.

    Raises:
        Damaged: a file of it is missing or was changed.
    """
    peers: dict[int, str] = {}
    for batch in batches_of(folder, info, "peers", ["peer", "guid"]):
        peers.update(zip(batch["peer"].to_pylist(), batch["guid"].to_pylist(), strict=True))
    return peers


def _settings_of(prefix: str, value: Any) -> Iterator[tuple[str, str, float | None, str | None]]:
    """Yield path and value of each plain value in a JSON value; path parts are names of members and of list
    elements.
    """
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _settings_of(f"{prefix}/{name}" if prefix else name, member)
    elif isinstance(value, list):
        for number, member in enumerate(value):
            key = member.get("name", number) if isinstance(member, dict) else number
            yield from _settings_of(f"{prefix}[{key}]", member)
    else:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and value != INFINITE_NS
        text = value if isinstance(value, str) else json.dumps(value)
        unit = next((unit for end, unit in (("_ns", "ns"), ("_bytes", "bytes")) if prefix.endswith(end)), None)
        yield prefix, text, float(value) if is_number else None, unit if is_number else None
