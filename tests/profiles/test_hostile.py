"""Hostile input of each format: one error with its place, bounded in time and memory, never another exception."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.declared.problems import SHOWN_MAX, InvalidFile, Problem
from qsctl.errors import ExitStatus
from qsctl.profiles.formats._format import BYTES_MAX
from qsctl.profiles.formats.draft import UNKNOWN_MAX
from qsctl.profiles.formats.file import every_field, parse_profiles, read_profiles, write_profiles
from qsctl.profiles.formats.kinds import Format
from qsctl.profiles.ranges import default_profile
from qsctl.shipped import shipped
from tests.example_counts import examples

TERRAFORM = 'resource "solacebroker_msg_vpn_client_profile" "p" {{\n  client_profile_name = "p"\n  {}\n}}\n'
ANSIBLE = "- solace_client_profile:\n    name: p\n    settings:\n      {}\n"
SEMP_V1 = "<rpc-reply><rpc><show><client-profile><profiles><profile><name>p</name>\n{}</profile></profiles>" \
    "</client-profile></show></rpc></rpc-reply>"  # fmt: skip
XML = '<profiles>\n<profile name="p">{}</profile></profiles>'
CLI = "client-profile p message-vpn v\n{}\n"


def refused(text: str | bytes, form: Format | None = None) -> InvalidFile:
    with pytest.raises(InvalidFile) as caught:
        parse_profiles(text if isinstance(text, bytes) else text.encode(), "f", form)
    assert caught.value.exit_status is ExitStatus.NO
    assert len(caught.value.message) < 40_000
    return caught.value


@pytest.mark.parametrize(
    ("form", "text", "line"),
    [
        (Format.SEMP_V2, '{"clientProfileName": "p",\n "queueDirect1MaxDepth": 1}', 2),
        (Format.SEMP_V2, '{"clientProfileName": "p",\n "queueDirect1MaxDepth": 2.5}', 2),
        (Format.SEMP_V2, '{"clientProfileName": "p",\n "queueDirect1MaxDepth": true}', 2),
        (Format.SEMP_V2, '{"clientProfileName": "p",\n "elidingEnabled": 1}', 2),
        (Format.SEMP_V2, '{"clientProfileName": "p",\n "elidingEnabled": "perhaps"}', 2),
        (Format.SEMP_V2, '{"clientProfileName": "p",\n "eventEgressFlowCountThreshold": 5}', 2),
        (Format.SEMP_V2, '{"clientProfileName": "p",\n'
         ' "eventEgressFlowCountThreshold": {"setPercent": 101,"clearPercent": 1}}', 2),
        (Format.SEMP_V2, '{"clientProfileName": "p",\n "queueGuaranteedMinMsgBurst": 5}', 2),
        (Format.SEMP_V2, '{"clientProfileName": "p", "elidingDelay": 1,\n "elidingDelay": 2}', 2),
        (Format.SEMP_V1, SEMP_V1.format("<direct-1-queue-max-depth>many</direct-1-queue-max-depth>"), 2),
        (Format.SEMP_V1, SEMP_V1.format("<tcp><mss>1461</mss></tcp>"), 2),
        (Format.XML, XML.format('<queue name="D-1" max-depth="1"/>'), 2),
        (Format.XML, XML.format('<queue name="D-7" max-depth="5"/>'), 2),
        (Format.XML, XML.format('<tcp maximum-window="12"/>'), 2),
        (Format.XML, XML.format('<eliding delay="5"/>'), 2),
        (Format.XML, XML.format('<quue name="D-1"/>'), 2),
        (Format.CLI, CLI.format("queue D-1 max-depth 262145"), 2),
        (Format.CLI, CLI.format("eliding delay fast"), 2),
        (Format.CLI, CLI.format('message-spool api-queue-management copy-from-on-create "q'), 2),
        (Format.TERRAFORM, TERRAFORM.format("queue_direct1_max_depth = -5"), 3),
        (Format.TERRAFORM, TERRAFORM.format('eliding_enabled = "perhaps"'), 3),
        (Format.TERRAFORM, TERRAFORM.format("eliding_delay = [1]"), 3),
        (Format.TERRAFORM, TERRAFORM.format("eliding_delay = 1\n  eliding_delay = 2"), 4),
        (Format.TERRAFORM, TERRAFORM.format("queue_direct1_maxdepth = 5"), 3),
        (Format.ANSIBLE, ANSIBLE.format("queueDirect1MaxDepth: [5]"), 4),
        (Format.ANSIBLE, ANSIBLE.format("elidingDelay: !!python/object/apply:os.system ['true']"), 4),
        (Format.ANSIBLE, ANSIBLE.format("elidingDelay: 70000"), 4),
        (Format.LISTING, "Profile Name : p\nQueue Max Depths\nG-1 : lots work units\n", 3),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_is_one_error_with_its_line(form: Format, text: str, line: int) -> None:
    (problem,) = errors_of(text, form)
    assert problem.line == line
    assert problem.path or problem.found
    assert problem.found or problem.allowed or problem.suggestion


def errors_of(text: str, form: Format | None) -> list[Problem]:
    """Return what cannot be read: of a file that is refused, or of one whose other values are read."""
    try:
        return list(parse_profiles(text.encode(), "f", form).errors)
    except InvalidFile as error:
        return [problem for problem in error.problems if problem.severity == "error"]


@pytest.mark.parametrize(
    ("form", "text", "field", "unread"),
    [
        (Format.SEMP_V2, '{"clientProfileName": "p", "elidingDelay": 5, "queueDirect1MaxDepth": 1}',
         "d_1_max_depth_work_units", "1"),
        (Format.SEMP_V1, SEMP_V1.format("<eliding-delay>5</eliding-delay><tcp><mss>9</mss></tcp>"),
         "tcp_mss_bytes", "9"),
        (Format.CLI, CLI.format("eliding delay 5\ntcp mss fast"), "tcp_mss_bytes", "fast"),
        (Format.TERRAFORM, TERRAFORM.format("eliding_delay = 5\n  tcp_max_segment_size = -5"), "tcp_mss_bytes", "-5"),
        (Format.ANSIBLE, ANSIBLE.format("elidingDelay: 5\n      tcpMaxSegmentSize: many"), "tcp_mss_bytes", "many"),
        (Format.XML, XML.format('<eliding delay="5ms"/><queue name="D-1" max-depth="1"/>'),
         "d_1_max_depth_work_units", "1"),
        (Format.CSV, "name,elidingDelay,mss\np,5,none\n".replace("mss", "tcpMaxSegmentSize"), "tcp_mss_bytes", "none"),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_costs_that_value(form: Format, text: str, field: str, unread: str) -> None:
    file = parse_profiles(text.encode(), "f", form)
    (read,) = file.profiles
    assert read.profile == dataclasses.replace(default_profile("p", read.profile.message_vpn), eliding_delay_ms=5)
    assert read.stated == {"eliding_delay_ms"}
    assert read.unknown == {field: unread}
    (problem,) = file.errors
    assert problem.found == unread
    with pytest.raises(InvalidFile, match="no valid value"):
        file.require_every_value(file.profiles)


def parse_error_lines(error: InvalidFile) -> list[int]:
    return [problem.line for problem in error.problems if problem.severity == "error"]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Format.SEMP_V2, "[" * 100_000),
        (Format.SEMP_V2, '{"a":' * 100_000),
        (Format.SEMP_V2, '{"clientProfileName": "p", "elidingDelay": NaN}'),
        (Format.SEMP_V2, '{"clientProfileName": "p", "elidingDelay": ' + "9" * 100_000 + "}"),
        (Format.SEMP_V2, '{"clientProfileName": "\\ud800", "elidingDelay": 1}'),
        (Format.SEMP_V2, '{"data": []}'),
        (Format.SEMP_V1, '<!DOCTYPE r [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><rpc-reply>&b;</rpc-reply>'),
        (Format.SEMP_V1, "<rpc-reply>" + "<a>" * 1000 + "</a>" * 1000 + "</rpc-reply>"),
        (Format.XML, '<!DOCTYPE p SYSTEM "file:///etc/passwd"><profiles/>'),
        (Format.XML, '<profiles><profile name="p" file="/etc/passwd"/></profiles>'),
        (Format.TERRAFORM, "a = " + "[" * 100_000),
        (Format.TERRAFORM, "a = " + "(" * 1000 + "1" + ")" * 1000),
        (Format.TERRAFORM, 'a = "' + "${" * 1000 + "}" * 1000 + '"'),
        (Format.TERRAFORM, 'resource "x'),
        (Format.ANSIBLE, "&a [" * 10_000),
        (Format.ANSIBLE, "- " * 400_000),
        (Format.ANSIBLE, "? " * 400_000),
        (Format.ANSIBLE, "- {a: [1, 2, 3]}\n" * 50_000),
        (Format.TERRAFORM, "a = [1, 2, 3]\n" * 30_000),
        (Format.CLI, "a(b" * 500_000),
        (Format.ANSIBLE, "a: &a [*a]\nb: {" * 50),
        (Format.ANSIBLE, "- &t {block: [*t]}\n"),
        (Format.ANSIBLE, "\n".join(["- &a0 {solace_client_profile: {name: p}}"] + [
            f"- &a{n} {{block: [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]}}" for n in range(1, 20)]) + "\n"),
        (Format.ANSIBLE, "- solace_client_profile: {name: p, settings: &s {<<: {elidingDelay: 1, <<: *s}}}"),
        (Format.ANSIBLE, "x: !!python/object/apply:os.system ['true']\n"),
        (Format.CLI, "client-profile " + "x" * 100_000 + " message-vpn v\n"),
        (Format.CLI, 'client-profile p message-vpn "' + "v" * 40 + '"\n'),
        (Format.LISTING, "Profile Name : " * 5000),
        (Format.LISTING, "Profile Name : p " + "Queue Max Depths " * 5000),
        (Format.XML, XML.format('<tcp maximum-window="1e999999999"/>')),
        (Format.XML, XML.format('<eliding delay="' + "9" * 60_000 + 's"/>')),
        (None, "x(y" * 200_000),
        (None, "\n" * 200_000 + "x"),
        (None, "<!---->" * 20_000 + "x"),
        (Format.SEMP_V1, "<rpc-reply>" + " " * 500_000 + "</rpc-reply><rpc-reply></rpc-reply>"),
        (None, b"\xff\xfe\x00"),
        (None, b""),
        (None, "hello"),
        (None, "<html/>"),
        (None, '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><profiles/>'),
    ],
    ids=lambda each: str(each)[:20] if each else "any",
)  # fmt: skip
def test_an_attack_is_one_error(form: Format | None, text: str | bytes) -> None:
    refused(text, form)


@pytest.mark.slow(beyond=4)
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "local",
    [
        "\n".join(f'a{n}="${{local.a{n + 1}}}${{local.a{n + 1}}}"' for n in range(60)),
        "\n".join(f'a{n}="${{local.a{n + 1}}}${{local.a{n + 1}}}"' for n in range(60)) + '\na60="xx"',
        "\n".join(f"a{n}=[local.a{n + 1}, local.a{n + 1}]" for n in range(60)) + "\na60=[]",
        "\n".join(f"a{n}=concat(local.a{n + 1}, local.a{n + 1})" for n in range(60)) + "\na60=[1]",
        "\n".join(f"a{n}=local.a{n + 1} * local.a{n + 1}" for n in range(60)) + "\na60=99",
        "a0=local.a0",
        "a0=" + "!" * 3000 + "true",
        "a0=[for x in [for y in local.b : local.b] : [for z in local.b : local.b]]\nb=[" + "1," * 300 + "]",
    ],
    ids=lambda local: local[:20],
)
def test_expressions_that_grow_or_turn_in_a_circle_are_not_known(local: str) -> None:
    text = f"locals {{\n{local}\n}}\n" + TERRAFORM.format("eliding_delay = local.a0\n  eliding_max_topic_count = 5")
    try:
        (read,) = parse_profiles(text.encode(), "f").profiles
    except InvalidFile as error:
        assert any(words in error.message for words in ("too much", "not HCL")), error.message
        return
    assert read.unknown["eliding_delay_ms"]
    assert read.stated == {"eliding_max_topics"}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "- vars: {a: '{{ b }}', b: '{{ a }}'}\n"
        "  block:\n  - solace_client_profile: {name: p, settings: {elidingDelay: '{{ a }}'}}\n",
        "- vars: {" + ", ".join(f"a{n}: '{{{{ a{n + 1} }}}}{{{{ a{n + 1} }}}}'" for n in range(60)) + "}\n"
        "  block:\n  - solace_client_profile: {name: p, settings: {elidingDelay: '{{ a0 }}'}}\n",
        "- solace_client_profile: {name: p, settings: {elidingDelay: '{{ " + "a." * 2000 + " }}'}}\n",
        "- solace_client_profile: {name: p, settings: {elidingDelay: '{{ a | default(" + "(" * 2000 + " }}'}}\n",
        "- vars: {l: [" + "1," * 9000 + "]}\n  loop: '{{ l }}'\n"
        "  solace_client_profile: {name: p, settings: {elidingDelay: '{{ x }}'}}\n",
        "- loop: [[1]]\n  solace_client_profile: {name: p, settings: {elidingDelay: '{{ item[0][0][0] }}'}}\n",
    ],
    ids=lambda text: text[:30],
)  # fmt: skip
def test_templates_that_grow_or_turn_in_a_circle_are_not_known(text: str) -> None:
    try:
        (read,) = parse_profiles(text.encode(), "f").profiles
    except InvalidFile as error:
        assert "too much" in error.message
        return
    assert read.unknown["eliding_delay_ms"]


def test_a_document_type_is_what_is_wrong_whether_or_not_the_format_is_named() -> None:
    for form in (None, Format.XML, Format.SEMP_V1):
        assert "document type declaration is refused" in refused(b"<!DOCTYPE a []><profiles/>", form).message


@pytest.mark.parametrize("form", Format)
def test_more_than_a_format_s_bound_is_refused_before_it_is_parsed(form: Format) -> None:
    assert "too large" in refused(b" " * 100 + b"x" * BYTES_MAX[form], form).message


def test_a_file_of_a_hundred_megabytes_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(100 * 1024 * 1024)
    with pytest.raises(InvalidFile, match="too large"):
        read_profiles(path)


def test_a_missing_file_has_its_own_exit_status(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_profiles(tmp_path / "none.json")
    assert caught.value.exit_status is ExitStatus.NOT_FOUND


def test_every_problem_of_a_file_is_reported_in_one_run_and_their_number_is_bounded() -> None:
    error = refused(
        '{"clientProfileName": "p",\n "queueDirect1MaxDepth": 1,\n "tcpInitialCongestionWindow": 4,\n'
        ' "elidingDelay": "x"}'
    )
    assert parse_error_lines(error) == [2, 3, 4]
    assert "Did you mean tcpCongestionWindowSize?" in error.message
    many = refused("client-profile p message-vpn v\n" + "queue D-1 max-depth 0\n" * 5000, Format.CLI)
    assert many.message.count("no valid value") == SHOWN_MAX
    names = ", ".join(f'{{"clientProfileName": "p{n}"}}' for n in range(3000))
    assert "too many profiles" in refused(f"[{names}]").message


@pytest.mark.slow
def test_unknown_names_are_looked_at_so_often_and_no_more() -> None:
    names = ", ".join(f'"queueDirect{n}MaxDepht": 1' for n in range(50_000))
    error = refused(f'{{"clientProfileName": "p", {names}}}')
    assert "there are too many unknown names" in str(error.problems[UNKNOWN_MAX])
    script = "client-profile p message-vpn v\n" + "\n".join(f"quueu{n} 1" for n in range(50_000))
    assert "there are too many unknown names" in refused(script).message


def test_a_name_that_another_tool_would_read_as_its_own_is_not_written() -> None:
    profile = dataclasses.replace(default_profile("p"), copy_from_queue="{{ q }}")
    with pytest.raises(InvalidFile, match="reads as a template"):
        write_profiles([every_field(profile)], Format.ANSIBLE)
    profile = dataclasses.replace(default_profile("p"), copy_from_queue="TCP MSS")
    with pytest.raises(InvalidFile, match="reads as a label"):
        write_profiles([every_field(profile)], Format.LISTING)


def test_an_attribute_of_another_version_is_a_warning() -> None:
    file = parse_profiles(b'{"clientProfileName": "p", "brandNewThing": 5}', "f")
    assert ["brandNewThing" in str(warning) for warning in file.warnings] == [True]
    assert not file.errors


OCTETS = b"{}[]()<>\"'\\:=&*!#%$-,.0123456789\n\t \x00\xff"
SEEDS = [path.read_bytes() for path in sorted(shipped("fixtures/profiles").iterdir())]
SEEDS += [write_profiles([every_field(default_profile("p"))], form).encode() for form in Format]


def parses_or_is_refused(data: bytes, form: Format | None) -> None:
    try:
        assert parse_profiles(data, "f", form).profiles
    except InvalidFile as error:
        assert error.problems


@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode), form=st.sampled_from([None, *Format]))
@settings(max_examples=examples(60))
def test_any_octets_give_profiles_or_a_profile_error(data: bytes, form: Format | None) -> None:
    parses_or_is_refused(data, form)


@given(seed=st.integers(0, 2**32), form=st.sampled_from([None, None, *Format]))
@settings(max_examples=examples(80))
def test_edited_files_give_profiles_or_a_profile_error(seed: int, form: Format | None) -> None:
    draw = random.Random(seed)
    data = bytearray(draw.choice(SEEDS))
    other = draw.choice(SEEDS)
    for _ in range(draw.randint(1, 4)):
        at, length = draw.randrange(len(data) + 1), draw.choice([1, 1, 3, 40])
        match draw.randrange(4):
            case 0:
                del data[at : at + length]
            case 1:
                start = draw.randrange(len(other))
                data[at:at] = other[start : start + length]
            case 2:
                data[at : at + length] = bytes(draw.choice(OCTETS) for _ in range(length))
            case _:
                data[at:at] = data[max(0, at - length) : at] * draw.choice([1, 2, 20])
    parses_or_is_refused(bytes(data), form)
