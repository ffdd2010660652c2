"""The source of the configuration of `qsctl serve`: files, or other services [QS 3.1 and 4.2].

Decides which options apply to a configuration received from other services: its domains are unchanged, and neither
variables nor default files of this machine are used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qsctl.cli.output.render import note
from qsctl.endings import TemporaryFolder

if TYPE_CHECKING:
    from qsctl.config.load import LoadedConfiguration
    from qsctl.config.settings import ServiceConfiguration
    from qsctl.service.process.start import StartOptions


@dataclass(frozen=True, slots=True)
class Loading:
    """The options of `qsctl serve` that concern the configuration."""

    sources: tuple[str, ...]
    configuration_name: str | None
    variables: Mapping[str, str]
    application_name: str | None
    domain_id_base: int
    storage_path: Path | None
    file_prefix: str | None
    without_tcp: bool = False

    def from_files(self, options: StartOptions) -> tuple[ServiceConfiguration, StartOptions]:
        """Load the given files and the default ones; return the configuration, and the options for it.

        Raises:
            UsageError: there is no file.
            InvalidFile, NotServed: the configuration is not valid or cannot be served; with every problem.
        """
        from qsctl.config.files.load_order import sources_in_order
        from qsctl.errors import UsageError

        if not sources_in_order(self.sources, environment=os.environ, working_directory=Path.cwd()):
            raise UsageError(
                "no configuration file is given and there is no USER_QUEUING_SERVICE.xml here",
                remedy="Write qsctl serve FILE, or qsctl init to have one to start from.",
            )
        return _served(self._load(self.sources, self.configuration_name, is_own=True), options)

    def from_others(self, options: StartOptions, timeout_s: float) -> tuple[ServiceConfiguration, StartOptions]:
        """Request the configuration from services of the administration domain; if none arrives, load the files.

        Raises:
            NoAnswer: no configuration arrived, and there is no file.
            InvalidFile, NotServed: the configuration is not valid or cannot be served; with every problem.
            Unavailable: DDS does not start on this machine.
        """
        from qsctl.client.remote_configuration import find_configuration
        from qsctl.config.files.load_order import sources_in_order
        from qsctl.errors import NoAnswer
        from qsctl.transport.dds.participant import DomainSettings

        domain_id = options.administration_domain_id
        assert domain_id is not None, "it was asked for"
        settings = DomainSettings(interface=options.interface, peers=options.peers)
        found = find_configuration(domain_id, self.configuration_name, timeout_s, settings, self.application_name)
        if found is not None:
            with TemporaryFolder() as directory:
                file = directory / f"configuration-of-domain-{domain_id}.xml"
                file.write_text(found.xml, encoding="utf-8")
                loaded = self._load((str(file),), found.name, is_own=False)
            return _served(loaded, replace(options, forgets_configuration=True))
        named = f" named {self.configuration_name}" if self.configuration_name else ""
        what = f"no service of domain {domain_id} gave a configuration{named} within {timeout_s:g} s"
        if not sources_in_order(self.sources, environment=os.environ, working_directory=Path.cwd()):
            raise NoAnswer(what, remedy="Start one of them first, or name a file to begin with.")
        note(f"Warning: {what}; the files are used")
        return self.from_files(options)

    def _load(self, sources: tuple[str, ...], name: str | None, *, is_own: bool) -> LoadedConfiguration:
        from qsctl.config.load import load_configuration

        return load_configuration(
            sources,
            configuration_name=name,
            variables=self.variables if is_own else {},
            environment=os.environ if is_own else {},
            working_directory=Path.cwd(),
            default_files=is_own,
            application_name=self.application_name,
            domain_id_base=self.domain_id_base if is_own else 0,
            persistent_storage_path=self.storage_path,
            persistent_file_prefix=self.file_prefix,
            without_tcp=self.without_tcp,
        )


def _served(loaded: LoadedConfiguration, options: StartOptions) -> tuple[ServiceConfiguration, StartOptions]:
    loaded.require_served()
    return loaded.configuration, replace(options, warnings=tuple(str(problem) for problem in loaded.problems))
