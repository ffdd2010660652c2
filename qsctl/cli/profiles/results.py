"""Results of the commands on client profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, counted, fields_of, plain
from qsctl.errors import ExitStatus
from qsctl.profiles.formats.kinds import Format

if TYPE_CHECKING:
    from qsctl.profiles.client_profile import ClientProfile
    from qsctl.profiles.difference import DifferentSetting
    from qsctl.profiles.lint import LintFinding
    from qsctl.profiles.setting import Value
    from qsctl.profiles.sizing import ClientSizing


def shown_value(value: Value) -> Plain:
    """Return a value as a person reads it: a threshold as its two levels, None as an empty cell."""
    from qsctl.profiles.client_profile import Threshold

    if isinstance(value, Threshold):
        unit = " %" if value.is_percent else ""
        return f"{value.set_at}{unit} / {value.clear_at}{unit}"
    return value


def _cell(value: Value) -> Plain:
    return "platform's" if value is None else shown_value(value)


@dataclass(frozen=True)
class ShownProfile(Result):
    """One profile, setting by setting."""

    profile: ClientProfile
    stated: frozenset[str]
    file: str
    format: str
    changed_only: bool

    field_help: ClassVar[Mapping[str, str]] = {
        "setting": "the setting, as `set` and `reset` name it",
        "value": "its value; null: the broker's platform decides",
        "unit": "the value's unit",
        "default": "the vendor's default; null: the broker's platform decides",
        "stated": "whether the file states it",
        "allowed": "the values that a broker accepts",
        "semp_v2": "its name in SEMP v2",
        "scenario": "where a scenario's <profile> has it; empty where the simulator does not know it",
        "deprecated": "why it has no effect any more; empty where it has",
        "source": "the section that states range and default",
    }

    def document(self) -> Plain:
        """Return the profile with its settings."""
        return {
            **fields_of(self.profile, "name", "message_vpn"),
            **fields_of(self, "file", "format"),
            "settings": list(self.rows()),
        }

    def rows(self) -> Sequence[Row]:
        """Return a row for each setting."""
        from qsctl.profiles.ranges import SETTINGS, value_of

        return [
            {
                "setting": setting.field,
                "value": plain(value_of(self.profile, setting)),
                "unit": setting.unit,
                "default": plain(setting.default),
                "stated": setting.field in self.stated,
                **fields_of(setting, "allowed", "semp_v2", "scenario", "deprecated", "source"),
            }
            for setting in SETTINGS
            if not self.changed_only or value_of(self.profile, setting) != setting.default
        ]

    def xml(self) -> str:
        """Return the `<profiles>` file of a scenario."""
        from qsctl.profiles.formats.file import every_field, write_profiles

        return write_profiles([every_field(self.profile)], Format.XML)

    def blocks(self) -> Sequence[Block]:
        """Return the name, then the settings with what the default is where it differs."""
        from qsctl.profiles.ranges import SETTINGS, value_of

        rows: list[Row] = []
        for setting in SETTINGS:
            value = value_of(self.profile, setting)
            if self.changed_only and value == setting.default:
                continue
            rows.append(
                {
                    "setting": setting.field,
                    "value": _cell(value),
                    "unit": setting.unit,
                    "default": None if value == setting.default else _cell(setting.default),
                    "semp_v2": setting.semp_v2,
                }
            )
        columns = [
            Column("setting", "Setting"), Column("value", "Value", "right"), Column("unit", "Unit"),
            Column("default", "Default, where it differs", "right"), Column("semp_v2", "SEMP v2"),
        ]  # fmt: skip
        head = f"{self.profile.name} of message VPN {self.profile.message_vpn}, from {self.file} ({self.format})"
        return [TextBlock(head), TableBlock(columns, rows, empty="Every setting has its default.")]


@dataclass(frozen=True)
class ProfileText(Result):
    """Profiles as a format writes them."""

    text: str
    file: str
    format: str
    profiles: tuple[str, ...]
    lost: tuple[str, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "text": "what was written",
        "file": "the file written; empty for standard output",
        "format": "its format",
        "profiles": "the names of the profiles in it",
        "lost": "settings whose values the format cannot hold, and that are not at their default",
    }

    def xml(self) -> str:
        """Return the text itself, where its format is XML."""
        if self.format in {"xml", "semp-v1"}:
            return self.text
        return super().xml()

    def blocks(self) -> Sequence[Block]:
        """Return the text, or where it is."""
        if not self.file:
            return [TextBlock(self.text.rstrip("\n"))]
        names = ", ".join(self.profiles[:10]) + (" …" if len(self.profiles) > 10 else "")
        return [TextBlock(f"Wrote {self.file} ({self.format}): {names}", "good")]


@dataclass(frozen=True)
class ProfileDifference(Result):
    """The settings in which two profiles differ."""

    first: str
    second: str
    differences: tuple[DifferentSetting, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "field": "the setting",
        "first": "its value in the first profile; null: the broker's platform decides",
        "second": "its value in the second one",
        "default": "the vendor's default",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """0 where they are the same, 1 where they differ."""
        return ExitStatus.NO if self.differences else ExitStatus.DONE

    def rows(self) -> Sequence[Row]:
        """Return a row for each setting."""
        return [fields_of(each) for each in self.differences]

    def document(self) -> Plain:
        """Whether they are the same, and what differs."""
        return {"same": not self.differences, **fields_of(self, "first", "second", "differences")}

    def blocks(self) -> Sequence[Block]:
        """Return a table, or a line."""
        if not self.differences:
            return [TextBlock("The profiles are the same.", "good")]
        rows: list[Row] = [
            {name: shown_value(getattr(each, name)) for name in ("field", "first", "second", "default")}
            for each in self.differences
        ]
        columns = [
            Column("field", "Setting"), Column("first", self.first, "right"), Column("second", self.second, "right"),
            Column("default", "Default", "right"),
        ]  # fmt: skip
        return [TableBlock(columns, rows)]


@dataclass(frozen=True)
class LintedProfile(Result):
    """The findings of one profile."""

    profile: str
    findings: tuple[LintFinding, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "rule": "the rule's name",
        "weight": "warning or note; a warning makes the exit status 1",
        "setting": "the setting it is about",
        "message": "what is wrong",
        "numbers": "the numbers that show it",
        "lever": "what to change",
        "source": "the section that states the rule",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """1 where there is a warning."""
        return ExitStatus.NO if any(each.weight == "warning" for each in self.findings) else ExitStatus.DONE

    def rows(self) -> Sequence[Row]:
        """Return a row for each finding."""
        return [fields_of(each) for each in self.findings]

    def document(self) -> Plain:
        """Return the profile with its findings."""
        return fields_of(self, "profile", "findings")

    def blocks(self) -> Sequence[Block]:
        """Each finding as a compiler prints it, then a line that sums up."""
        blocks: list[Block] = []
        for each in self.findings:
            lines = [f"{each.weight}: {each.setting}: {each.message} [{each.rule}]", f"  {each.numbers}"]
            lines += [f"  {each.lever}", f"  Source: {each.source}"]
            blocks.append(TextBlock("\n".join(lines), "bad" if each.weight == "warning" else "plain"))
        warnings = sum(each.weight == "warning" for each in self.findings)
        notes = len(self.findings) - warnings
        count = f"{self.profile}: {counted(warnings, 'warning')}, {counted(notes, 'note')}"
        return [*blocks, TextBlock(count, "bad" if warnings else "good")]


@dataclass(frozen=True)
class SizedProfile(Result):
    """The arithmetic of a profile under a load."""

    profile: str
    sizing: ClientSizing
    levers: tuple[str, ...]
    check: str
    why_they_differ: tuple[str, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "quantity": "what is computed",
        "formula": "how",
        "numbers": "the formula with its numbers",
        "value": "the result",
        "unit": "its unit",
        "limit": "-o json and yaml: what limits the guaranteed delivery of one client",
        "is_enough": "-o json and yaml: whether G-1 admits what the flows want",
        "levers": "-o json and yaml: what would make it enough",
        "check": "-o json and yaml: the command that checks it by simulation",
        "why_they_differ": "-o json and yaml: why simulation finds other settings enough",
    }

    def rows(self) -> Sequence[Row]:
        """Return a row for each line."""
        return [fields_of(each) for each in self.sizing.lines]

    def document(self) -> Plain:
        """Return the lines, what limits and what to do."""
        return {
            "profile": self.profile,
            **fields_of(self.sizing, "lines", "limit", "is_enough"),
            **fields_of(self.sizing, "burst_needed", "depth_needed_work_units", "memory_bytes"),
            **fields_of(self, "levers", "check", "why_they_differ"),
        }

    def blocks(self) -> Sequence[Block]:
        """Return the verdict, the arithmetic, and how to check it."""
        columns = [
            Column("quantity", "Quantity"), Column("value", "Value", "right"), Column("unit", "Unit"),
            Column("formula", "Formula"), Column("numbers", "With its numbers"),
        ]  # fmt: skip
        rows: list[Row] = [
            {
                **fields_of(line),
                "value": f"{int(line.value):,}" if line.value == int(line.value) else f"{line.value:,.6g}",
            }
            for line in self.sizing.lines
        ]
        verdict = f"{self.profile}: {self.sizing.limit} limits guaranteed delivery."
        if self.sizing.is_enough:
            verdict += " G-1 admits all that the flows want."
        blocks: list[Block] = [TextBlock(verdict, "good" if self.sizing.is_enough else "bad")]
        if self.levers:
            blocks.append(TextBlock("G-1 admits less than the flows want. Lever: " + ", ".join(self.levers) + "."))
        blocks.append(TableBlock(columns, rows))
        blocks.append(TextBlock(f"\nCheck it by simulation: {self.check}"))
        blocks += [TextBlock(f"They differ: {each}.", "faint") for each in self.why_they_differ]
        return blocks
