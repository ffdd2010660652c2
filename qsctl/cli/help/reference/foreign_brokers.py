"""The page of a broker's preset: its settings with default and source, its modelled and its unmodelled behaviour."""

from __future__ import annotations

from qsctl.cli.help.reference.markdown import code, table, text_in_markdown
from qsctl.sim.brokers.draft import load_of, set_path
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.presets import preset_of
from qsctl.sim.brokers.settings import BrokerSetting, FixedValue


def page(broker: str) -> str:
    """Return the page of the preset of this name."""
    kind = BrokerKind(broker)
    preset = preset_of(kind)
    settings = table(
        ("setting", "default", "what it is", "in a scenario"), [_setting(each) for each in preset.settings]
    )  # fmt: skip
    ways = table(("way", "in a scenario"), [_way(each) for each in preset.ways])
    load = ", ".join(code(each.word) for each in load_of(kind))
    modelled = "\n".join(f"- {text_in_markdown(each)}" for each in preset.modelled)
    missing = "\n".join(f"- {text_in_markdown(each)}" for each in preset.not_modelled)
    return (
        f"`qsctl what-if --broker {broker}` and `qsctl init --broker {broker}` take these settings by `--set` and "
        f"`--vary`, and besides them {load}. Capitals, `-`, `_`, `.` and a leading `x-` do not matter."
        f"\n\n{settings}\n\n"
        f"## Its ways\n\n{ways}\n\n## What is modelled\n\n{modelled}\n\n## What is not\n\n{missing}\n"
    )


def _setting(setting: BrokerSetting) -> tuple[str, ...]:
    words = ", ".join(code(each) for each in setting.aliases)
    return (
        code(setting.word) + (f" ({words})" if words else ""),
        code(setting.default) if setting.default else "none",
        f"{text_in_markdown(setting.meaning)} ([source]({setting.source}))",
        code(set_path(setting.path)) + ("" if setting.is_direct else ", made of several"),
    )


def _way(way: FixedValue) -> tuple[str, ...]:
    return (f"{text_in_markdown(way.why)} ([source]({way.source}))", code(f"{set_path(way.path)}={way.text}"))
