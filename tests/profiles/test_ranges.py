"""The table of settings: one row a field, defaults inside their ranges, names that formats really have."""

from __future__ import annotations

import dataclasses

import pytest

from qsctl.profiles.client_profile import ClientProfile, Queue, Threshold, work_units
from qsctl.profiles.names import suggestion
from qsctl.profiles.ranges import BY_FIELD, BY_SEMP_V2, SETTINGS, default_profile
from qsctl.profiles.setting import ProfileSetting, ValueKind
from qsctl.sim.scenario.forms.elements import PROFILE
from qsctl.sim.scenario.overrides.set_values import paths_of
from qsctl.sim.scenario.scenario import Profile, Scenario


def test_the_table_has_a_row_for_each_field_of_a_profile() -> None:
    fields = [field.name for field in dataclasses.fields(ClientProfile) if field.name not in {"name", "message_vpn"}]
    assert sorted(fields) == sorted(BY_FIELD)
    assert len(SETTINGS) == len(BY_FIELD) == len(BY_SEMP_V2)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.field)
def test_a_default_is_a_value_that_the_setting_allows(setting: ProfileSetting) -> None:
    assert setting.read(setting.default) == setting.default
    assert setting.source
    assert setting.allowed


@pytest.mark.parametrize(
    "setting", [each for each in SETTINGS if each.kind is ValueKind.INTEGER], ids=lambda setting: setting.field
)
def test_an_integer_is_read_at_both_ends_of_its_range_and_not_beyond(setting: ProfileSetting) -> None:
    assert [setting.read(str(each)) for each in (setting.minimum, setting.maximum)] == [
        setting.minimum,
        setting.maximum,
    ]
    for wrong in (setting.minimum - 1, setting.maximum + 1, True, 1.5, "1e3", "9" * 5000, "x", [], {}):
        with pytest.raises(ValueError):
            setting.read(wrong)


@pytest.mark.parametrize("column", ["semp_v2", "semp_v1", "scenario", "terraform"])
def test_no_two_settings_have_one_name(column: str) -> None:
    names = [name for each in SETTINGS if (name := getattr(each, column))]
    assert len(names) == len(set(names))
    words = [each.cli for each in SETTINGS if each.cli]
    assert len(words) == len(set(words))


def test_the_defaults_and_ranges_are_the_vendor_s() -> None:
    profile = default_profile()
    assert [profile.queue(queue).max_depth_work_units for queue in Queue] == [20_000] * 5
    assert [profile.queue(queue).min_msg_burst for queue in Queue] == [255, 4, 4, 4, 4]
    for name, low, high, default in (
        ("queueGuaranteed1MaxDepth", 2, 262_144, 20_000),
        ("queueControl1MinMsgBurst", 0, 262_144, 4),
        ("tcpMaxSegmentSize", 256, 1460, 1460),
        ("tcpCongestionWindowSize", 2, 7826, 2),
        ("tcpMaxWindowSize", 16, 65_536, 256),
        ("tcpKeepaliveCount", 2, 5, 5),
        ("tcpKeepaliveIdleTime", 3, 120, 3),
        ("tcpKeepaliveInterval", 1, 30, 1),
        ("elidingDelay", 0, 60_000, 0),
        ("elidingMaxTopicCount", 1, 32_000, 256),
        ("maxEgressFlowCount", 0, 200_000, 1000),
    ):
        setting = BY_SEMP_V2[name]
        assert (setting.minimum, setting.maximum, setting.default) == (low, high, default), name


def test_terraform_names_have_underscores() -> None:
    assert BY_FIELD["g_1_min_msg_burst"].terraform == "queue_guaranteed1_min_msg_burst"
    assert (
        BY_FIELD["smf_connections_per_username_threshold"].terraform
        == "event_service_smf_connection_count_per_client_username_threshold"
    )


def test_a_scenario_has_the_attributes_of_the_table() -> None:
    scenario = Scenario("s", profiles=(Profile("p"),))
    assert PROFILE.element == "profile"
    paths = set(paths_of(scenario))
    assert {f"profile[p]/{each.scenario}" for each in SETTINGS if each.scenario} <= paths


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("tcpInitialCongestionWindow", "tcpCongestionWindowSize"),
        ("queueGuaranteedMinMsgBurst", "queueGuaranteed1MinMsgBurst"),
        ("queueDirect1Maxdepth", "queueDirect1MaxDepth"),
        ("flowCount", "maxEgressFlowCount"),
        ("eliding_max_topics", "elidingMaxTopicCount"),
    ],
)
def test_a_name_that_people_write_wrongly_gets_the_real_one(wrong: str, right: str) -> None:
    assert suggestion(wrong, BY_SEMP_V2) == f"Did you mean {right}?"


def test_a_name_of_another_object_is_reported_with_its_owner() -> None:
    assert "consuming client" in suggestion("flowWindowSize", BY_SEMP_V2)
    assert suggestion("colour", BY_SEMP_V2) == ""
    assert suggestion("q" * 100_000, BY_SEMP_V2) == ""


@pytest.mark.parametrize(("size_bytes", "units"), [(0, 1), (1, 1), (2048, 1), (2049, 2), (20_480, 10)])
def test_a_work_unit_is_2048_bytes_begun(size_bytes: int, units: int) -> None:
    assert work_units(size_bytes) == units


def test_a_threshold_of_counts_needs_a_limit() -> None:
    assert BY_FIELD["egress_flows_threshold"].threshold("900", "800", is_percent=False) == Threshold(900, 800, False)
    for setting, set_at, is_percent in (
        (BY_FIELD["endpoint_spool_usage_threshold"], 5, False),
        (BY_FIELD["egress_flows_threshold"], 101, True),
    ):
        with pytest.raises(ValueError):
            setting.threshold(set_at, 1, is_percent=is_percent)
