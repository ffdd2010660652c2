"""Results of the commands on client profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

from qsctl.cli.output.declared import DeclaredResult, DeclaredRows, Heading, table_of
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, counted, fields_of, plain
from qsctl.errors import ExitStatus
from qsctl.profiles.formats.kinds import Format

if TYPE_CHECKING:
    from qsctl.profiles.client_profile import ClientProfile
    from qsctl.profiles.difference import DifferentSetting
    from qsctl.profiles.lint import LintFinding
    from qsctl.profiles.setting import ProfileSetting, Value
    from qsctl.profiles.sizing import ClientSizing, SizingLine


def shown_value(value: Value) -> Plain:
    """Return a value for display: a threshold as its two levels, None as an empty cell."""
    from qsctl.profiles.client_profile import Threshold

    if isinstance(value, Threshold):
        unit = " %" if value.is_percent else ""
        return f"{value.set_at}{unit} / {value.clear_at}{unit}"
    return value


def _cell(value: Value) -> Plain:
    return "platform's" if value is None else shown_value(value)


@dataclass(frozen=True)
class ShownProfile(Result):
    """One profile, with a row for each setting."""

    profile: ClientProfile
    stated: frozenset[str]
    file: str
    format: str
    changed_only: bool
    unknown: Mapping[str, str] = field(default_factory=dict)
    """The texts of settings whose value in the file is not known, by field."""

    field_help: ClassVar[Mapping[str, str]] = {
        "setting": "the setting, as `set` and `reset` name it",
        "value": "its value; null: the broker's platform decides",
        "unit": "the value's unit",
        "default": "the vendor's default; null: the broker's platform decides",
        "stated": "whether the file states it",
        "unknown": "what the file has in place of a value that is elsewhere or cannot be read; else empty",
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
                "unknown": self.unknown.get(setting.field, ""),
                **fields_of(setting, "allowed", "semp_v2", "scenario", "deprecated", "source"),
            }
            for setting in SETTINGS
            if not self.changed_only or self._is_shown(setting)
        ]

    def _is_shown(self, setting: ProfileSetting) -> bool:
        from qsctl.profiles.ranges import value_of

        return setting.field in self.unknown or value_of(self.profile, setting) != setting.default

    @property
    def exit_status(self) -> ExitStatus:
        """Return DONE, or PARTLY_DONE if a value of the file is not known."""
        return ExitStatus.PARTLY_DONE if self.unknown.keys() - {"name", "message_vpn"} else ExitStatus.DONE

    def xml(self) -> str:
        """Return the `<profiles>` file of a scenario."""
        from qsctl.profiles.formats.file import every_field, write_profiles

        return write_profiles([every_field(self.profile)], Format.XML)

    def blocks(self) -> Sequence[Block]:
        """Return the name, then the settings, each with its default if it differs."""
        from qsctl.profiles.ranges import SETTINGS, value_of

        rows: list[Row] = []
        for setting in SETTINGS:
            value = value_of(self.profile, setting)
            if self.changed_only and not self._is_shown(setting):
                continue
            is_unknown = setting.field in self.unknown
            rows.append(
                {
                    "setting": setting.field,
                    "value": f"? {self.unknown[setting.field]}" if is_unknown else _cell(value),
                    "unit": "" if is_unknown else setting.unit,
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
class ProfileText(DeclaredResult):
    """Profiles in the text of a format."""

    text: Annotated[str, "what was written"]
    file: Annotated[str, "the file written; empty for standard output"]
    format: Annotated[str, "its format"]
    profiles: Annotated[tuple[str, ...], "the names of the profiles in it"]
    lost: Annotated[tuple[str, ...], "settings whose values the format cannot hold, and that are not at their default"]
    unknown: Annotated[tuple[str, ...], "settings that are left out, for the file does not have their values"] = ()

    @property
    def exit_status(self) -> ExitStatus:
        """Return DONE, or PARTLY_DONE if a value of the file is not known."""
        return ExitStatus.PARTLY_DONE if set(self.unknown) - {"name", "message_vpn"} else ExitStatus.DONE

    def xml(self) -> str:
        """Return the text, if its format is XML."""
        if self.format in {"xml", "semp-v1"}:
            return self.text
        return super().xml()

    def blocks(self) -> Sequence[Block]:
        """Return the text, or the path that it was written to."""
        if not self.file:
            return [TextBlock(self.text.rstrip("\n"))]
        names = ", ".join(self.profiles[:10]) + (" …" if len(self.profiles) > 10 else "")
        return [TextBlock(f"Wrote {self.file} ({self.format}): {names}", "good")]


@dataclass(frozen=True)
class ProfileSettingRow:
    """A row: a setting in which two profiles differ; its values are those of a `DifferentSetting`."""

    field: Annotated[str, "the setting", Heading("Setting")]
    first: Annotated[
        object, "its value in the first profile; null: the broker's platform decides",
        Heading("First", "right", shown=shown_value),
    ]  # fmt: skip
    second: Annotated[object, "its value in the second one", Heading("Second", "right", shown=shown_value)]
    default: Annotated[object, "the vendor's default", Heading("Default", "right", shown=shown_value)]


@dataclass(frozen=True)
class ProfileDifference(DeclaredRows, rows=ProfileSettingRow, items="differences"):
    """The settings in which two profiles differ."""

    first: str
    second: str
    differences: tuple[DifferentSetting, ...]
    not_compared: tuple[str, ...] = ()
    """Fields that one of the files lacks or whose value is not known, so that they may differ."""
    unknown: tuple[str, ...] = ()
    """The fields of `not_compared` that a file has, with a value that is not known."""

    document_help: ClassVar[Mapping[str, str]] = {
        "not_compared": "-o json and yaml: settings that may differ, and that one of the files does not hold or know",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return DONE for equal profiles, NO for different ones, PARTLY_DONE if only unknown values may differ."""
        if self.differences:
            return ExitStatus.NO
        return ExitStatus.PARTLY_DONE if self.unknown else ExitStatus.DONE

    def document(self) -> Plain:
        """Return whether the profiles are equal, and the differences."""
        return {
            "same": not self.differences,
            **fields_of(self, "first", "second", "differences"),
            "not_compared": list(self.not_compared),
        }

    def blocks(self) -> Sequence[Block]:
        """Return a table of the differences, or a sentence."""
        names = ", ".join(self.not_compared)
        rest = (
            [TextBlock(f"Not compared, as one of the files does not hold or know it: {names}.", "faint")]
            if names
            else []
        )
        if not self.differences:
            words = "The profiles are the same in all that is compared." if rest else "The profiles are the same."
            return [TextBlock(words, "good"), *rest]
        headings = {"first": self.first, "second": self.second}
        return [table_of(ProfileSettingRow, self.differences, headings=headings), *rest]


