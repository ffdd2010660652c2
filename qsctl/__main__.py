"""`python -m qsctl` and the console script: the first lines that run, and the last edge of an interrupt.

Decides: what Ctrl-C, SIGTERM and SIGHUP do at any moment. While the program is loaded they end it at once; afterwards
they are an exception that commands clean up after; where a library loses the exception, and once the command is over,
they end it at once again. The exit status is 130 (the command's own, once it is over), there is no trace, and nothing
that `endings` holds is left behind.
"""

import os
import signal
import sys

_INTERRUPTED = 130
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Interrupts:
    """The reaction of this process to a signal that requests its end."""

    def __init__(self) -> None:
        self.is_loaded = False
        self.status: int | None = None
        """That of the command, once it is over."""
        self.count = 0

    def __call__(self, _number: int, _frame: object) -> None:
        """Raise KeyboardInterrupt, or leave.

        Raises:
            KeyboardInterrupt: a command runs.
        """
        if not self.is_loaded:  # nothing is held; an exception could be lost in a callback of the import system
            os.write(2, b"Error: interrupted\n")
            os._exit(_INTERRUPTED)
        from qsctl.endings import leave, waits_for_step

        if self.status is not None:
            leave(self.status)
        self.count += 1
        if not waits_for_step():
            raise KeyboardInterrupt

    def install(self) -> None:
        """Obey each signal that is not ignored, as a shell has it done for what runs in its background."""
        for number in _INTERRUPTS:
            if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
                signal.signal(number, self)
        usual = sys.unraisablehook

        def lost(unraisable: "sys.UnraisableHookArgs") -> None:
            if issubclass(unraisable.exc_type, KeyboardInterrupt):
                _leave_interrupted()
            usual(unraisable)

        sys.unraisablehook = lost


def main() -> None:
    """Run the command line of this process."""
    interrupts = _Interrupts()
    interrupts.install()
    try:
        try:
            import qsctl.endings  # the handler has it from now on
            from qsctl.cli.app import main as run

            interrupts.is_loaded = True
            is_watched = sys.getprofile() is not None or sys.gettrace() is not None or bool(sys.flags.inspect)
            if not is_watched:  # who watches this process does so until the interpreter's own end
                qsctl.endings.will_leave()
            run()
            status = 0
        except SystemExit as ended:
            if interrupts.count and ended.code == 1:  # what the parser of the command line makes of it
                _leave_interrupted()
            status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        interrupts.status = status
        from qsctl.endings import leave_in_order, leaves

        if not leaves():
            raise SystemExit(status)
        leave_in_order(status)
    except KeyboardInterrupt:
        _leave_interrupted()


def _leave_interrupted() -> None:
    """Leave at once: threads and libraries that are half started must neither hold the process nor trace."""
    from qsctl.endings import leave
    from qsctl.errors import QsctlError

    try:
        sys.stdout.flush()
        sys.stderr.write("Error: interrupted\n")
        sys.stderr.flush()
    except (OSError, ValueError, RuntimeError, QsctlError):
        pass  # there is no reader, or it is being written to: the exit status is enough
    leave(_INTERRUPTED)


if __name__ == "__main__":
    main()
