"""What each format is read as, by examples: our own fixtures, and the listing of the documentation."""

from __future__ import annotations

import pytest

from qsctl.declared.problems import InvalidFile
from qsctl.profiles.client_profile import ClientProfile, Threshold
from qsctl.profiles.formats import listing
from qsctl.profiles.formats.file import ProfileFile, every_field, parse_profiles, read_profiles, write_profiles
from qsctl.profiles.formats.kinds import Format
from qsctl.profiles.ranges import default_profile
from qsctl.shipped import shipped


def fixture(name: str) -> ProfileFile:
    return read_profiles(shipped(f"fixtures/profiles/{name}"))


def by_name(file: ProfileFile) -> dict[str, ClientProfile]:
    return {each.profile.name: each.profile for each in file.profiles}


def parsed(text: str, form: Format | None = None) -> ProfileFile:
    return parse_profiles(text.encode(), "f", form)


def one(text: str, form: Format | None = None) -> ClientProfile:
    (read,) = parsed(text, form).profiles
    return read.profile


def changed(profile: ClientProfile) -> dict[str, object]:
    plain = default_profile(profile.name, profile.message_vpn)
    return {
        name: getattr(profile, name) for name in profile.__slots__ if getattr(profile, name) != getattr(plain, name)
    }


@pytest.mark.parametrize(
    ("name", "form", "profiles"),
    [
        ("web.json", Format.SEMP_V2, ["web"]),
        ("guaranteed.json", Format.SEMP_V2, ["guaranteed"]),
        ("reply.xml", Format.SEMP_V1, ["web", "guaranteed"]),
        ("broker.cfg", Format.CLI, ["guaranteed", "web"]),
        ("web.tf", Format.TERRAFORM, ["web"]),
        ("playbook.yml", Format.ANSIBLE, ["web", "web_deep"]),
        ("listing.txt", Format.LISTING, ["desks", "web"]),
    ],
)
def test_a_fixture_is_recognized_by_its_content(name: str, form: Format, profiles: list[str]) -> None:
    file = fixture(name)
    assert file.format is form
    assert list(by_name(file)) == profiles


def test_our_own_xml_is_recognized() -> None:
    file = read_profiles(shipped("fixtures/scenarios/profiles.xml"))
    assert file.format is Format.XML
    assert changed(by_name(file)["web_eliding"]) == {
        "d_1_max_depth_work_units": 100, "tcp_max_window_kb": 64, "eliding_enabled": True, "eliding_delay_ms": 250,
        "eliding_max_topics": 100,
    }  # fmt: skip


def test_semp_v2_reads_numbers_as_texts_and_leaves_the_rest_at_its_default() -> None:
    assert changed(by_name(fixture("web.json"))["web"]) == {
        "d_1_max_depth_work_units": 100, "d_2_max_depth_work_units": 100, "d_3_max_depth_work_units": 100,
        "tcp_max_window_kb": 64, "web_inactive_timeout_s": 60, "subscriptions_threshold": Threshold(90, 70),
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        '{"clientProfileName": "p", "msgVpnName": "v", "queueDirect1MaxDepth": 7}',
        '[{"clientProfileName": "p", "msgVpnName": "v", "queueDirect1MaxDepth": "7"}]',
        '{"data": {"clientProfileName": "p", "msgVpnName": "v", "queueDirect1MaxDepth": 7}, "links": {"uri": "u"}}',
        '{"data": [{"clientProfileName": "p", "msgVpnName": "v", "queueDirect1MaxDepth": 7,'
        ' "maxEffectiveRxFlowCount": 9}]}',
        '{"msgVpns": [{"msgVpnName": "v", "clientProfiles": [{"clientProfileName": "p", "queueDirect1MaxDepth": 7}]}]}',
        '{"operation": "update", "msgVpnName": "v",'
        ' "clientProfile": {"clientProfileName": "p", "queueDirect1MaxDepth": 7}}',
        '\ufeff {"clientProfileName": "p", "msgVpnName": "v", "queueDirect1MaxDepth": 7, "elidingEnabled": null}',
    ],
)  # fmt: skip
def test_semp_v2_comes_in_many_wrappings(text: str) -> None:
    profile = one(text)
    assert (profile.name, profile.message_vpn, changed(profile)) == ("p", "v", {"d_1_max_depth_work_units": 7})


