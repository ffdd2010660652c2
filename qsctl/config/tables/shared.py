"""Tables that several elements share: monitoring, statistics, replication, threads, buffers and domains.

Each occurs in a queue, in its session and in the service ([QS 3.3.4.2.1], [QS 3.3.4.3], [QS 7.1.3]).
"""

from __future__ import annotations

from typing import Final

from qsctl.config.form import Element, Inherit, InheritedOrigin, Setting, Shape
from qsctl.core.queue.settings import (
    HistoricalStatistics,
    MonitoringSettings,
    ReplicationSettings,
    SampleBufferSettings,
    StatisticsSettings,
)
from qsctl.declared.values import BOOLEAN, BUFFER_SIZE_BYTES, DOMAIN_ID, DURATION, POSITIVE_COUNT, word

ENTITY_MONITORING = Element("entity_monitoring", (
    Setting("enabled", "enabled", BOOLEAN, "Table 3.6",
            "Whether the status is published; off where general monitoring is off.", default=True),
    Setting("status_publication_period", "status_publication_period_ns", DURATION, "Table 3.5",
            "Time between two publications of the status.", Shape.DURATION),
), MonitoringSettings, "monitoring")  # fmt: skip

_WINDOWS: Final = {
    "five_second": "the last 5 seconds",
    "one_minute": "the last minute",
    "five_minute": "the last 5 minutes",
    "one_hour": "the last hour",
    "up_time": "the time since the entity was enabled",
}
STATISTICS = Element("statistics", (
    Element("historical_statistics", tuple(
        Setting(tag, tag, BOOLEAN, "Table 3.7", f"Statistics over {window}.") for tag, window in _WINDOWS.items()
    ), HistoricalStatistics, "historical", whole=True),
    Setting("statistics_sampling_period", "sampling_period_ns", DURATION, "Table 3.7",
            "Time between two updates of the statistics; below the publication period.", Shape.DURATION),
), StatisticsSettings, "statistics")  # fmt: skip

REPLICATION = Element("replication", (
    Setting("enabled", "enabled", BOOLEAN, "section 7.1.3",
            "Whether samples are replicated; the element being there switches it on.",
            when_present=(True, "Tables 7.1 and 7.2"), nearest_only=True),
    Element("replication_settings", (
        Setting("queue_instances", "queue_instances", POSITIVE_COUNT, "Table 7.3",
                "Expected replicas of a queue, the master included."),
        Setting("master_timeout", "master_timeout_ns", DURATION, "Table 7.3",
                "Silence of the master after which another one is elected.", Shape.DURATION),
        Setting("synchronize_consumer_assignment", "synchronize_consumer_assignment", BOOLEAN, "Table 7.3",
                "Whether the slaves know the consumer of a sample before it is sent."),
        Setting("sample_timeout", "sample_timeout_ns", DURATION, "Table 7.3",
                "Time without a quorum after which a sample is removed and rejected.", Shape.DURATION),
    ), inherits=(Inherit(InheritedOrigin.SERVICE, "replication_settings"),)),
), ReplicationSettings, "replication")  # fmt: skip

_THREAD: Final = {
    "mask": "Options of the threads, joined by |.",
    "priority": "Priority of the threads: a number or a named level.",
    "stack_size": "Stack of each thread, in bytes.",
}


def thread(section: str) -> Element:
    """Return the table of a `<thread>`."""
    rows = (Setting(tag, f"thread_{tag}", word(f"thread_{tag}"), section, text) for tag, text in _THREAD.items())
    return Element("thread", tuple(rows))


def buffers(makes: type[object], field: str, section: str) -> Element:
    """Return the table of a `<memory_management>`."""
    return Element("memory_management", (
        Setting("sample_buffer_min_size", "min_size_bytes", BUFFER_SIZE_BYTES, section,
                "Bytes up to which a buffer made in advance is used; -1: the largest there can be."),
        Setting("sample_buffer_trim_to_size", "trim_to_size", BOOLEAN, section,
                "Whether a larger buffer is released after its use."),
    ), makes, field)  # fmt: skip


SAMPLE_BUFFER = buffers(SampleBufferSettings, "sample_buffer", "section 3.3.6.1")


def domain(use: str) -> Setting:
    """Return the row of a `<domain_id>`."""
    return Setting("domain_id", "domain_id", DOMAIN_ID, "section 3.3", f"DDS domain {use}.", default=0)
