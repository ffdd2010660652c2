"""Scrapes of an exporter and tables in CSV: listings whose figures are counts, or one `InvalidFile`."""

from __future__ import annotations

from qsctl.declared.problems import SHOWN_MAX, InvalidFile
from qsctl.profiles.listings.model import LARGEST_COUNT
from qsctl.profiles.listings.prometheus import prometheus_text
from qsctl.profiles.listings.read import read_listings

DICTIONARY = (
    b"solace_", b"client_slow_subscriber", b"queue_spool_usage_bytes", b"system_total_tx_discards", b"{client_name=\"",
    b"vpn_name=\"v\"", b"\"} ", b"} 1\n", b"NaN", b"+Inf", b"-1", b"1e400", b"1e19", b"\\\"", b"\\n", b"# TYPE ",
    b" # {trace_id=\"x\"} 1", b"Queue Name,", b"Message VPN;", b"\t", b"\"\n", b",,,",
    b"client,queue,discarded_messages\n",
)  # fmt: skip
SHORT_COUNT = 200
_FIGURES = ("spooled_messages", "usage_mb", "maximum_usage_mb", "bind_count")


def one_input(data: bytes) -> None:
    try:
        found = read_listings(data, "f")
    except InvalidFile as error:
        assert 0 < len(error.problems) <= SHOWN_MAX
        assert all(line.isprintable() for line in error.message.splitlines())
        return
    assert all(note.isprintable() for note in found.notes)
    for row in (*found.endpoints, *found.spools):
        figures = [getattr(row, field, None) for field in _FIGURES]
        assert all(figure is None or 0 <= figure <= LARGEST_COUNT for figure in figures)
    prometheus_text(found)
