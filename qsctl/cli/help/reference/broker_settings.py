"""The page of client profile settings: every setting of a broker under each of its names, from their table."""

from __future__ import annotations

from qsctl.cli.help.reference.markdown import code, table, text_in_markdown
from qsctl.profiles.ranges import SETTINGS
from qsctl.profiles.setting import ProfileSetting

_HOW = """\
The first table has what the simulator knows of a profile, by the words of the CLI, the names of SEMP v2, the path
in a scenario and the section that gives the range. The second has all settings with range and default. Those
without a path are read, checked, compared and written, and mean nothing in a simulation."""


def page() -> str:
    """Return the page's two tables."""
    simulated = table(
        ("broker, below `client-profile`", "SEMP v2", "scenario", "section"), map(_names, filter(_simulated, SETTINGS))
    )
    every = table(("setting", "broker", "SEMP v2", "values", "default", "what it is"), map(_values, SETTINGS))
    return f"{_HOW}\n\n## In the simulator\n\n{simulated}\n\n## All settings\n\n{every}"


def _simulated(setting: ProfileSetting) -> bool:
    return bool(setting.scenario)


def _names(setting: ProfileSetting) -> tuple[str, ...]:
    return code(" ".join(setting.cli)), code(setting.semp_v2), code(f"profile/{setting.scenario}"), setting.source


def _values(setting: ProfileSetting) -> tuple[str, ...]:
    if setting.choices:
        values = ", ".join(code(str(each)) for each in setting.choices)
    elif setting.maximum:
        values = f"{setting.minimum} to {setting.maximum} {setting.unit}".rstrip()
    else:
        values = setting.unit or str(setting.kind)
    return (
        code(setting.field), code(" ".join(setting.cli)), code(setting.semp_v2), text_in_markdown(values),
        text_in_markdown(str(setting.default)), text_in_markdown(setting.summary),
    )  # fmt: skip
