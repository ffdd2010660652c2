"""The programs of `fixtures/foreign`, beside qsctl's own, on one persistent queue of a service that is killed.

QSCTL_TEST_FOREIGN names how many samples each producer writes in the whole campaign, with Fast DDS, for example 100000.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from qsctl.client import QueueConsumer
from qsctl.client.administration import Administration
from qsctl.config.sample_types.type_file import read_type_file
from qsctl.config.sample_types.types import TypeLibrary
from qsctl.errors import QsctlError
from tests.campaigns import trials
from tests.dds.c_peer import needs_c
from tests.dds.foreign import (
    FOREIGN,
    ForeignService,
    build_c,
    build_fast,
    needs_fast_dds,
    program,
    python_program,
    wrapper,
)
from tests.patience import PATIENCE_S, eventually

WHOLE = trials("QSCTL_TEST_FOREIGN", 0, 100_000)
FEW = 120
REJECT, IGNORE = 10, 25
"""Consumers reject every tenth order and leave every twenty-fifth without an answer, the first time it comes."""

NUMBERS_OF_EACH = 10_000_000
REDELIVERED = 1
QUEUE = "Shop/Desk/Orders"


@dataclass(frozen=True)
class Line:
    """What a consumer printed of one delivery; attempt 0: it does not know."""

    number: int
    attempt: int
    is_redelivered: bool
    response: str


def lines_of(output: Path) -> list[Line]:
    found = []
    whole = output.read_text(encoding="utf-8")
    for text in whole[: whole.rfind("\n") + 1].splitlines():
        number, attempt, flags, response = text.split()
        found.append(Line(int(number), int(attempt), bool(int(flags) & REDELIVERED), response))
    return found


def held_count(administration: Administration) -> int:
    """How many orders the queue holds; -1: nobody answers."""
    try:
        statuses = {each.queue_name: each for _, each in administration.statuses()}
    except QsctlError:
        return -1
    return int(statuses[QUEUE].current_message_count)


def accepted_count(outputs: Iterable[Path]) -> int:
    """How many orders were accepted by a consumer, each counted once."""
    return len({line.number for output in outputs for line in lines_of(output) if line.response == "1"})


def account(written: Sequence[range], consumers: dict[str, Path]) -> Counter[str]:
    """Follow each order from its producer to the consumer that accepted it; return how many of each story there are."""
    deliveries: dict[int, list[Line]] = defaultdict(list)
    for output in consumers.values():
        for line in lines_of(output):
            deliveries[line.number].append(line)
    expected = {number for numbers in written for number in numbers}
    assert set(deliveries) == expected, (
        f"lost {sorted(expected - set(deliveries))[:5]}, invented {sorted(set(deliveries) - expected)[:5]}"
    )
    stories: Counter[str] = Counter()
    for number, lines in deliveries.items():
        accepted = [line for line in lines if line.response == "1"]
        assert accepted, f"order {number} was never accepted: {lines}"
        fresh = [line for line in lines if line.attempt == 1 and not line.is_redelivered]
        assert len(fresh) <= 1, f"order {number} came twice as if for the first time: {lines}"
        unflagged = [line for line in accepted if not line.is_redelivered]
        assert len(unflagged) <= 1, f"order {number} was accepted twice, and no flag said so: {lines}"
        stories["orders"] += 1
        stories["deliveries"] += len(lines)
        stories["rejected"] += sum(line.response == "0" for line in lines)
        stories["timed out"] += sum(line.response == "-" for line in lines)
        stories["flagged"] += sum(line.is_redelivered for line in lines)
        stories["accepted again"] += len(accepted) - 1
    return stories


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The programs in C."""
    programs = ("consumer", "producer", "plain_producer", "requester", "replier", "hello_world")
    return build_c(tmp_path_factory.mktemp("foreign"), *programs)


