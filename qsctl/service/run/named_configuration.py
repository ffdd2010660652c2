"""The comparison of the configuration that a user names with the stored one.

Decides: whether the two are the same, and how a difference is described. A stored configuration stays in force
[QS 2.14.1], so a named one that differs has no effect, which must be reported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from qsctl.config.filesystem import FilesystemSettings
from qsctl.config.rules.replication import refuse_replication
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.settings import ServiceSettings, queues_by_name
from qsctl.errors import Refused
from qsctl.service.directory.state_directory import Instance

Configuration: TypeAlias = ServiceConfiguration | ServiceSettings

DIFFERENCES_SHOWN_MAX: Final = 5
"""More than these are counted, not listed."""


@dataclass(frozen=True, slots=True)
class NamedConfiguration:
    """A configuration that is read on demand, because reading it costs more than most commands.

    Args:
        read: returns the configuration.
        label: its name in messages: its file, with `#NAME` where a service was selected.
        sources_digest: a digest of the octets that it is read from; empty: unknown without reading it.
        is_required: whether a difference is an error, because the user named this one; else it is only reported.
    """

    read: Callable[[], Configuration]
    label: str
    sources_digest: str = ""
    is_required: bool = True

    def is_that_of(
        self, instance: Instance, state_directory: Path, began_with: Callable[[], Configuration | None]
    ) -> bool:
        """Return whether an instance began with this configuration.

        The digests are compared where this version made them. Earlier versions computed them from other sources and
        fewer fields: then the configuration returned by `began_with` is compared by its meaning; None: unknown.
        """
        if self.sources_digest and self.sources_digest == instance.sources_digest:
            return True
        named = self.read()
        if not instance.settings_digest or settings_digest(named) == instance.settings_digest:
            return bool(instance.settings_digest)  # without one it began with none, or another took its place
        began = began_with()
        if isinstance(began, ServiceConfiguration):
            return settings_digest(named) == settings_digest(began)
        is_same = began == _settings(named)
        return is_same and not filesystem_differences(named, instance.filesystem, state_directory)

    def drift(self, instance: Instance, hosted: ServiceSettings, state_directory: Path) -> Refused | None:
        """Return a notice if the service of a state directory has another configuration, or None.

        Raises:
            Refused: the user named a configuration that no service of this version could have.
        """
        named = self.read()
        if self.is_required:
            refuse_replication(named)
        found = [*differences(named, hosted), *filesystem_differences(named, instance.filesystem, state_directory)]
        if not found:
            return None
        began = instance.configured_by
        other = f", which began with {began}," if began and began != self.label else ""
        return Refused(
            f"{self.label} is not what the service in {state_directory}{other} is configured with: "
            f"{in_one_line(found)}",
            remedy=f"To begin again from {self.label}: qsctl shutdown --fresh --state-dir {state_directory}, which "
            "removes the samples of volatile queues. To go on with what is there: --service embedded: without a file. "
            "To have both: another --state-dir.",
        )


def settings_digest(configuration: Configuration) -> str:
    """Return a digest of the settings that an instance adopts from a configuration: equal for equal meaning."""
    parts: list[object] = [_settings(configuration)]
    if isinstance(configuration, ServiceConfiguration):
        parts += [configuration.filesystem, configuration.service_qos.persistence]
    return hashlib.sha256(msgspec.json.encode(parts, enc_hook=str, order="deterministic")).hexdigest()


def differences(named: Configuration, hosted: ServiceSettings) -> list[str]:
    """Return the differences between a configuration's queues and the hosted queues, a sentence each."""
    wanted, held = queues_by_name(_settings(named)), queues_by_name(hosted)
    found = [f"queue {name} is not here" for name in wanted if name not in held]
    found += [
        f"queue {name} is configured otherwise here"
        for name, settings in wanted.items()
        if held.get(name, settings) != settings
    ]
    found += [f"queue {name} is here and not in it" for name in held if name not in wanted]
    around = set(_containers(hosted))
    found += [f"{what} is not here" for what in _containers(_settings(named)) if what not in around]
    return found


def filesystem_differences(named: Configuration, used: FilesystemSettings, directory: Path) -> list[str]:
    """Return the differences in file settings; `directory` is the default where the configuration names none."""
    if not isinstance(named, ServiceConfiguration):
        return []
    wanted = named.filesystem
    found = []
    if (wanted.directory or directory).resolve() != (used.directory or directory).resolve():
        found.append(f"its directory is {wanted.directory}, the files are in {used.directory}")
    found += [
        f"<{tag}> is {getattr(wanted, tag)} in it and {getattr(used, tag)} here"
        for tag in ("file_prefix", "journal_mode", "synchronization", "vacuum")
        if getattr(wanted, tag) != getattr(used, tag)
    ]
    return found


def in_one_line(found: Sequence[str]) -> str:
    """Join differences into a part of a message."""
    more = len(found) - DIFFERENCES_SHOWN_MAX
    return "; ".join([*found[:DIFFERENCES_SHOWN_MAX], *([f"and {more} more differences"] if more > 0 else [])])


def _settings(configuration: Configuration) -> ServiceSettings:
    return configuration.service if isinstance(configuration, ServiceConfiguration) else configuration


def _containers(settings: ServiceSettings) -> Iterator[str]:
    for participant in settings.participants:
        yield f"domain participant {participant.name} of domain {participant.domain_id}"
        for subscriber in participant.subscribers:
            yield f"shared subscriber {participant.name}/{subscriber.name}"
