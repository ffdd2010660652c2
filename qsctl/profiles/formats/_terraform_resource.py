"""One Terraform resource as a client profile, from HCL or JSON.

Decides: the replacement of a name that is not in the file. A setting whose value is not in it is unknown, and named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from qsctl.profiles.formats._hcl import NotKnown
from qsctl.profiles.formats.draft import Draft, Drafts
from qsctl.profiles.ranges import SETTINGS
from qsctl.profiles.setting import ProfileSetting

RESOURCE: Final = "solacebroker_msg_vpn_client_profile"
LINK: Final = "solacebroker_dmr_cluster_link"
_LINK_PREFIX: Final = "client_profile_"
_BY_NAME: Final = {setting.terraform: setting for setting in SETTINGS}
META: Final = frozenset({"depends_on", "count", "for_each", "provider", "lifecycle", "provisioner", "connection"})
_NAMES: Final = frozenset({"client_profile_name", "msg_vpn_name"})


def add_resource(
    given: Mapping[str, tuple[object, int]], drafts: Drafts, *, is_link: bool, label: str, line: int
) -> None:
    """Add the profile of one resource.

    Args:
        given: the value of each argument, `NotKnown` if the file does not state it, and its line.
        drafts: receives the profile.
        is_link: whether it is a link of a DMR cluster, whose arguments have a prefix.
        label: replaces an unknown name.
        line: where the resource begins.
    """
    name_argument = "remote_node_name" if is_link else "client_profile_name"
    name, name_line = given.get(name_argument, (NotKnown(""), line))
    vpn, vpn_line = given.get("msg_vpn_name", (None, 0))
    shown_name = _word(label) if isinstance(name, NotKnown) else name
    if is_link:
        shown_name = _word(str(shown_name))
    shown_vpn = _stand_in(vpn) if isinstance(vpn, NotKnown) else vpn
    draft = drafts.begin(shown_name, shown_vpn, line=line)
    if draft is None:
        return
    if isinstance(name, NotKnown):
        drafts.leave_unknown(draft, "name", name.text, line=name_line, name=name_argument,
                             hint=f"The name {shown_name} stands for it.")  # fmt: skip
    if isinstance(vpn, NotKnown):
        drafts.leave_unknown(draft, "message_vpn", vpn.text, line=vpn_line, name="msg_vpn_name",
                             hint=f"The name {shown_vpn} stands for it.")  # fmt: skip
    for argument, (value, at) in given.items():
        setting = _BY_NAME.get(argument.removeprefix(_LINK_PREFIX) if is_link else argument)
        if is_link and (setting is None or not argument.startswith(_LINK_PREFIX)):
            continue
        if setting is not None:
            _put(drafts, draft, setting, argument, value, at)
        elif argument not in _NAMES and argument not in META:
            drafts.unknown(draft, argument, _BY_NAME, line=at, found="" if isinstance(value, NotKnown) else value)


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)[:32] or "_"


def _stand_in(value: NotKnown) -> str:
    """Return a name for a message VPN that an expression names: the label if it is a reference to a resource."""
    reference = re.fullmatch(r"(?:data\.)?solacebroker_\w+\.([\w-]+)(?:\[[^\]]*\])?\.\w+", value.text)
    return _word(value.text if reference is None else reference[1])


def _put(drafts: Drafts, draft: Draft, setting: ProfileSetting, name: str, value: object, line: int) -> None:
    levels = value.values() if isinstance(value, dict) else ()
    text = next((each.text for each in (value, *levels) if isinstance(each, NotKnown)), None)
    if text is not None:
        drafts.leave_unknown(draft, setting.field, text, line=line, name=name)
    elif value is not None:  # Terraform's null is as if it were not there
        is_nested = isinstance(value, list) or any(isinstance(each, list | dict) for each in levels)
        drafts.put(draft, setting, _NESTED if is_nested else value, line=line, name=name)


_NESTED: Final = "a list or an object"
"""In place of a value that no setting has, and that may be as long as its expressions made it."""
