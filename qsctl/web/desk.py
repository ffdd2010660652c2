"""The service that the page asks: how it is opened, who asks at a time, and the words that name it on a command line.

Decides: how long it is held. The state directory of an embedded service is locked while it is open, so it is opened for
each question; over DDS one connection serves all questions, and is made anew after an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from anyio import to_thread

from qsctl.cli.service_options import TargetOptions
from qsctl.client.administration import Administration
from qsctl.errors import NotFound, QsctlError
from qsctl.web.feed import PolledSource

_Found = TypeVar("_Found")


class ServiceDesk:
    """The service of a page.

    Args:
        options: of the command line.
    """

    def __init__(self, options: TargetOptions) -> None:
        self.options = options
        self.is_remote = options.service.startswith("dds:")
        self._held = ExitStack()
        self._administration: Administration | None = None

    @property
    def title(self) -> str:
        """Return where it is."""
        return self.options.service if self.is_remote else f"{self.options.service} in {self.options.state_dir}"

    @contextmanager
    def open(self) -> Iterator[Administration]:
        """Yield the service, for one question; one thread at a time may ask.

        Raises:
            NotFound: there is no embedded service yet. To look is no reason to make one.
            QsctlError: it cannot be opened, or does not answer.
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
        """Return the options that name this service on the command line of any command."""
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
    """Return the answer to a question, asked in a thread when the source is not being looked at."""

    def asked() -> _Found:
        with desk.open() as administration:
            return question(administration)

    async with feed.asking:
        return await to_thread.run_sync(asked)
