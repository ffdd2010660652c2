"""Running a blocking wrapper in a separate thread during a `with` block."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qsctl.client.session import Wrapper


@contextmanager
def working(wrapper: Wrapper, work: Callable[[], object]) -> Iterator[None]:
    """Run a wrapper's work in a thread during the block; then stop the wrapper, and wait for the thread.

    The wrapper belongs to that thread meanwhile. An exception of the work is raised at the end of the block, unless the
    block itself raised one.

    Args:
        wrapper: the wrapper, which is stopped at the end.
        work: the function to run; it must return once the wrapper is stopped.
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
