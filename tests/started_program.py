"""A program that tests start to see what a process of theirs is: `python -m tests.started_program WHAT`."""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any


def state() -> dict[str, Any]:
    """What a program can see of its own start, but for what is of one process alone."""
    streams, standard = (sys.stdin, sys.stdout, sys.stderr), (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    with os.popen("env") as environment:
        variables = sorted(environment.read().splitlines())
    main = sys.modules["__main__"]
    return {
        "arguments": sys.argv,
        "command": sys.orig_argv,
        "path": sys.path,
        "flags": str(sys.flags),
        "directory": os.getcwd(),
        "environment": dict(os.environ),
        "environment of the system": variables,
        "descriptors": {each: place(each) for each in os.listdir("/proc/self/fd") if int(each) > 2},
        "streams": list(map(stream, streams)),
        "standard streams": [a is b for a, b in zip(streams, standard, strict=True)],
        "signals": [str(signal.getsignal(each)) for each in sorted(signal.valid_signals())],
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "leads": (os.getpid() == os.getsid(0), os.getpid() == os.getpgid(0)),
        "limits and mask": [
            line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(("Umask", "Threads"))
        ],
        "main": (main.__file__, main.__name__, main.__spec__.name, __package__, main is sys.modules[__name__]),
        "input": sys.stdin.read(),
    }


def stream(each: Any) -> tuple[Any, ...]:
    """A standard stream, as it can differ."""
    kinds = type(each).__name__, type(each.buffer).__name__
    texts = each.name, each.buffer.name, each.mode, each.encoding, each.errors, each.newlines
    return (*kinds, *texts, each.line_buffering, each.write_through, each.fileno(), each.isatty())


def place(descriptor: str) -> str:
    """What a descriptor refers to; the folder that is listed is closed by now."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


def late() -> None:
    time.sleep(0.2)
    sys.stdout.write("a thread\n")


if __name__ == "__main__":
    match sys.argv[1]:
        case "state":
            sys.stdout.write(json.dumps(state()))
        case "text":
            sys.exit("it leaves with a text")
        case "error":
            raise ValueError("an error that nothing catches")
        case "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        case "ends":
            atexit.register(print, "at its end")
            threading.Thread(target=late).start()
            sys.stdout.write("not flushed; ")
        case "wait":
            sys.stdout.write(f"{os.getppid()}\n")
            sys.stdout.flush()
            time.sleep(600)
