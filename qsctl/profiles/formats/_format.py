"""The formats of profiles, the fields of each, and their recognition by a file's content.

Decides: the bound on each format's size, and the set of fields that it holds; fields that it does not hold are listed
when a profile is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from qsctl.declared.problems import refusal
from qsctl.profiles.formats import _ansible as ansible
from qsctl.profiles.formats import _cli_text as cli_text
from qsctl.profiles.formats import _csv_table as csv_table
from qsctl.profiles.formats import _semp_v1 as semp_v1
from qsctl.profiles.formats import _terraform as terraform
from qsctl.profiles.formats import listing, semp_v2, xml
from qsctl.profiles.formats.kinds import Format
from qsctl.profiles.ranges import SETTINGS

DESCRIPTIONS: Final[Mapping[Format, str]] = {
    Format.SEMP_V2: "SEMP v2 JSON, also of a backup or the cloud",
    Format.SEMP_V1: "SEMP v1 XML, the reply to show client-profile",
    Format.LISTING: "show client-profile NAME detail",
    Format.CLI: "CLI script with client-profile NAME message-vpn VPN",
    Format.TERRAFORM: "Terraform resource solacebroker_msg_vpn_client_profile, in HCL, a state or a plan as JSON",
    Format.ANSIBLE: "Ansible tasks of solace_client_profile or solace_cloud_client_profile",
    Format.CSV: "CSV with a profile a row, or a setting a row",
    Format.XML: "<profile> of a scenario or in <profiles>",
}

_MEBIBYTE: Final = 1024 * 1024
BYTES_MAX: Final[Mapping[Format, int]] = {
    Format.SEMP_V2: 16 * _MEBIBYTE,
    Format.SEMP_V1: semp_v1.LIMITS.size_bytes,
    Format.LISTING: 4 * _MEBIBYTE,
    Format.CLI: 16 * _MEBIBYTE,
    Format.TERRAFORM: terraform.BYTES_MAX,
    Format.ANSIBLE: ansible.BYTES_MAX,
    Format.CSV: csv_table.BYTES_MAX,
    Format.XML: xml.LIMITS.size_bytes,
}
"""More than this is refused before it is parsed."""

_EVERY: Final = frozenset(setting.field for setting in SETTINGS)
HELD_FIELDS: Final[Mapping[Format, frozenset[str]]] = {
    Format.SEMP_V2: _EVERY,
    Format.TERRAFORM: _EVERY,
    Format.ANSIBLE: _EVERY,
    Format.CSV: _EVERY,
    Format.CLI: frozenset(setting.field for setting in SETTINGS if setting.cli),
    Format.LISTING: listing.shown_fields(),
    Format.SEMP_V1: frozenset(setting.field for setting in SETTINGS if setting.semp_v1),
    Format.XML: frozenset(setting.field for setting in SETTINGS if setting.scenario),
}
"""The fields that a format has a place for."""

HOLDS_MESSAGE_VPN: Final = frozenset(Format) - {Format.XML}
"""Formats that name the message VPN; in the others it is `default`."""

STATES_EVERYTHING: Final = frozenset({Format.SEMP_V1, Format.LISTING})
"""Formats in which a broker states every setting that it has: what is left out is not known, and not the default."""

_TAG = re.compile(r"<(?:[A-Za-z_][\w.-]{0,100}:)?([A-Za-z_][\w.-]{0,100})")
_HCL = re.compile(r'^[ \t]*resource[ \t]+"?solacebroker_', re.MULTILINE)
_TERRAFORM_JSON = re.compile(r'"(?:solacebroker_(?:msg_vpn_client_profile|dmr_cluster_link)|terraform_version)"')
_REPLY = re.compile(r"<rpc-reply(?=[\s>])")
"""Behind the prompt, the command or the headers that a terminal wrote before it."""
_TASK = re.compile(rf"^[ \t-]*(?:solace\.pubsub_plus\.)?(?:{'|'.join(ansible.MODULES)})[ \t]*:", re.MULTILINE)


def format_of(text: str, name: str) -> Format:
    """Return the format of a file by its content.

    Args:
        text: the file, without a byte order mark.
        name: the file's name in problems.

    Raises:
        InvalidFile: it resembles no format.
    """
    start = text[:1000].lstrip()
    if start.startswith("<"):
        tag = _root_tag(text)
        if tag in {"rpc-reply", "rpc"}:
            return Format.SEMP_V1
        if tag in xml.ROOTS:
            return Format.XML
        if tag == "!DOCTYPE":
            raise refusal(name, "a document type declaration is refused: it could define entities", found=f"<{tag}",
                          suggestion="Remove it.")  # fmt: skip
        raise _unknown(name, f"<{tag}>" if tag else start[:60])
    if start.startswith(("{", "[")) and not _TASK.search(text):
        return Format.TERRAFORM if start.startswith("{") and _TERRAFORM_JSON.search(text) else Format.SEMP_V2
    if _REPLY.search(text):
        return Format.SEMP_V1
    if semp_v2.in_a_capture(text):
        return Format.SEMP_V2
    if csv_table.looks_like_csv(text):
        return Format.CSV
    if listing.BEGIN.search(text):
        return Format.LISTING
    if _HCL.search(text):
        return Format.TERRAFORM
    if _TASK.search(text):
        return Format.ANSIBLE
    if cli_text.LINE.search(text):
        return Format.CLI
    raise _unknown(name, start[:60])


def _root_tag(text: str) -> str:
    """Return the name of the first element after declarations and comments, in time linear in their length."""
    at = 0
    while True:
        while text[at : at + 1].isspace():
            at += 1
        ends = {"<?": "?>", "<!--": "-->"}
        begin = next((each for each in ends if text.startswith(each, at)), "")
        if not begin:
            found = _TAG.match(text, at)
            return found[1] if found else "!DOCTYPE" if text.startswith("<!DOCTYPE", at) else ""
        end = text.find(ends[begin], at + len(begin))
        if end < 0:
            return ""
        at = end + len(ends[begin])


def _unknown(name: str, found: str) -> Exception:
    allowed = "; ".join(f"{each} ({DESCRIPTIONS[each]})" for each in Format)
    return refusal(name, "the format of this file is not recognized", found=" ".join(found.split()),
                   allowed=allowed, suggestion="Name its format with --from.")  # fmt: skip
