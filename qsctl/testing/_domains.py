"""Exclusive DDS domains for tests: domain ids that no other process on this machine uses.

A file lock claims a domain; the operating system releases it when the process ends.
"""

from __future__ import annotations

import fcntl
import os
from types import TracebackType
from typing import Final, Self

from qsctl.errors import Refused
from qsctl.own_folder import own_folder

DOMAIN_IDS: Final = range(100, 0, -1)
"""Domain ids whose ports are below the range from which the operating system assigns ports."""


class ClaimedDomain:
    """A DDS domain that this process holds exclusively until `close`.

    Attributes:
        domain_id: the domain's number.
        descriptor: descriptor of the locked file; a process that inherits it shares the claim for as long as it runs.

    Raises:
        Refused: every domain is in use, or the directory of the locks does not belong to this user.
    """

    def __init__(self) -> None:
        directory = own_folder("qsctl-test-domains")
        for number in DOMAIN_IDS:
            descriptor = os.open(directory / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                continue
            self.domain_id = number
            self.descriptor = descriptor
            return
        raise Refused(
            f"each of the {len(DOMAIN_IDS)} DDS domains for tests is in use on this machine",
            remedy=f"End the processes that hold locks in {directory}.",
        )

    def close(self) -> None:
        """Release the claim, so that another process may use the domain."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
