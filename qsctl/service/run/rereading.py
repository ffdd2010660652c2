"""The rereading of the configuration's files while a service runs, requested by SIGHUP.

Decides: which settings may change without a restart: `<service_limits>`. Any other difference is only logged: queues
are changed by commands (`qsctl apply`), other settings by a restart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Final

from qsctl.config.budgets import TOO_MANY_QUEUES_REMEDY, ServiceLimits
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.settings import ServiceSettings, queues_by_name
from qsctl.errors import InvalidInput, QsctlError
from qsctl.service.process.logger import ServiceLog
from qsctl.service.run.named_configuration import differences, in_one_line
from qsctl.transport.dds.serving.service_transport import ServiceTransport

_AT_A_START: Final = ("administration", "monitoring", "filesystem", "service_qos")


class Rereading:
    """The actions of a service at SIGHUP: it reopens its log, then reads its keys and its configuration again.

    The configuration is read in another thread, while the service continues.

    Args:
        read: reads the configuration; None: it was not read from files.
        transport: reads the keys, and is woken when the configuration was read.
        log: the log to open again.
    """

    def __init__(
        self, read: Callable[[], ServiceConfiguration] | None, transport: ServiceTransport, log: ServiceLog
    ) -> None:
        self._read = read
        self._transport = transport
        self._log = log
        self._is_wanted = False
        self._found: ServiceConfiguration | QsctlError | None = None
        self._thread: threading.Thread | None = None

    def request(self) -> None:
        """Request the actions for the next pass of the loop; may be called from a signal handler."""
        self._is_wanted = True
        self._transport.wake()

    def turn(self) -> ServiceConfiguration | QsctlError | None:
        """Run requested actions; return the configuration once it was read, or the error, else None."""
        if self._is_wanted:
            self._is_wanted = False
            self._log.reopen()
            self._read_keys()
            self._begin()
        return self._pop()

    def _read_keys(self) -> None:
        """Read the key files of the administration and of the cluster; log which keys are accepted from now on."""
        for event, read in (
            ("keys", self._transport.read_keys_again),
            ("cluster_keys", self._transport.read_cluster_keys_again),
        ):
            try:
                numbers = read()
            except QsctlError as error:
                self._log.warning(f"{event}_not_reread", cause=error.message, remedy=error.remedy)
                continue
            if numbers:
                self._log.info(f"{event}_reread", keys=",".join(numbers))

    def _begin(self) -> None:
        """Start to read the configuration, unless that is in progress."""
        if self._read is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run, args=(self._read,), name="configuration", daemon=True)
            self._thread.start()

    def _pop(self) -> ServiceConfiguration | QsctlError | None:
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread.join()
        self._thread = None
        found, self._found = self._found, None
        return found

    def _run(self, read: Callable[[], ServiceConfiguration]) -> None:
        try:
            self._found = read()
        except QsctlError as error:
            self._found = error
        except (OSError, ValueError) as error:  # the files may be moved, cut and replaced while they are read
            self._found = InvalidInput(
                f"the configuration cannot be read: {type(error).__name__}: {error}",
                remedy="Send SIGHUP again once its files exist.",
            )
        self._transport.wake()


def follow_files(
    found: ServiceConfiguration | QsctlError, present: ServiceConfiguration, hosted: ServiceSettings, log: ServiceLog
) -> ServiceConfiguration | None:
    """Return the new configuration, and log which differences are in force and which are not.

    None: nothing changes, because the files cannot be read or applied.
    """
    if isinstance(found, QsctlError):
        log.warning("configuration_not_reread", cause=found.message, remedy=found.remedy)
        return None
    if message := found.limits.too_many_queues(len(queues_by_name(hosted))):
        log.warning("configuration_not_reread", cause=message, remedy=TOO_MANY_QUEUES_REMEDY)
        return None
    changed = changed_limits(present.limits, found.limits)
    log.info("configuration_reread", limits=", ".join(changed) or "unchanged")
    if others := changes_not_in_force(present, found, hosted):
        log.warning(
            "configuration_not_in_force",
            text=in_one_line(others),
            remedy="qsctl apply changes queues; all else needs a restart.",
        )
    return replace(present, limits=found.limits)


def changed_limits(former: ServiceLimits, limits: ServiceLimits) -> list[str]:
    """Return the changed limits, each as `name=value`."""
    return [
        f"{each.name}={getattr(limits, each.name)}"
        for each in fields(limits)
        if getattr(limits, each.name) != getattr(former, each.name)
    ]


def changes_not_in_force(
    present: ServiceConfiguration, found: ServiceConfiguration, hosted: ServiceSettings
) -> list[str]:
    """Return the differences of a reread configuration that need a command or a restart, a sentence each."""
    parts = [f"<{tag}> is another" for tag in _AT_A_START if getattr(present, tag) != getattr(found, tag)]
    return [*differences(found, hosted), *parts]
