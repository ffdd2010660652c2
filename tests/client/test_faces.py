"""The blocking and the awaitable wrappers are called in the same way."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import qsctl.client as blocking
from qsctl.client import aio
from qsctl.client.aio._awaitable import AwaitableWrapper

WRAPPERS = ("QueueProducer", "QueueConsumer", "QueueRequester", "QueueReplier")

OF_THREADS_ALONE = {"processing"}
"""A task that works beside others is started as any other task."""

OF_TASKS_ALONE = {"aclose", "write_all"}
"""`write_all` yields to other tasks between samples; a loop that blocks does it by itself."""

WITHOUT_WAITING = {
    "abandon", "acknowledge_once", "answer", "awaiting", "begin", "close", "deliveries", "finish_batch", "leave",
    "pauses", "receive_batch",
    "has_feedback", "has_queue", "has_replies", "has_room", "has_samples", "has_samples_or_end", "has_samples_or_stops",
    "is_acknowledged", "next_pause", "only_reply", "replace_listener", "turn", "unacknowledged_text",
}  # fmt: skip
"""What the awaitable wrappers are made with; `close` is `aclose` there."""

OF_THEIR_OWN = {"batches", "process", "request", "stop", "write_many", "write_until_accepted"}
"""Methods that both have, and that are no awaited call of the blocking one; `stop` may be called from anywhere."""


def methods(of: type[Any]) -> set[str]:
    return {name for name, value in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize("name", WRAPPERS)
def test_both_are_opened_with_the_same_arguments(name: str) -> None:
    assert inspect.signature(getattr(aio, name)) == inspect.signature(getattr(blocking, name))


@pytest.mark.parametrize("name", WRAPPERS)
def test_both_have_the_same_methods(name: str) -> None:
    assert (
        methods(getattr(blocking, name)) - WITHOUT_WAITING - OF_THREADS_ALONE
        == methods(getattr(aio, name)) - OF_TASKS_ALONE
    )


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_method_has_the_same_signature_and_documentation(name: str) -> None:
    one, other = getattr(blocking, name), getattr(aio, name)
    for method in sorted(methods(other) - OF_TASKS_ALONE):
        its, awaited = inspect.signature(getattr(one, method)), inspect.signature(getattr(other, method))
        if method in {"batches", "process"}:  # what they yield and are given is of tasks
            assert awaited.parameters.keys() == its.parameters.keys()
        else:
            assert awaited == its, method
        assert inspect.getdoc(getattr(other, method)), method
        if method not in {"batches", "stop"}:
            assert inspect.iscoroutinefunction(getattr(other, method)), method


@pytest.mark.parametrize("name", WRAPPERS)
def test_what_is_awaited_takes_the_arguments_that_it_states(name: str) -> None:
    """A signature alone is a promise: what is called is the blocking method, with the arguments given."""
    one, other = getattr(blocking, name), getattr(aio, name)
    for method in sorted(methods(other) - OF_TASKS_ALONE - OF_THEIR_OWN):
        wrapped = getattr(other, method).__wrapped__
        assert wrapped is inspect.unwrap(getattr(one, method)), method
    assert issubclass(other, AwaitableWrapper)


@pytest.mark.parametrize("package", [blocking, aio])
def test_the_public_names_are_there_and_documented(package: Any) -> None:
    for name in package.__all__:
        assert inspect.getdoc(getattr(package, name)), name
    with pytest.raises(AttributeError, match="nothing_like_it"):
        package.nothing_like_it  # noqa: B018


def test_the_public_surface_is_imported_without_the_dds_library() -> None:
    import subprocess
    import sys

    script = "import sys, qsctl, qsctl.client, qsctl.client.aio; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"cyclonedds", "numpy", "anyio", "msgspec", "typer"} & set(done.stdout.split())
