"""The end of a file that is written in sectors: whatever is appended, cut and flushed, the file is the sum of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qsctl.storage.log._direct_tail import DirectTail
from qsctl.storage.names import open_private

_open, _pwrite = os.open, os.pwrite


class Mount:
    """What stands behind a file: how small its sectors are, and what it was given."""

    def __init__(self, sector_bytes: int, at_most: int = 1 << 30) -> None:
        self.sector_bytes = sector_bytes
        """0: it knows no way past the page cache."""
        self.at_most = at_most
        """How many octets one call takes at the most."""
        self.written: list[int] = []
        self._direct: set[int] = set()

    @contextmanager
    def mounted(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(os, "open", self.open)
            patches.setattr(os, "pwrite", self.pwrite)
            yield

    def open(self, path: Any, flags: int, *rest: Any) -> int:
        if flags & os.O_DIRECT and not self.sector_bytes:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        descriptor = _open(path, flags & ~os.O_DIRECT, *rest)
        if flags & os.O_DIRECT:
            self._direct.add(descriptor)
        else:
            self._direct.discard(descriptor)
        return descriptor

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        if descriptor in self._direct and (len(data) % self.sector_bytes or offset % self.sector_bytes):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        with memoryview(data) as view, view[: self.at_most] as part:
            self.written.append(len(part))
            return _pwrite(descriptor, part, offset)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5_000)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("cut"), st.integers(0, 6_000)),
        st.tuples(st.just("open again"), st.just(0)),
    ),
    max_size=30,
)


@pytest.mark.parametrize(
    "system", [lambda: Mount(512), lambda: Mount(4096), lambda: Mount(0), lambda: Mount(512, 1024)]
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(steps=STEPS, start=st.integers(0, 1_100))
def test_the_file_is_what_was_appended_and_not_cut(
    tmp_path: Path, system: Callable[[], Mount], steps: Sequence[tuple[str, int]], start: int
) -> None:
    path = tmp_path / "file"
    path.unlink(missing_ok=True)
    descriptor = open_private(path, os.O_RDWR)
    model = bytearray(os.urandom(start))
    _pwrite(descriptor, bytes(model), 0)
    flushed = len(model)
    with system().mounted():
        tail = DirectTail(path, descriptor, len(model))
        for step, number in steps:
            if step == "append":
                data = os.urandom(number)
                tail.append(data)
                model += data
            elif step == "cut":
                del model[max(0, len(model) - number) :]
                tail.cut(len(model))
                os.ftruncate(descriptor, len(model))
                flushed = min(flushed, len(model))
            elif step == "flush":
                tail.flush()
                flushed = len(model)
            else:
                tail.close()
                del model[flushed:]
                tail = DirectTail(path, descriptor, len(model))
            found = path.read_bytes()
            assert found[:flushed] == model[:flushed]
        tail.flush()
        tail.close()
    found = path.read_bytes()
    assert found[: len(model)] == model
    assert not any(found[len(model) :]), "zeros follow"
    os.close(descriptor)


def test_what_a_sync_writes_is_little_more_than_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "file"
    descriptor = open_private(path, os.O_RDWR)
    system = Mount(512)
    with system.mounted():
        tail = DirectTail(path, descriptor, 0)
        for _ in range(100):
            tail.append(bytes(300))
            tail.flush()
        tail.close()
    os.close(descriptor)
    assert sum(system.written) <= 100 * (300 + 512)


def test_a_large_piece_and_a_refusal_in_the_middle_of_it(tmp_path: Path) -> None:
    """A refused write leaves what was to be written where it was: it can be tried again."""
    path = tmp_path / "file"
    descriptor = open_private(path, os.O_RDWR)
    data = os.urandom(3_000_001)
    tail = DirectTail(path, descriptor, 0)
    tail.append(data)
    count = 0

    def refuse_second(number: int, piece: Any, offset: int) -> int:
        nonlocal count
        count += 1
        if count == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return _pwrite(number, piece, offset)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(os, "pwrite", refuse_second)
        with pytest.raises(OSError, match="No space"):
            tail.flush()
    tail.flush()
    tail.close()
    os.close(descriptor)
    assert path.read_bytes()[: len(data)] == data


def test_another_file_that_has_the_name_by_now_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    descriptor = open_private(path, os.O_RDWR)
    path.rename(tmp_path / "moved")
    path.write_bytes(b"another")
    tail = DirectTail(path, descriptor, 0)
    tail.append(b"ours")
    tail.flush()
    tail.close()
    os.close(descriptor)
    assert path.read_bytes() == b"another"
    assert (tmp_path / "moved").read_bytes()[:4] == b"ours"
