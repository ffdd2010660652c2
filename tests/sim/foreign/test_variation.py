"""`--vary`: which values a range has, and what is no variation."""

from __future__ import annotations

import pytest

from qsctl.errors import UsageError
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.variation import is_ordered, longest_ns, parse_variation, with_value


@pytest.mark.parametrize(
    ("broker", "text", "values"),
    [
        (BrokerKind.SQS, "visibility=30s,5min", ("30s", "5min")),
        (BrokerKind.SQS, "visibility=30s..600s", ("30s", "50s", "100s", "200s", "300s", "600s")),
        (BrokerKind.SQS, "VisibilityTimeout=30..600", ("30", "50", "100", "200", "300", "600")),
        (BrokerKind.RABBITMQ_CLASSIC, "prefetch=1..250", ("1", "3", "10", "30", "80", "250")),
        (BrokerKind.RABBITMQ_CLASSIC, "prefetch=1..3", ("1", "2", "3")),
        (BrokerKind.RABBITMQ_CLASSIC, "prefetch=1,10,unlimited", ("1", "10", "unlimited")),
        (BrokerKind.RABBITMQ_CLASSIC, "overflow=drop-head,reject-publish", ("drop-head", "reject-publish")),
        (BrokerKind.RABBITMQ_CLASSIC, "arrivals=1/s..4/s", ("1/s", "1.5/s", "2/s", "3/s", "4/s")),
        (BrokerKind.RABBITMQ_CLASSIC, "arrivals=0.5..2/s", ("0.5", "0.6/s", "0.8/s", "1/s", "1.5/s", "2/s")),
        (BrokerKind.RABBITMQ_CLASSIC, "work=lognormal:1s,p99=5s;2s", ("lognormal:1s,p99=5s", "2s")),
        (BrokerKind.JETSTREAM, "backoff=1s", ("1s",)),
        (BrokerKind.CELERY, "max_retries=0..9", ("0", "1", "2", "3", "5", "9")),
    ],
)
def test_values_are_listed_or_lie_between_two_ends(broker: BrokerKind, text: str, values: tuple[str, ...]) -> None:
    assert parse_variation(broker, text).values == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("visibility", "is not SETTING=VALUES"),
        ("visibility=", "is not SETTING=VALUES"),
        ("nothing=1", "sqs has no setting 'nothing'"),
        ("visibility=30s,30", "has '30' twice"),
        ("visibility=9s..1s", "is not a range"),
        ("visibility=a..b", "is not a range"),
        ("arrivals=1/s..4/min", "has two units"),
        ("InFlight=" + ",".join(map(str, range(1, 60))), "has 59 values"),
    ],
)
def test_what_is_no_variation_is_one_error(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_variation(BrokerKind.SQS, text)
    assert message in error.value.message


def test_the_value_in_force_has_its_place_among_the_others() -> None:
    variation = parse_variation(BrokerKind.SQS, "visibility=10s,5min")
    assert with_value(variation, "30").values == ("10s", "30", "5min")
    assert with_value(variation, "300").values == ("10s", "5min"), "the same time"
    assert longest_ns(variation) == 300 * 10**9
    assert is_ordered(variation)
    unlimited = with_value(parse_variation(BrokerKind.RABBITMQ_CLASSIC, "prefetch=1,5"), "0")
    assert unlimited.values == ("1", "5", "0"), "0 is no limit, the largest"
    assert is_ordered(unlimited)
    assert not is_ordered(parse_variation(BrokerKind.RABBITMQ_CLASSIC, "overflow=drop-head,reject-publish"))
