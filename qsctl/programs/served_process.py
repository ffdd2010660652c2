"""A child process that serves until its standard input ends: `python -m qsctl.programs.served_process serve …`.

Decides: that the service ends with the program that started it, however that ends; a killed program cannot send a
signal, and the system closes its end of the pipe.
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
    """Run the command line of this process; SIGTERM comes where standard input ends."""
    from qsctl.__main__ import main as command_line

    threading.Thread(target=_stop_with_the_starter, daemon=True).start()
    command_line()


if __name__ == "__main__":
    sys.argv[0] = "qsctl"
    main()
