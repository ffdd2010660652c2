"""Reading the configuration's files again while a service runs, as SIGHUP asks for.

Decides: what may change without a restart: `<service_limits>`. All else is compared, and what differs is a line of the
log: queues are changed by commands (`qsctl apply`), the rest by a restart.
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
    """The actions of a service at SIGHUP, in this order: open its log again, read its keys again, read its files again.

    The configuration is read in a thread, so that the service goes on meanwhile.

    Args:
        read: reads the configuration; None: it came from no files.
        transport: reads the keys, and is woken up.
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
        """Do it with the next pass; may be called from a signal handler."""
        self._is_wanted = True
        self._transport.wake()

    def turn(self) -> ServiceConfiguration | QsctlError | None:
        """Do what was requested; return the configuration once it is read, or why it cannot be, and else None."""
        if self._is_wanted:
            self._is_wanted = False
            self._log.reopen()
            self._read_keys()
            self._begin()
        return self._pop()

    def _read_keys(self) -> None:
        """Read the key file of the administration, and log which keys are accepted from now on."""
        try:
            numbers = self._transport.read_keys_again()
        except QsctlError as error:
            self._log.warning("keys_not_reread", cause=error.message, remedy=error.remedy)
            return
        if numbers:
            self._log.info("keys_reread", keys=",".join(numbers))

    def _begin(self) -> None:
        """Begin to read, unless it is being read."""
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
                remedy="Send SIGHUP again once its files are there.",
            )
        self._transport.wake()


def follow_files(
    found: ServiceConfiguration | QsctlError, present: ServiceConfiguration, hosted: ServiceSettings, log: ServiceLog
) -> ServiceConfiguration | None:
    """Return the configuration as it is from now on, and log what of the files is in force and what is not.

    None: nothing changes, for the files cannot be read or obeyed.
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
    """Return the limits that are others now, each as `name=value`."""
    return [
        f"{each.name}={getattr(limits, each.name)}"
        for each in fields(limits)
        if getattr(limits, each.name) != getattr(former, each.name)
    ]


def changes_not_in_force(
    present: ServiceConfiguration, found: ServiceConfiguration, hosted: ServiceSettings
) -> list[str]:
    """Return what of a configuration that was read again is not in force: a sentence each."""
    parts = [f"<{tag}> is another" for tag in _AT_A_START if getattr(present, tag) != getattr(found, tag)]
    return [*differences(found, hosted), *parts]
