"""A child process that serves until its standard input ends: `python -m qsctl.programs._served_process serve …`.

The service thus ends with the program that started it: the operating system closes the program's end of the pipe even
if the program is killed and cannot send a signal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def _stop_with_the_starter() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run the command line of this process, and send SIGTERM to it when its standard input ends."""
    from qsctl.__main__ import main as command_line

    threading.Thread(target=_stop_with_the_starter, daemon=True).start()
    command_line()


if __name__ == "__main__":
    sys.argv[0] = "qsctl"
    main()
