"""`python -m qsctl` and the console script: the first lines that run, and the last edge of an interrupt.

Decides: what Ctrl-C does at any moment. While the program is loaded it ends it at once; afterwards it is an exception
that commands clean up after. The exit status is 130, and there is no trace.
"""

import os
import signal
import sys

from qsctl.errors import QsctlError

_INTERRUPTED = 130


def main() -> None:
    """Run the command line of this process."""
    interrupts: list[int] = []
    is_loaded = False

    def interrupt(number: int, _frame: object) -> None:
        if not is_loaded:
            _leave_interrupted()  # an exception could be lost in a callback of the import system
        interrupts.append(number)
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # ignored in the background of a shell
        signal.signal(signal.SIGINT, interrupt)
    try:
        from qsctl.cli.app import main as run

        is_loaded = True
        run()
    except KeyboardInterrupt:
        _leave_interrupted()
    except SystemExit as ended:
        if interrupts and ended.code == 1:  # what the parser of the command line makes of it
            _leave_interrupted()
        raise
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # what is left to do at exit ends without a trace too


def _leave_interrupted() -> None:
    """Leave at once: threads and libraries that are half started must neither hold the process nor trace."""
    try:
        sys.stdout.flush()
        sys.stderr.write("Error: interrupted\n")
        sys.stderr.flush()
    except (OSError, ValueError, RuntimeError, QsctlError):
        pass  # nobody reads, or it is being written to: the status says it
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
