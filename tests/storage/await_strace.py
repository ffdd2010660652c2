"""The first step of a program that strace watches: it waits until strace does, which then sees what the program does.

It is a module of its own, since such a program imports nothing of pytest.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys

_PR_SET_PTRACER = 0x59616D61
_PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)


def await_strace() -> None:
    """Let any process of the user trace this one (Linux with Yama), and wait for a line of standard input."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _PR_SET_PTRACER_ANY, 0, 0, 0)
    sys.stdin.readline()
