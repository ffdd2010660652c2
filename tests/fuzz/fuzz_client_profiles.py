"""Files of client profiles: profiles that every full format reads back, or one `InvalidFile`.

The first byte of an input chooses the format, or that it is recognized; the rest is the file.
"""

from __future__ import annotations

from qsctl.declared.problems import InvalidFile
from qsctl.profiles.difference import differences
from qsctl.profiles.formats._format import HELD_FIELDS
from qsctl.profiles.formats.file import every_field, parse_profiles, write_profiles
from qsctl.profiles.formats.kinds import Format
from qsctl.profiles.ranges import BY_FIELD

DICTIONARY = (
    b"clientProfileName", b"queueDirect1MaxDepth", b"clientProfileQueueDirect1MaxDepth", b"elidingEnabled", b"data",
    b"client-profile p message-vpn v\n", b"queue D-1", b"max-depth", b"no ", b"exit\n", b"end\n", b"thresholds ",
    b"resource \"solacebroker_msg_vpn_client_profile\" \"p\" {", b"${", b"<<E\n", b"solace_client_profile:", b"<<: *a",
    b"&a ", b"Profile Name : ", b"Queue Max Depths", b"Legend:", b"<rpc-reply>", b"</rpc-reply>", b"<profile>",
    b"{{ a | default(5) }}", b"loop: [", b"vars: {a: ", b"state: absent", b"variable \"a\" { default = ", b"local.a",
    b"for_each = {", b"count = ", b"[for x in ", b" ? 1 : 2", b"planned_values", b"root_module", b"name,elidingDelay\n",
    b"80%/60%", b"$ curl\n", b"<event-thresholds>", b"<queue name=\"D-1\" max-depth=\"", b"\n", b"\r\n", b"true", b"-1",
    b"262145", b"9999999999999999999", b"null",
)  # fmt: skip
SHORT_COUNT = 200

_FORMATS = (None, *Format)


def one_input(data: bytes) -> None:
    form = _FORMATS[(data[0] if data else 0) % len(_FORMATS)]
    try:
        file = parse_profiles(data[1:], "f", form)
    except InvalidFile as error:
        assert error.problems
        assert len(error.message) < 100_000
        assert all(line.isprintable() for line in error.message.splitlines())
        return
    assert file.profiles
    assert all(line.isprintable() for problem in file.problems for line in str(problem).splitlines())
    assert not any(read.unknown.keys() & read.stated for read in file.profiles)
    for to in (Format.SEMP_V2, Format.CLI, Format.TERRAFORM):
        text = write_profiles([every_field(each.profile) for each in file.profiles], to)
        read = parse_profiles(text.encode(), "written", to).profiles
        for before, after in zip(file.profiles, read, strict=True):
            lost = BY_FIELD.keys() - HELD_FIELDS[to]
            assert differences(before.profile, after.profile, names=True, but=lost) == ()
