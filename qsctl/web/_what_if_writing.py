"""Commands and files that reproduce the results shown by the view "What if".

Each form states with which command its text is used; a form that cannot express the settings states why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from qsctl.declared.problems import InvalidFile
from qsctl.errors import InvalidInput, QsctlError
from qsctl.sim.scenario.overrides.set_values import apply_overrides, settings_of
from qsctl.sim.scenario.scenario import Model, Scenario
from qsctl.web._what_if_answerer import with_seed
from qsctl.web._what_if_sources import Source, SourceKind

_WHOLE: Final = re.compile(r"([0-9]+)([a-zA-Z]*)")
_STEPS: Final = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Written:
    """A form of the results: title, text, file name (empty for a command), and the command that uses it.

    `problem` is the reason why the form cannot be written, with an empty text.
    """

    name: str
    title: str
    text: str
    file: str = ""
    use: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Shown:
    """The side that is to be reproduced: its source, settings, seed and number of repetitions.

    `varied` is the path of the setting that was moved last; `queue`, `lost` and `wait_p99_ns` describe the queue with
    the highest loss, for the target of `size`.
    """

    source: Source
    settings: Mapping[str, str]
    seed: int | None
    repetitions: int
    varied: str = ""
    queue: str = ""
    lost: float = 0.0
    wait_p99_ns: float = 0.0


def written(shown: Shown) -> list[Written]:
    """Return every form that reproduces a side.

    Raises:
        QsctlError: the settings are invalid.
    """
    base = shown.source.scenario()
    scenario = with_seed(apply_overrides(base, shown.settings), shown.seed)
    return [_simulate(shown), _size(shown, scenario), _xml(shown, scenario), *_profiles(shown, base, scenario)]


def _simulate(shown: Shown) -> Written:
    options = [("--seed", shown.seed), ("--replications", shown.repetitions), ("--confidence", "0.95")]
    if shown.source.kind is SourceKind.RECORDING:
        options.pop()
    use = "Run it in a shell."
    if shown.source.kind is SourceKind.PRESET:
        use = f"Save the scenario below as {shown.source.argument} first; it has these settings."
        return Written("simulate", "Command", shown.source.command("simulate", options, {}), use=use)
    return Written("simulate", "Command", shown.source.command("simulate", options, shown.settings), use=use)


def _size(shown: Shown, scenario: Scenario) -> Written:
    title = "Command that finds the smallest value"
    values = {path: kind.write(value) for path, kind, value, _ in settings_of(scenario)}
    text = values.get(shown.varied, "")
    whole = _WHOLE.fullmatch(text)
    if not whole or not shown.queue:
        why = "Move a setting whose value is a whole number: size searches over these."
        return Written("size", title, "", problem=why)
    number, unit = int(whole[1]), whole[2]
    tried = sorted({max(1, number // 2), max(1, number), max(1, number) * 2})
    if shown.lost:
        target = f"loss_ratio({shown.queue})<{_next(100 * shown.lost):g}%"
    else:
        target = f"time_in_queue_p99({shown.queue})<{_next(max(shown.wait_p99_ns, 1.0) / 1e6):g}ms"
    others = {path: value for path, value in shown.settings.items() if path != shown.varied}
    if shown.source.kind is SourceKind.PRESET:
        others = {}
    options = [
        ("--target", target), ("--vary", f"{shown.varied}={','.join(f'{each}{unit}' for each in tried)}"),
        ("--seed", shown.seed),
    ]  # fmt: skip
    command = shown.source.command("size", options, others)
    return Written("size", title, command, use="Change the target and the values to what you need.")


def _next(value: float) -> float:
    """Return the next of 1, 2, 5, 10, … above a number."""
    power = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 0.001
    while True:
        for step in _STEPS:
            if step * power > value:
                return float(f"{step * power:g}")
        power *= 10


def _xml(shown: Shown, scenario: Scenario) -> Written:
    from dataclasses import replace

    from qsctl.sim.scenario.forms.text import scenario_text

    title, name = "Scenario", f"{scenario.name}.xml"
    if shown.source.kind is SourceKind.PRESET:
        name = str(shown.source.argument)
    if scenario.service is not None:
        return Written(
            "xml", title, "", name,
            problem="This scenario has a service in a file of its own: use the command, whose run folder has both.",
        )  # fmt: skip
    text = scenario_text(replace(scenario, replications=shown.repetitions))
    return Written("xml", title, text, name, f"qsctl simulate {name}")


def _profiles(shown: Shown, base: Scenario, scenario: Scenario) -> Iterator[Written]:
    """Yield each client profile as SEMP v2 JSON, and the plan of its changes on a broker."""
    if scenario.model is not Model.SOLACE:
        return
    values = {path: kind.write(value) for path, kind, value, _ in settings_of(scenario)}
    before = {path: kind.write(value) for path, kind, value, _ in settings_of(base)}
    for profile in scenario.profiles:
        title = f"Client profile {profile.name}"
        file = f"{profile.name}.json"
        try:
            text, plan = _profile_texts(profile.name, values, before)
        except (InvalidFile, InvalidInput) as error:
            yield Written(f"profile-{profile.name}", title, "", file, problem=error.message)
            continue
        others = {path: text for path, text in shown.settings.items() if not path.startswith("profile[")}
        options = [
            ("--client-profile", f"{profile.name}={file}"), ("--seed", shown.seed),
            ("--replications", shown.repetitions),
        ]  # fmt: skip
        command = shown.source.command("simulate", options, others)
        yield Written(f"profile-{profile.name}", title, text, file, command)
        yield Written(
            f"plan-{profile.name}", f"Plan: what changes of {profile.name}", plan, "",
            f"qsctl client-profile plan {file} --broker URL",
        )  # fmt: skip


def _profile_texts(name: str, values: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, str]:
    from qsctl.profiles.formats.file import every_field, write_profiles
    from qsctl.profiles.formats.kinds import Format
    from qsctl.profiles.plan import profile_changes

    now, then = _read_profile(name, values), _read_profile(name, before)
    changes = profile_changes([now], [then])
    lines = [
        f"{each.message_vpn}/{each.name}: {attribute} = {value}"
        for each in changes
        for attribute, value in each.attributes.items()
    ]
    plan = "\n".join(lines) or "Nothing changes."
    return write_profiles([every_field(now.profile)], Format.SEMP_V2), plan + "\n"


def _read_profile(name: str, values: Mapping[str, str]):  # type: ignore[no-untyped-def]
    """Return a client profile with the values that a scenario has for it."""
    from html import escape

    from qsctl.profiles.formats.file import choose, parse_profiles
    from qsctl.profiles.formats.kinds import Format
    from qsctl.profiles.ranges import SETTINGS

    lines = ["<profiles>", f'<profile name="{escape(name)}">']
    for setting in SETTINGS:
        text = values.get(f"profile[{name}]/{setting.scenario}") if setting.scenario else None
        if text is not None:
            element, _, attribute = setting.scenario.rpartition("/")
            tag, _, key = element.rstrip("]").partition("[")
            named = f' name="{key}"' if key else ""
            lines.append(f'<{tag}{named} {attribute}="{escape(text)}"/>')
    data = "\n".join([*lines, "</profile>", "</profiles>"]).encode()
    file = parse_profiles(data, f"profile {name}", Format.XML)
    chosen = choose(file, name, how="")
    try:
        file.require_every_value([chosen])
    except QsctlError as error:
        raise InvalidInput(error.message, remedy=error.remedy) from None
    return chosen