@dataclass(frozen=True)
class LintedProfile(Result):
    """The findings of one profile."""

    profile: str
    findings: tuple[LintFinding, ...]
    unread: tuple[str, ...] = ()
    """The parts of the file that could not be read."""

    field_help: ClassVar[Mapping[str, str]] = {
        "rule": "the rule's name",
        "weight": "warning or note; a warning makes the exit status 1",
        "setting": "the setting it is about",
        "message": "what is wrong",
        "numbers": "the numbers that show it",
        "lever": "what to change",
        "source": "the section that states the rule",
        "unread": "-o json and yaml: values of the file that cannot be read; one makes the exit status 1",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if there is a warning or an unreadable value, else DONE."""
        is_warned = self.unread or any(each.weight == "warning" for each in self.findings)
        return ExitStatus.NO if is_warned else ExitStatus.DONE

    def rows(self) -> Sequence[Row]:
        """Return a row for each finding."""
        return [fields_of(each) for each in self.findings]

    def document(self) -> Plain:
        """Return the profile with its findings."""
        return {**fields_of(self, "profile", "findings"), "unread": list(self.unread)}

    def blocks(self) -> Sequence[Block]:
        """Return each finding in a compiler's format, then a summary line."""
        blocks: list[Block] = []
        for each in self.findings:
            lines = [f"{each.weight}: {each.setting}: {each.message} [{each.rule}]", f"  {each.numbers}"]
            lines += [f"  {each.lever}", f"  Source: {each.source}"]
            blocks.append(TextBlock("\n".join(lines), "bad" if each.weight == "warning" else "plain"))
        warnings = sum(each.weight == "warning" for each in self.findings)
        notes = len(self.findings) - warnings
        count = f"{self.profile}: {counted(warnings, 'warning')}, {counted(notes, 'note')}"
        if self.unread:
            count += f", {counted(len(self.unread), 'value')} that cannot be read"
        return [*blocks, TextBlock(count, "bad" if warnings or self.unread else "good")]


def _figure(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.6g}"


@dataclass(frozen=True)
class SizedQuantity:
    """A row: a line of the calculation; its values are those of a `SizingLine`."""

    quantity: Annotated[str, "what is computed", Heading("Quantity")]
    formula: Annotated[str, "how", Heading("Formula")]
    numbers: Annotated[str, "the formula with its numbers", Heading("With its numbers")]
    value: Annotated[float, "the result", Heading("Value", shown=_figure)]
    unit: Annotated[str, "its unit", Heading("Unit")]


@dataclass(frozen=True)
class SizedProfile(DeclaredRows, rows=SizedQuantity):
    """The sizing of a profile for a load, as a calculation."""

    profile: str
    sizing: ClientSizing
    levers: tuple[str, ...]
    check: str
    why_they_differ: tuple[str, ...]

    document_help: ClassVar[Mapping[str, str]] = {
        "limit": "-o json and yaml: what limits the guaranteed delivery of one client",
        "is_enough": "-o json and yaml: whether G-1 admits what the flows want",
        "levers": "-o json and yaml: what would make it enough",
        "check": "-o json and yaml: the command that checks it by simulation",
        "why_they_differ": "-o json and yaml: why simulation finds other settings enough",
    }

    def items(self) -> Sequence[SizingLine]:
        """Return the lines of the calculation."""
        return self.sizing.lines

    def document(self) -> Plain:
        """Return the lines, the limiting setting, and the remedies."""
        return {
            "profile": self.profile,
            **fields_of(self.sizing, "lines", "limit", "is_enough"),
            **fields_of(self.sizing, "burst_needed", "depth_needed_work_units", "memory_bytes"),
            **fields_of(self, "levers", "check", "why_they_differ"),
        }

    def blocks(self) -> Sequence[Block]:
        """Return the verdict, the calculation, and the command that checks it."""
        verdict = f"{self.profile}: {self.sizing.limit} limits guaranteed delivery."
        if self.sizing.is_enough:
            verdict += " G-1 admits all that the flows want."
        blocks: list[Block] = [TextBlock(verdict, "good" if self.sizing.is_enough else "bad")]
        if self.levers:
            blocks.append(TextBlock("G-1 admits less than the flows want. Lever: " + ", ".join(self.levers) + "."))
        order = ("quantity", "value", "unit", "formula", "numbers")
        blocks.append(table_of(SizedQuantity, self.sizing.lines, order=order))
        blocks.append(TextBlock(f"\nCheck it by simulation: {self.check}"))
        blocks += [TextBlock(f"They differ: {each}.", "faint") for each in self.why_they_differ]
        return blocks
