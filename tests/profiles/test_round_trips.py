"""What a format writes, it reads back, and so does every path through several: only what is declared changes."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.declared.problems import InvalidFile
from qsctl.profiles.client_profile import ClientProfile
from qsctl.profiles.difference import differences
from qsctl.profiles.formats._format import HELD_FIELDS
from qsctl.profiles.formats.file import every_field, lost_fields, parse_profiles, write_profiles
from qsctl.profiles.formats.kinds import Format
from qsctl.profiles.ranges import SETTINGS, default_profile
from tests.example_counts import examples
from tests.profiles.drawn import PROFILES

EVERY = {setting.field for setting in SETTINGS}


def through(profile: ClientProfile, form: Format) -> ClientProfile:
    text = write_profiles([every_field(profile)], form)
    read = parse_profiles(text.encode(), f"a file of {form}")
    assert read.format is form
    assert read.warnings == ()
    (one,) = read.profiles
    assert one.stated <= HELD_FIELDS[form]
    return one.profile


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("form", Format)
@given(profile=PROFILES)
@settings(max_examples=examples(15, 300))
def test_a_format_reads_back_what_it_writes_but_for_what_it_declares(form: Format, profile: ClientProfile) -> None:
    try:
        read = through(profile, form)
    except InvalidFile as error:
        assert form is Format.LISTING
        assert "reads as a label" in error.message
        return
    changed = {each.field for each in differences(profile, read)}
    assert changed == set(lost_fields([profile], form))
    assert changed - {"message_vpn"} <= EVERY - HELD_FIELDS[form]


@pytest.mark.slow
@given(profile=PROFILES, path=st.lists(st.sampled_from(list(Format)), min_size=2, max_size=5))
@settings(max_examples=examples(30, 300))
def test_a_path_through_formats_changes_only_what_one_of_them_cannot_hold(
    profile: ClientProfile, path: list[Format]
) -> None:
    profile = dataclasses.replace(profile, copy_from_queue="q/1", copy_from_topic_endpoint="")
    at = profile
    for form in path:
        at = through(at, form)
    held = set.intersection(*(set(HELD_FIELDS[form]) for form in path))
    kept = {"message_vpn"} if Format.XML not in path else set()
    assert {each.field for each in differences(profile, at)} & (held | kept) == set()


def test_formats_that_hold_everything_are_the_ones_that_a_broker_is_configured_with() -> None:
    assert {form for form in Format if HELD_FIELDS[form] == EVERY} == {
        Format.SEMP_V2,
        Format.TERRAFORM,
        Format.ANSIBLE,
        Format.CSV,
    }
    assert EVERY - HELD_FIELDS[Format.CLI] == {"max_amqp_links"}
    assert len(HELD_FIELDS[Format.XML]) == 16
    assert HELD_FIELDS[Format.XML] < HELD_FIELDS[Format.SEMP_V1] | HELD_FIELDS[Format.LISTING]


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize("form", Format)
@given(several=st.lists(PROFILES, min_size=2, max_size=3, unique_by=lambda each: each.name))
@settings(max_examples=examples(5, 300))
def test_several_profiles_of_one_file_stay_several(form: Format, several: list[ClientProfile]) -> None:
    plain = [
        dataclasses.replace(default_profile(each.name), d_1_min_msg_burst=each.d_1_min_msg_burst) for each in several
    ]
    text = write_profiles([every_field(each) for each in plain], form)
    assert [each.profile for each in parse_profiles(text.encode(), "f").profiles] == plain


@given(profile=PROFILES, fields=st.sets(st.sampled_from(sorted(EVERY))))
@settings(max_examples=examples(15, 300))
def test_only_the_fields_asked_for_are_written(profile: ClientProfile, fields: set[str]) -> None:
    for form in (Format.SEMP_V2, Format.CLI, Format.TERRAFORM, Format.ANSIBLE):
        read = parse_profiles(write_profiles([(profile, frozenset(fields))], form).encode(), "f").profiles[0]
        asked = fields & HELD_FIELDS[form]
        written = {each for each in asked if getattr(profile, each) is not None}
        assert written <= read.stated <= asked
        assert {each.field for each in differences(profile, read.profile)} & asked == set()
