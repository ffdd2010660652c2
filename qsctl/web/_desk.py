"""Access to the service that the page queries: how it is opened, mutual exclusion, and its command-line options.

Decides how long the service is held open. The state directory of an embedded service is locked while it is open, so it
is opened for each query; over DDS one connection serves all queries, and is opened anew after an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from anyio import to_thread

from qsctl.cli.service_options import TargetOptions
from qsctl.client.administration import Administration
from qsctl.errors import NotFound, QsctlError
from qsctl.web._feed import PolledSource

_Found = TypeVar("_Found")


class ServiceDesk:
    """The service of a page.

    Args:
        options: the command's options that name the service.
    """

    def __init__(self, options: TargetOptions) -> None:
        self.options = options
        self.is_remote = options.service.startswith("dds:")
        self._held = ExitStack()
        self._administration: Administration | None = None

    @property
    def title(self) -> str:
        """Return the location of the service."""
        return self.options.service if self.is_remote else f"{self.options.service} in {self.options.state_dir}"

    @contextmanager
    def open(self) -> Iterator[Administration]:
        """Yield the opened service for one query; only one thread at a time may call it.

        Raises:
            NotFound: the embedded service does not exist; a query does not create it.
            QsctlError: the service cannot be opened, or does not answer.
        """
        if not self.is_remote:
            if not self.options.state_dir.exists():
                raise NotFound(
                    f"there is no service in {self.options.state_dir} yet",
                    remedy="`qsctl create-queue NAME` makes one.",
                )
            with self.options.open() as administration:
                yield administration
            return
        if self._administration is None:
            self._administration = self._held.enter_context(self.options.open())
        try:
            yield self._administration
        except QsctlError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._administration = None
        self._held.close()

    def words(self) -> list[str]:
        """Return the options that name this service on a command line."""
        options = self.options
        words = ["--service", options.service]
        if not self.is_remote:
            words += ["--state-dir", str(options.state_dir)]
        for switch, value, default in (
            ("--target", options.target, "*"),
            ("--timeout", options.timeout, "10s"),
            ("--key-file", options.key_file, None),
        ):
            if value != default:
                words += [switch, str(value)]
        return words


async def ask(feed: PolledSource, desk: ServiceDesk, question: Callable[[Administration], _Found]) -> _Found:
    """Run a query of the service in a thread, while the source is not being polled, and return its result."""

    def asked() -> _Found:
        with desk.open() as administration:
            return question(administration)

    async with feed.asking:
        return await to_thread.run_sync(asked)