def test_a_link_of_a_dmr_cluster_has_prefixed_names() -> None:
    profile = one(
        '{"data": [{"dmrClusterName": "c", "remoteNodeName": "east-1", "enabled": true, "queueMaxTtl": 0,'
        ' "clientProfileQueueGuaranteed1MinMsgBurst": 66000, "clientProfileTcpMaxWindowSize": "512"}]}'
    )
    assert profile.name == "east-1"
    assert changed(profile) == {"g_1_min_msg_burst": 66_000, "tcp_max_window_kb": 512}
    assert changed(
        one(
            'resource "solacebroker_dmr_cluster_link" "east" {\n  remote_node_name = "east"\n  enabled = true\n'
            "  client_profile_queue_control1_max_depth = 9\n}\n"
        )
    ) == {"c_1_max_depth_work_units": 9}


def test_a_reply_in_pages_is_read_whole_and_a_cookie_at_its_end_is_reported() -> None:
    file = fixture("reply.xml")
    assert by_name(file)["guaranteed"].max_egress_flows == 2000
    assert not file.warnings
    text = shipped("fixtures/profiles/reply.xml").read_text(encoding="utf-8")
    cut = text[: text.rindex("<execute-result")] + "<more-cookie><rpc/></more-cookie></rpc-reply>"
    assert "more-cookie" in str(parsed(cut).warnings[0])


def test_a_failed_reply_is_reported_with_its_reason() -> None:
    text = '<rpc-reply><execute-result code="fail" reason="not found"/></rpc-reply>'
    with pytest.raises(InvalidFile, match="the broker refused the request: not found"):
        parsed(text)


def test_a_script_has_modes_no_forms_and_assignments_that_are_no_definitions() -> None:
    profiles = by_name(fixture("broker.cfg"))
    assert changed(profiles["web"]) == {
        "eliding_enabled": True, "eliding_delay_ms": 250, "eliding_max_topics": 80, "d_1_max_depth_work_units": 50,
        "subscriptions_threshold": Threshold(60, 80),
    }  # fmt: skip
    assert profiles["guaranteed"].allow_guaranteed_message_receive
    assert profiles["guaranteed"].g_1_min_msg_burst == 4


def test_a_captured_terminal_reads_like_a_script() -> None:
    profile = one(
        "solace(configure)# client-profile web message-vpn v1\n"
        "solace(configure/client-profile)# queue D-1\n"
        "solace(configure/client-profile/queue)# max-depth 5\n"
        "solace(configure/client-profile/queue)# max-depth 6\n"
        "solace(configure/client-profile/queue)# exit\n"
        "solace(configure/client-profile)# tcp keepalive\n"
        "solace(configure/client-profile/tcp/keepalive)# idle 20\n"
        "solace(configure/client-profile/tcp/keepalive)# exit\n"
        "solace(configure/client-profile)# no queue G-1 min-msg-burst\n"
        "solace(configure/client-profile)# no compression\n"
        "solace(configure)# end\n"
        "solace# show client-profile\n"
    )
    assert changed(profile) == {
        "d_1_max_depth_work_units": 6, "tcp_keepalive_idle_s": 20, "allow_compression": False,
    }  # fmt: skip


