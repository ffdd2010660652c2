"""The presets: every setting reads its default, has its source and can be set; every draft is a scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qsctl.errors import InvalidInput, UsageError
from qsctl.sim.brokers.draft import draft_of, find_setting, load_of, mean_ns, parse_settings, set_path
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.listed.model import ForeignQueue
from qsctl.sim.brokers.presets import PRESETS, preset_of
from qsctl.sim.brokers.settings import plain_word
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.parts.broker_queue import BrokerQueue, DeliveryOrder, OverflowRule, QueueAccess, ReturnPlace
from qsctl.sim.scenario.parts.work_time import WORK
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import read_scenario

WORK_TEXT = "lognormal:45s,p99=280s"


def scenario_of(folder: Path, broker: BrokerKind, listed: ForeignQueue | None = None, **given: str) -> Scenario:
    draft = draft_of(broker, {name.replace("_", "-"): text for name, text in given.items()}, listed)
    file = folder / "s.xml"
    file.write_text(draft.scenario_text())
    return read_scenario(file)


def queue_of(folder: Path, broker: BrokerKind, listed: ForeignQueue | None = None, **given: str) -> BrokerQueue:
    queue = scenario_of(folder, broker, listed, **given).queue
    assert queue is not None
    return queue


def test_every_broker_has_a_preset_and_every_default_a_public_source() -> None:
    assert set(PRESETS) == set(BrokerKind)
    for broker, preset in PRESETS.items():
        for setting in preset.settings:
            setting.scenario_text(setting.default)
            assert re.fullmatch(r"https://[a-z.]+/\S+", setting.source), (broker, setting.word)
            assert setting.meaning[0].islower(), setting.word
        assert all(each.source.startswith("https://") for each in preset.ways)
        assert preset.modelled, broker
        assert preset.not_modelled, broker


@pytest.mark.parametrize("broker", BrokerKind)
def test_every_word_of_a_preset_names_one_setting(broker: BrokerKind) -> None:
    names = [
        name
        for each in preset_of(broker).settings
        for name in {plain_word(name) for name in (each.word, *each.aliases)}
    ]
    assert len(names) == len(set(names))
    for each in (*preset_of(broker).settings, *load_of(broker)):
        assert find_setting(broker, each.word) is each


@pytest.mark.parametrize("broker", BrokerKind)
def test_every_value_of_a_draft_can_be_set(broker: BrokerKind, tmp_path: Path) -> None:
    draft = draft_of(broker, {"work": WORK_TEXT, "arrivals": "0.033/s"})
    file = tmp_path / "s.xml"
    file.write_text(draft.scenario_text())
    scenario = read_scenario(file)
    for each in draft.values:
        changed = apply_overrides(scenario, {set_path(each.path): each.text})
        assert changed.queue == scenario.queue, each.path


@pytest.mark.parametrize("broker", BrokerKind)
def test_a_draft_names_where_its_values_are_from(broker: BrokerKind) -> None:
    text = draft_of(broker, {"work": WORK_TEXT}).scenario_text()
    assert "work: given" in text
    assert "fails: assumed" in text
    for setting in preset_of(broker).settings:
        if setting.is_direct:
            assert f"{setting.word}, default" in re.sub(r"\s+", " ", text) or f"{setting.word}: default" in text
    assert all("--" not in each for each in re.findall(r"<!--(.*?)-->", text, re.DOTALL))


def test_consumers_are_assumed_to_be_busy_for_seven_tenths(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, BrokerKind.SQS, work="45s", arrivals="0.2/s")
    assert queue.workers[0].count == 13, "0.2/s x 45 s = 9, / 0.7 = 12.9"
    queue = queue_of(tmp_path, BrokerKind.SQS, work="45s", arrivals="0.2/s", servers="4")
    assert queue.workers[0].count == 4
    queue = queue_of(tmp_path, BrokerKind.SQS, work="100ms", consumers="4")
    assert 'rate="28/s"' in (tmp_path / "s.xml").read_text()


@pytest.mark.parametrize(
    ("text", "mean"),
    [
        ("2s", 2e9), ("exponential:3s", 3e9), ("lognormal:45s,p99=280s", 45e9), ("gamma:4s,cv=2", 4e9),
        ("uniform:1s..3s", 2e9), ("histogram:1s=3,5s=1", 2e9),
    ],
)  # fmt: skip
def test_the_mean_of_a_distribution_is_known(text: str, mean: float) -> None:
    assert mean_ns(WORK.parse(text)) == mean


def test_the_mean_of_measured_times_is_theirs(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("duration_s,count\n1,3\n5,1\n")
    assert mean_ns(WORK.parse(f"empirical:{file}")) == 2e9


@pytest.mark.parametrize(
    ("broker", "word", "text", "made"),
    [
        (BrokerKind.SQS, "VisibilityTimeout", "45", "45s"),
        (BrokerKind.SQS, "visibility", "2min", "120s"),
        (BrokerKind.RABBITMQ_CLASSIC, "x-message-ttl", "60000", "60s"),
        (BrokerKind.RABBITMQ_CLASSIC, "prefetch_count", "0", "unlimited"),
        (BrokerKind.RABBITMQ_CLASSIC, "x-overflow", "reject-publish-dlx", "reject-dead-letter"),
        (BrokerKind.RABBITMQ_QUORUM, "x-delivery-limit", "20", "21"),
        (BrokerKind.RABBITMQ_QUORUM, "delivery_limit", "-1", "unlimited"),
        (BrokerKind.JETSTREAM, "MaxAckPending", "-1", "unlimited"),
        (BrokerKind.JETSTREAM, "backoff", "1s, 5s", "1s,5s"),
        (BrokerKind.IBM_MQ, "capexpry", "50", "5s"),
        (BrokerKind.KAFKA_GROUP, "retention_ms", "5000", "5s"),
        (BrokerKind.CELERY, "max_retries", "3", "4"),
    ],
)
def test_a_value_in_the_broker_s_own_words_and_units_is_read(
    broker: BrokerKind, word: str, text: str, made: str
) -> None:
    assert find_setting(broker, word).scenario_text(text) == made


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("VisibilityTimeout", "soon"),
        ("VisibilityTimeout", "-1"),
        ("MaxNumberOfMessages", "0"),
        ("maxReceiveCount", "x"),
    ],
)
def test_a_value_that_is_none_is_refused_with_what_is_allowed(word: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=f"{word}: '{text}' is not a"):
        find_setting(BrokerKind.SQS, word).scenario_text(text)


def test_an_unknown_setting_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="sqs has no setting 'prefetch'") as error:
        draft_of(BrokerKind.SQS, {"prefetch": "1"})
    assert "VisibilityTimeout" in error.value.remedy
    with pytest.raises(UsageError, match="VisibilityTimeout is given twice"):
        draft_of(BrokerKind.SQS, {"visibility": "1s", "VisibilityTimeout": "2s"})
    for text in ("prefetch", "=1", ""):
        with pytest.raises(UsageError, match="is not SETTING=VALUE"):
            parse_settings([text])


def test_a_quorum_queue_returns_to_the_back_without_a_delivery_limit(tmp_path: Path) -> None:
    assert queue_of(tmp_path, BrokerKind.RABBITMQ_QUORUM).retry.to is ReturnPlace.HEAD
    assert queue_of(tmp_path, BrokerKind.RABBITMQ_QUORUM, delivery_limit="-1").retry.to is ReturnPlace.TAIL


def test_priorities_and_dead_letters_are_there_where_they_are_set(tmp_path: Path) -> None:
    plain = queue_of(tmp_path, BrokerKind.RABBITMQ_CLASSIC)
    assert (plain.order, plain.dead_letters) == (DeliveryOrder.FIFO, None)
    made = queue_of(tmp_path, BrokerKind.RABBITMQ_CLASSIC, max_priority="9", dead_letter_exchange="dlx")
    assert (made.order, made.priorities) == (DeliveryOrder.PRIORITY, 10)
    assert made.dead_letters is not None
    assert queue_of(tmp_path, BrokerKind.SQS, maxReceiveCount="3").dead_letters is not None
    single = queue_of(tmp_path, BrokerKind.RABBITMQ_CLASSIC, single_active_consumer="true")
    assert single.access is QueueAccess.EXCLUSIVE


def test_celery_reserves_a_slot_more_where_it_acknowledges_early(tmp_path: Path) -> None:
    early = queue_of(tmp_path, BrokerKind.CELERY, worker_concurrency="2")
    assert (early.workers[0].servers, early.workers[0].prefetch) == (2, 10)
    assert early.visibility is not None
    assert early.visibility.heartbeat_ns == 1800 * 10**9, "a running task is not returned"
    late = queue_of(tmp_path, BrokerKind.CELERY, worker_concurrency="2", task_acks_late="true")
    assert late.workers[0].prefetch == 8
    assert late.visibility is not None
    assert late.visibility.heartbeat_ns == 0
    assert queue_of(tmp_path, BrokerKind.CELERY, worker_prefetch_multiplier="0").workers[0].prefetch == -1


def test_a_word_of_which_the_broker_has_its_own_way_is_refused() -> None:
    with pytest.raises(UsageError, match="kafka-group has no setting 'round-trip'"):
        draft_of(BrokerKind.KAFKA_GROUP, {"round-trip": "5ms"})


def test_backoff_replaces_ack_wait(tmp_path: Path) -> None:
    queue = queue_of(tmp_path, BrokerKind.JETSTREAM, backoff="1s,5s", ack_wait="9s")
    assert queue.visibility is not None
    assert queue.visibility.timeouts_ns == (10**9, 5 * 10**9)


def test_what_is_listed_goes_before_the_default_and_what_is_given_before_both(tmp_path: Path) -> None:
    listed = ForeignQueue(
        "orders -- all", BrokerKind.RABBITMQ_CLASSIC, {"max-length": "500", "overflow": "reject-publish"}, consumers=3,
        waiting=40, outstanding=2, arrivals_per_s=7.0, size_bytes=100,
    )  # fmt: skip
    scenario = scenario_of(tmp_path, BrokerKind.RABBITMQ_CLASSIC, listed)
    queue = scenario.queue
    assert queue is not None
    assert (queue.name, queue.limits.max_messages, queue.limits.overflow) == ("orders_--_all", 500, OverflowRule.REJECT)
    assert queue.workers[0].count == 3
    assert queue.backlog is not None
    assert queue.backlog.messages == 42
    assert scenario.warm_up_ns == 0, "the backlog is what is of interest"
    assert "rate: arrivals, listed" in (tmp_path / "s.xml").read_text()
    queue = queue_of(tmp_path, BrokerKind.RABBITMQ_CLASSIC, listed, max_length="9", consumers="5")
    assert (queue.limits.max_messages, queue.workers[0].count) == (9, 5)


def test_a_kafka_group_has_the_partitions_that_are_listed(tmp_path: Path) -> None:
    listed = ForeignQueue("g:t", BrokerKind.KAFKA_GROUP, partitions=(5, 0, 7), waiting=12)
    queue = queue_of(tmp_path, BrokerKind.KAFKA_GROUP, listed)
    assert (queue.partitions, queue.backlog and queue.backlog.messages) == (3, 12)


def test_a_run_is_long_enough_for_messages_and_for_what_is_asked() -> None:
    made = {"work": "1s", "arrivals": "100/s"}
    assert draft_of(BrokerKind.SQS, made).horizon_ns == 300 * 10**9, "150 s are needed"
    assert draft_of(BrokerKind.SQS, made, longest_ns=600 * 10**9).horizon_ns == 2 * 3600 * 10**9
    assert draft_of(BrokerKind.SQS, made, horizon_ns=5).horizon_ns == 5
    assert draft_of(BrokerKind.SQS, {"arrivals": "0/s"}).horizon_ns == 10 * 10**9


def test_a_backlog_an_outage_and_an_absence_are_there_where_they_are_given(tmp_path: Path) -> None:
    plain = queue_of(tmp_path, BrokerKind.SQS, work="1s", arrivals="10/s")
    assert (plain.backlog, plain.outages, plain.workers[0].absences) == (None, (), ())
    scenario = scenario_of(
        tmp_path, BrokerKind.SQS, work="1s", arrivals="10/s", backlog="40", outage="10min", absence="60"
    )
    queue = scenario.queue
    assert queue is not None
    assert queue.backlog is not None
    assert queue.backlog.messages == 40
    (outage,), (absence,) = queue.outages, queue.workers[0].absences
    assert scenario.horizon_ns == 2 * 3600 * 10**9, "ten times the outage, at least"
    assert (outage.start_ns, outage.duration_ns) == (scenario.horizon_ns // 4, 600 * 10**9)
    assert (absence.start_ns, absence.duration_ns) == (scenario.horizon_ns // 4, 60 * 10**9)
