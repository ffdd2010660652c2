"""`qsctl explain setting`: from the name, the path, or the option of a setting to what it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from qsctl.config.form import settings_in
from qsctl.config.tables.service import SERVICE
from tests.commands import command_line

QUEUE = "domain_participant/shared_subscriber/shared_reader_queue"


@pytest.fixture
def explained() -> Callable[[str], list[dict[str, Any]]]:
    app = command_line()

    def explain(name: str) -> list[dict[str, Any]]:
        done = CliRunner().invoke(app, ["explain", "setting", name, "-o", "json"])
        assert done.exit_code == 0, done.output
        settings: list[dict[str, Any]] = json.loads(done.stdout)["settings"]
        return settings

    return explain


@pytest.mark.parametrize(
    "name",
    [
        "max_delivery_retries",
        "<max_delivery_retries>",
        "max-delivery-retries",
        f"{QUEUE}/queue_qos/redelivery/max_delivery_retries",
    ],
)
def test_a_setting_is_found_by_its_name_its_path_and_its_option(explained: Any, name: str) -> None:
    first = explained(name)[0]
    assert first["path"] == f"{QUEUE}/queue_qos/redelivery/max_delivery_retries"
    assert (first["default"], first["section"], first["option"]) == ("0", "Table 3.15", "--max-delivery-retries")


def test_an_element_gives_all_that_it_holds(explained: Any) -> None:
    assert [each["path"] for each in explained("service_limits")] == [
        f"service_limits/max_{name}"
        for name in ("memory_percent", "memory_bytes", "queues", "consumers_per_peer", "endpoints_per_peer")
    ]


def test_every_setting_is_explained_by_its_path(explained: Any) -> None:
    for place in settings_in(SERVICE):
        assert place.path in [each["path"] for each in explained(place.path)]


def test_a_setting_that_is_not_there_is_answered_with_the_nearest() -> None:
    done = CliRunner().invoke(command_line(), ["explain", "setting", "max_quues"])
    assert done.exit_code == 4
    assert "Did you mean max_queues?" in done.output


def test_it_is_a_paragraph_for_people() -> None:
    done = CliRunner().invoke(command_line(), ["explain", "setting", "max_queues"])
    assert done.stdout == (
        "service_limits/max_queues\n"
        "  Largest number of queues that the service hosts.\n"
        "  Values: LENGTH_UNLIMITED, -1, or a whole number from 1 to 9223372036854775807\n"
        "  Default: 10000 (an extension)\n"
    )