def test_a_command_may_be_one_line_and_no_deletes() -> None:
    text = "client-profile a message-vpn v queue D-1 max-depth 9\nclient-profile b message-vpn v\nexit\n"
    assert changed(by_name(parsed(text))["a"]) == {"d_1_max_depth_work_units": 9}
    assert list(by_name(parsed(text + "no client-profile b message-vpn v\n"))) == ["a"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("queue D-9", "allowed: C-1, D-1, D-2, D-3, G-1"),
        ("queue egress", "TIBCO"),
        ("queue D-1\ntcp mss 1460", "leave the mode with exit"),
        ("queue D-1 max-depth", "the command has not the right number of words"),
        ("tcp mss 100", "a whole number from 256 to 1,460 bytes"),
        ("no tcp", "a mode cannot be undone"),
        ("event egress-flows thresholds set-percentage 5", "clear_percent is missing"),
        ("allow-bridge-connections yes", "allow-bridge-connections, or no allow-bridge-connections"),
    ],
)
def test_a_wrong_command_is_explained_with_its_line(command: str, words: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parsed(f"client-profile p message-vpn v\n{command}\n")
    assert words in caught.value.message
    assert caught.value.problems[0].line in {2, 3}


def test_terraform_takes_literals_and_names_references() -> None:
    file = fixture("web.tf")
    assert changed(by_name(file)["web"]) == {
        "d_1_max_depth_work_units": 100, "eliding_enabled": True, "eliding_delay_ms": 250,
        "egress_flows_threshold": Threshold(900, 700, False),
    }  # fmt: skip
    (read,) = file.profiles
    assert read.profile.message_vpn == "trading"
    assert read.unknown == {"message_vpn": "solacebroker_msg_vpn.trading.msg_vpn_name"}
    assert [warning.line for warning in file.warnings] == [3]


def test_a_setting_whose_value_is_elsewhere_is_unknown_and_named() -> None:
    for form, text, expression in (
        (
            Format.TERRAFORM,
            'resource "solacebroker_msg_vpn_client_profile" "p" {\n  client_profile_name = "p"\n'
            "  eliding_delay = var.d\n  eliding_enabled = true\n}",
            "var.d",
        ),
        (
            Format.ANSIBLE,
            '- solace_client_profile:\n    {name: p, settings: {elidingEnabled: true,\n    elidingDelay: "{{ d }}"}}\n',
            "{{ d }}",
        ),
    ):
        file = parsed(text, form)
        (read,) = file.profiles
        assert read.unknown == {"eliding_delay_ms": expression}
        assert (read.profile.eliding_enabled, read.stated) == (True, {"eliding_enabled"})
        assert [(problem.line, problem.found) for problem in file.warnings] == [(3, expression)]
        with pytest.raises(InvalidFile, match="the value of eliding_delay_ms is not in the file"):
            file.require_every_value([read])
        file.require_every_value([read], but={"eliding_delay_ms"})


def unknown(file: ProfileFile) -> dict[str, dict[str, str]]:
    return {each.profile.name: dict(each.unknown) for each in file.profiles if each.unknown}


def test_ansible_applies_tasks_in_their_order_and_reads_loops_and_variables() -> None:
    file = fixture("loops.yml")
    profiles = by_name(file)
    assert list(profiles) == ["base", "web", "desks", "cloud_profile"]
    assert changed(profiles["base"]) == {"d_1_max_depth_work_units": 100, "max_amqp_links": 50}
    assert changed(profiles["web"]) == {"eliding_enabled": True, "eliding_delay_ms": 250}
    assert changed(profiles["desks"]) == {"eliding_enabled": True, "eliding_delay_ms": 100}
    assert [profile.message_vpn for profile in profiles.values()] == ["trading", "trading", "trading", "default"]
    assert unknown(file) == {
        "base": {"eliding_delay_ms": "{{ base_delay }}"}, "cloud_profile": {"name": "{{ cloud_profile }}"},
    }  # fmt: skip
    assert [(problem.line, problem.severity) for problem in file.problems] == [(29, "warning"), (40, "warning")]


def test_a_profile_that_is_made_absent_and_made_again_has_what_it_was_made_with() -> None:
    task = "- solace_client_profile: {{name: p, state: {}, settings: {{{}}}}}\n"
    text = task.format("present", "elidingDelay: 5") + task.format("absent", "") + task.format("present", "")
    assert one(text) == default_profile("p")
    with pytest.raises(InvalidFile, match="It makes p and deletes it again"):
        parsed(task.format("present", "elidingDelay: 5") + task.format("absent", ""))


def test_terraform_makes_a_profile_of_each_instance() -> None:
    file = fixture("instances.tf")
    found = [(each.profile.name, each.profile.message_vpn, changed(each.profile)) for each in file.profiles]
    assert found == [
        ("web", "trading", {"d_1_max_depth_work_units": 100, "eliding_enabled": True, "eliding_delay_ms": 250}),
        ("desks", "trading", {"d_1_max_depth_work_units": 100}),
        ("default", "trading", {"max_amqp_links": 50}),
        ("shared", "a", {"d_1_max_depth_work_units": 50}),
        ("shared", "b", {}),
    ]
    assert [dict(each.unknown) for each in file.profiles] == [
        {"max_egress_flows": "var.flows"}, {"max_egress_flows": "var.flows"}, {},
        {"message_vpn": "solacebroker_msg_vpn.a.msg_vpn_name"},
        {"message_vpn": "solacebroker_msg_vpn.b.msg_vpn_name", "d_1_max_depth_work_units": "var.depth/2"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("var.depth", 100), ('"${var.depth}"', 100), ("var.depth * 2 + 1", 201), ("-5 + 105", 100),
        ("var.depth > 5 ? 7 : 8", 7), ('var.kind == "web" && !false ? 7 : 8', 7), ("local.table.a", 5),
        ('local.table["b"]', 6), ("local.list[1]", 9), ('lookup(local.table, "c", 11)', 11), ("try(var.none, 12)", 12),
        ("merge(local.table, { a = 13 }).a", 13), ("[for x in local.list : x if x > 8][0]", 9),
        ("{ for k, v in local.table : k => v }.b", 6), ("length(local.list)", 2), ("(100)", 100), ("var.none", None),
        ("var.depth / 2", None), ("max(1, 2)", None), ("module.m.depth", None), ("data.d.e.depth", None),
        ("local.list[*]", None), ('file("depth")', None), ("local.circle", None),
    ],
)  # fmt: skip
def test_an_expression_has_its_value_where_the_file_states_it(expression: str, value: int | None) -> None:
    text = (
        'variable "depth" { default = 100 }\nvariable "none" {}\nvariable "kind" {\n  default = "web"\n}\n'
        "locals {\n  table = { a = 5, b = 6 }\n  list = [8, 9]\n  circle = local.circle\n}\n"
        f'resource "solacebroker_msg_vpn_client_profile" "p" {{\n  client_profile_name = "p"\n'
        f"  eliding_max_topic_count = {expression}\n}}\n"
    )
    (read,) = parsed(text).profiles
    assert (read.profile.eliding_max_topics if value is not None else None) == value
    assert bool(read.unknown) is (value is None)


def test_a_plan_a_state_and_a_configuration_in_json_are_terraform() -> None:
    file = fixture("plan.json")
    (read,) = file.profiles
    assert file.format is Format.TERRAFORM
    assert changed(read.profile)["egress_flows_threshold"] == Threshold(90, 70)
    assert read.unknown == {"message_vpn": "(known after apply)", "max_egress_flows": "(known after apply)"}
    kind = "solacebroker_msg_vpn_client_profile"
    values = '{"client_profile_name": "p", "msg_vpn_name": "v", "eliding_delay": 5}'
    for text in (
        f'{{"version": 4, "terraform_version": "1", "resources": [{{"type": "{kind}", "name": "x", "instances": '
        f'[{{"index_key": "a", "attributes": {values}}}]}}]}}',
        f'{{"values": {{"root_module": {{"resources": [{{"type": "{kind}", "address": "a", "values": {values}}}]}}}}}}',
        f'{{"resource": {{"{kind}": {{"x": {values}}}}}}}',
    ):
        (read,) = parsed(text).profiles
        assert (read.profile.name, read.profile.message_vpn, read.stated) == ("p", "v", {"eliding_delay_ms"}), text


def test_what_a_session_shows_between_its_commands_is_passed_over() -> None:
    text = (
        "broker(configure)# client-profile p message-vpn default\n"
        "broker(configure/client-profile)# eliding delay 5\n"
        "broker(configure/client-profile)# show client-profile p message-vpn default\n"
        "  Client Keepalive\n    queue : 5\n"
        "broker(configure/client-profile)# tcp mss 1000\n"
    )
    file = parsed(text)
    assert changed(by_name(file)["p"]) == {"eliding_delay_ms": 5, "tcp_mss_bytes": 1000}
    assert not file.problems


def test_a_command_outside_its_mode_is_reported_with_the_mode() -> None:
    text = "client-profile p message-vpn v\nallow-guaranteed-msg-send\neliding delay 5\n"
    (problem,) = parsed(text).errors
    assert problem.suggestion == "Did you mean message-spool allow-guaranteed-message-send?"


def test_a_backup_is_a_script() -> None:
    file = fixture("current.cfg")
    assert file.format is Format.CLI
    assert {name: changed(profile) for name, profile in by_name(file).items()} == {
        "desks": {
            "d_1_max_depth_work_units": 500, "allow_guaranteed_message_send": True,
            "allow_guaranteed_message_receive": True, "allow_downgrade_to_plain_text": False,
        }
    }  # fmt: skip


def test_replies_are_read_from_what_a_terminal_wrote_around_them() -> None:
    file = fixture("curl.txt")
    assert file.format is Format.SEMP_V1
    assert changed(by_name(file)["web"]) == {
        "d_1_max_depth_work_units": 100, "eliding_enabled": True, "eliding_delay_ms": 250,
        "egress_flows_threshold": Threshold(90, 70),
    }  # fmt: skip
    text = shipped("fixtures/profiles/curl.txt").read_text(encoding="utf-8")
    (problem,) = parsed(text.replace(">250<", ">soon<")).errors
    assert text.splitlines()[problem.line - 1].strip().startswith("<eliding-delay>")
    body = '{"data": {"clientProfileName": "p", "elidingDelay": 5}}'
    file = parsed(f"$ curl -i broker\nHTTP/1.1 200 OK\n\n{body}\n$ curl b\n" + body.replace('"p"', '"q"'))
    assert {name: changed(each) for name, each in by_name(file).items()} == {
        "p": {"eliding_delay_ms": 5}, "q": {"eliding_delay_ms": 5},
    }  # fmt: skip
    assert "3 lines around the JSON" in str(file.warnings[0])


def test_a_message_vpn_is_no_profile_though_it_has_some_of_the_names() -> None:
    vpn = '{"msgVpnName": "v", "enabled": true, "maxEgressFlowCount": 5, "maxConnectionCount": 5, "state": "up"}'
    with pytest.raises(InvalidFile, match="there is no client profile"):
        parsed(vpn)
    assert one('{"elidingDelay": 5, "maxEgressFlowCount": 7}').max_egress_flows == 7


def test_a_comment_before_each_reply_is_passed_over() -> None:
    text = shipped("fixtures/profiles/reply.xml").read_text(encoding="utf-8")
    text = text[text.index("<rpc-reply") :]
    assert by_name(parsed("<!-- one\n --> " + text)) == by_name(parsed(text))
    assert [each.profile.name for each in parsed(text).profiles] == [
        each.profile.name for each in fixture("reply.xml").profiles
    ]


def test_a_profile_of_the_cloud_has_its_own_name() -> None:
    profile = one('{"data": [{"id": "x", "type": "clientProfile", "name": "p", "elidingDelay": "5"}]}')
    assert (profile.name, changed(profile)) == ("p", {"eliding_delay_ms": 5})


def test_a_table_has_a_profile_a_row_or_a_setting_a_row() -> None:
    text = (
        "name;VPN;queueDirect1MaxDepth;eliding_enabled;egress_flows_threshold\nweb;v;100;true;90%/70%\np;v;;;900/700\n"
    )
    profiles = by_name(parsed(text))
    assert changed(profiles["web"])["egress_flows_threshold"] == Threshold(90, 70)
    assert changed(profiles["p"]) == {"egress_flows_threshold": Threshold(900, 700, False)}
    assert profiles["p"].message_vpn == "v"
    profile = one("setting,value,unit\nd_1_max_depth_work_units,100,work units\nelidingEnabled,true,\n")
    assert (profile.name, changed(profile)) == ("default", {"d_1_max_depth_work_units": 100, "eliding_enabled": True})


def test_ansible_merges_defaults_and_leaves_absent_profiles_out() -> None:
    profiles = by_name(fixture("playbook.yml"))
    assert changed(profiles["web_deep"]) == {
        "d_1_max_depth_work_units": 500, "eliding_enabled": True, "eliding_delay_ms": 250,
    }  # fmt: skip
    assert {profile.message_vpn for profile in profiles.values()} == {"trading"}


def flowed(text: str) -> str:
    return " ".join(text.split())


def test_a_listing_reads_alike_as_a_table_as_one_line_and_folded() -> None:
    text = shipped("fixtures/profiles/listing.txt").read_text(encoding="utf-8")
    table = parsed(text).profiles
    assert [each.profile for each in parsed(flowed(text)).profiles] == [each.profile for each in table]
    words = flowed(text).split(" ")
    folded = "\n".join(" ".join(words[at : at + 7]) for at in range(0, len(words), 7))
    assert [each.profile for each in parsed(folded).profiles] == [each.profile for each in table]
    assert changed(table[1].profile)["copy_from_queue"] == "templates/web queue"


def test_a_listing_of_the_documentation_s_values_prints_back_word_for_word() -> None:
    text = shipped("fixtures/profiles/listing.txt").read_text(encoding="utf-8")
    (first, _) = parsed(text).profiles
    assert (first.profile.max_egress_flows, first.profile.max_subscriptions) == (16_000, 5_000_000)
    printed = listing.detail(first.profile, users=(("CU", "default", 0),))
    assert flowed(printed) == flowed(text[text.index("Profile Name") : text.index("Profile Name", 200)])


def test_rows_of_another_version_of_the_broker_are_left_out_of_a_listing() -> None:
    text = write_profiles([every_field(default_profile("p"))], Format.LISTING)
    text = text.replace("TCP\n", "Shared Subscriptions : deny\nTCP\n").replace(
        "Web Transport\n", "Brand New : 5\nWeb Transport\n"
    )
    assert one(text) == default_profile("p")
    assert one(flowed(text).replace("Shared Subscriptions : deny ", "")) == default_profile("p")


def test_a_missing_row_is_not_taken_from_the_next_section() -> None:
    text = write_profiles([every_field(default_profile("p"))], Format.LISTING)
    lines = text.splitlines()
    without = "\n".join(line for at, line in enumerate(lines) if at != lines.index("Queue Max Depths") + 2)
    (read,) = parsed(without).profiles
    assert "d_1_max_depth_work_units" not in read.stated
    assert read.profile == default_profile("p")