def campaign(tmp_path: Path, domain: int, built: Mapping[str, Path], count: int, kinds: Sequence[str]) -> Counter[str]:
    """Run producers and consumers of all kinds at once, kill the service half way, account for every order."""
    service = ForeignService(tmp_path, domain, response_timeout_s=2)
    place = (domain, "Orders")
    producers: dict[str, list[object]] = {
        "c": [built["producer"], *place],
        "python": [*python_program("producer.py"), *place],
        "wrappers": [*wrapper("produce", *place)],
        "fast": [built.get("fast_producer"), *place],
    }
    consumers: dict[str, list[object]] = {
        "c": [built["consumer"], *place, "Desk", REJECT, IGNORE],
        "python": [*python_program("consumer.py"), *place, "Desk", REJECT, IGNORE],
        "wrappers": [*wrapper("consume", *place, "Desk", REJECT, IGNORE)],
        "fast": [built.get("fast_consumer"), *place, "Desk", REJECT, IGNORE],
    }
    patience_s = PATIENCE_S + count / 100
    written = {kind: range(at * NUMBERS_OF_EACH + 1, at * NUMBERS_OF_EACH + 1 + count) for at, kind in enumerate(kinds)}
    with ExitStack() as stack:
        stack.callback(service.end)
        outputs = {kind: tmp_path / f"{kind}.consumed" for kind in kinds}
        consuming = {
            kind: stack.enter_context(program([str(each) for each in consumers[kind]], outputs[kind])) for kind in kinds
        }
        producing = {
            kind: stack.enter_context(
                program([str(each) for each in (*producers[kind], count, numbers[0])], tmp_path / f"{kind}.produced")
            )
            for kind, numbers in written.items()
        }  # fmt: skip

        def consumed() -> int:
            return sum(output.read_bytes().count(b"\n") for output in outputs.values())

        assert eventually(lambda: consumed() >= count * len(kinds) // 2, patience_s), "nothing comes"
        os.kill(service.pid, signal.SIGKILL)
        assert service.process is not None
        service.process.wait(PATIENCE_S)
        held_back = consumed()
        service.start()
        # A producer without numbers of its own cannot write again: it begins when the service is back.
        plain = range(len(kinds) * NUMBERS_OF_EACH + 1, len(kinds) * NUMBERS_OF_EACH + 1 + count)
        command = [str(built["plain_producer"]), *map(str, (*place, count, plain[0]))]
        producing["plain"] = stack.enter_context(program(command, tmp_path / "plain.produced"))
        for kind, process in producing.items():
            assert process.wait(patience_s) == 0, (kind, (tmp_path / f"{kind}.produced").read_text())
        administration = Administration(service.connection(10.0))
        expected = count * (len(kinds) + 1)

        def all_accepted() -> bool:
            # What is not read yet from a plain writer is in no queue: an empty queue alone is no end.
            return held_count(administration) == 0 and accepted_count(outputs.values()) == expected

        assert eventually(all_accepted, patience_s), (held_count(administration), accepted_count(outputs.values()))
        for process in consuming.values():
            process.send_signal(signal.SIGTERM)
        assert [process.wait(PATIENCE_S) for process in consuming.values()] == [0] * len(kinds)
        stories = account([*written.values(), plain], outputs)
        for kind in kinds:
            stories[f"by {kind}"] = len(lines_of(outputs[kind]))
        stories["printed before the kill"] = held_back
        assert service.stop() == 0
    return stories


def check(stories: Counter[str], count: int, kinds: int) -> None:
    orders = count * (kinds + 1)
    assert stories["orders"] == orders
    assert stories["rejected"] >= orders // REJECT * 9 // 10, "the first time each tenth comes"
    assert stories["timed out"] > 0
    assert stories["flagged"] >= stories["timed out"]
    assert stories["printed before the kill"] < stories["deliveries"], "the kill was in the middle"


@pytest.mark.slow
@needs_c
def test_each_order_is_accounted_for_among_c_python_and_wrappers_over_a_kill(
    tmp_path: Path, domain: int, built: dict[str, Path]
) -> None:
    kinds = ("c", "python", "wrappers")
    check(campaign(tmp_path, domain, built, FEW, kinds), FEW, len(kinds))


@pytest.mark.campaign
@needs_c
@needs_fast_dds
@pytest.mark.skipif(not WHOLE, reason="a campaign of minutes: QSCTL_TEST_FOREIGN=100000")
def test_each_order_is_accounted_for_among_all_kinds_over_a_kill(
    tmp_path: Path, domain: int, built: dict[str, Path]
) -> None:
    kinds = ("c", "fast", "python", "wrappers")
    stories = campaign(tmp_path, domain, built | build_fast(tmp_path, "consumer", "producer"), WHOLE, kinds)
    sys.stdout.write(f"\n{json.dumps(stories)}\n")
    check(stories, WHOLE, len(kinds))


@pytest.mark.slow
@needs_c
def test_programs_in_c_ask_and_reply(tmp_path: Path, domain: int, built: dict[str, Path]) -> None:
    service = ForeignService(tmp_path, domain)
    with ExitStack() as stack:
        stack.callback(service.end)
        place = [str(domain), "Orders", "Receipts", "Desk"]
        replying = stack.enter_context(program([built["replier"], *place], tmp_path / "replied"))
        asking = [
            stack.enter_context(program([built["requester"], *place, "5"], tmp_path / f"asked{each}"))
            for each in range(2)
        ]
        assert [process.wait(PATIENCE_S) for process in asking] == [0, 0]
        for each in range(2):
            lines = (tmp_path / f"asked{each}").read_text().splitlines()
            assert lines == [f"{number} costs {3 * number}" for number in range(1, 6)], "each gets its own replies"
        replying.send_signal(signal.SIGTERM)
        assert replying.wait(PATIENCE_S) == 0
        assert (tmp_path / "replied").read_text().count("answered") == 10


def written_and_consumed(command: Sequence[object], domain: int, directory: Path, types: TypeLibrary) -> list[int]:
    """Run a writer; return the numbers of its messages, which a consumer of qsctl reads by the type's definition."""
    codec = types.codec("HelloWorld")
    with QueueConsumer[dict[str, int]]("HelloWorldTopic", "SharedSubscriber", domain, codec=codec) as consumer:
        consumer.wait_for_queue(PATIENCE_S)
        with program([str(each) for each in command], directory / "written") as writing:
            assert writing.wait(PATIENCE_S) == 0, (directory / "written").read_text()
        numbers: list[int] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(numbers) < 50 and time.monotonic() < deadline:
            for sample in consumer.receive(50, 0.2):
                numbers.append(sample.value["messageId"])
                sample.acknowledge()
        consumer.flush()
    return sorted(numbers)


@pytest.mark.slow
@needs_c
@needs_fast_dds
def test_the_vendor_s_hello_world_is_written_from_three_implementations(
    tmp_path: Path, domain: int, built: dict[str, Path]
) -> None:
    """No file of the service defines the type: Fast DDS names it, C and Python describe it."""
    fast = build_fast(tmp_path, "hello_world")["fast_hello_world"]
    service = ForeignService(tmp_path, domain, file="hello_world.xml")
    with ExitStack() as stack:
        stack.callback(service.end)
        hello = built["hello_world"]
        types = read_type_file(FOREIGN / "hello_world.idl")
        assert written_and_consumed([fast, domain, 50], domain, tmp_path, types) == list(range(50))
        # The release of Cyclone DDS in C reads appendable types in XCDR2 alone: it has its own samples.
        reading = stack.enter_context(program([hello, "read", str(domain), "50"], tmp_path / "read"))
        writing = stack.enter_context(program([hello, "write", str(domain), "50"], tmp_path / "written"))
        assert [writing.wait(PATIENCE_S), reading.wait(PATIENCE_S)] == [0, 0]
        read = (tmp_path / "read").read_text().splitlines()
        assert read == [f"message {number}, 32 octets" for number in range(50)]
        python = [*python_program("hello_world.py"), domain, 50]
        assert written_and_consumed(python, domain, tmp_path, types) == list(range(50))
    log = service.log.read_text()
    assert "HelloWorld by its name alone" in log
    assert "HelloWorld as a writer of it describes it" in log
