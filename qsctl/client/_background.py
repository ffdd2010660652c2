"""The work of a blocking wrapper in a thread of its own, for as long as a block lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qsctl.client.session import Wrapper


@contextmanager
def working(wrapper: Wrapper, work: Callable[[], object]) -> Iterator[None]:
    """Let a wrapper work in a thread until the block ends; then stop it, and wait until it has finished.

    The wrapper belongs to that thread meanwhile. What the work raises is raised at the end of the block, unless the
    block raised something itself.

    Args:
        wrapper: is stopped at the end.
        work: ends once the wrapper is stopped.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="qsctl-client", daemon=True)
    thread.start()
    try:
        yield
    finally:
        wrapper.stop()
        thread.join()
    if failures:
        raise failures[0]
