"""The load of a made-up site, by the files that tell it."""

from __future__ import annotations

from pathlib import Path

from qsctl.netconfig.archives import read_archives
from qsctl.netconfig.load import SiteLoad, add_archives, add_statistics
from qsctl.netconfig.procedures import ProcedureTable, parse_procedures
from qsctl.netconfig.statistics import parse_statistics
from tests.netconfig.made_site import MadeSite, durations_text, statistics_texts, write_archive


def load_of(site: MadeSite, folder: Path, messages: int = 1_000) -> SiteLoad:
    """Return what statistics dumps and archives tell of a site."""
    write_archive(site, folder, messages)
    load = SiteLoad()
    add_archives(load, read_archives(folder))
    add_statistics(load, [each for text in statistics_texts(site) for each in parse_statistics(text.encode(), "stats")])
    return load


def procedures_of(site: MadeSite) -> ProcedureTable:
    """Return the table of its procedures."""
    return parse_procedures(durations_text(site).encode(), "durations.csv")
