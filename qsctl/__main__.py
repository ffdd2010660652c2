"""The entry point of `python -m qsctl` and of the console script, with the handling of signals that request an end.

Decides the effect of Ctrl-C, SIGTERM and SIGHUP at any moment. While modules are loaded, a signal ends the process at
once. While a command runs, a signal raises KeyboardInterrupt, so that the command cleans up. Where a library swallows
the exception, and after the command, a signal again ends the process at once. The exit status is 130, or the command's
own after its end; no traceback is printed, and everything registered with `endings` is released.
"""

import os
import signal
import sys

_INTERRUPTED = 130
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Interrupts:
    """The handler of the signals that request the end of this process."""

    def __init__(self) -> None:
        self.is_loaded = False
        self.status: int | None = None
        """The exit status of the command, after its end; None before."""
        self.count = 0

    def __call__(self, _number: int, _frame: object) -> None:
        """Raise KeyboardInterrupt while a command runs; end the process while modules are loaded and after the command.

        Raises:
            KeyboardInterrupt: a command runs, and the main thread is not in a step that defers interrupts.
        """
        if not self.is_loaded:  # nothing to release; the import system could swallow an exception
            os.write(2, b"Error: interrupted\n")
            os._exit(_INTERRUPTED)
        from qsctl.endings import leave, waits_for_step

        if self.status is not None:
            leave(self.status)
        self.count += 1
        if not waits_for_step():
            raise KeyboardInterrupt

    def install(self) -> None:
        """Handle each signal, except those that the parent process ignores, as a shell does for background jobs."""
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
            import qsctl.endings  # imported here, so that the handler does not have to load it
            from qsctl.cli.app import main as run

            interrupts.is_loaded = True
            is_watched = sys.getprofile() is not None or sys.gettrace() is not None or bool(sys.flags.inspect)
            if not is_watched:  # a profiler, debugger or -i needs the interpreter's regular exit
                qsctl.endings.will_leave()
            run()
            status = 0
        except SystemExit as ended:
            if interrupts.count and ended.code == 1:  # the command-line parser turns an interrupt into status 1
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
    """Report the interrupt and end the process at once, without waiting for threads and libraries that are half
    started.
    """
    from qsctl.endings import leave
    from qsctl.errors import QsctlError

    try:
        sys.stdout.flush()
        sys.stderr.write("Error: interrupted\n")
        sys.stderr.flush()
    except (OSError, ValueError, RuntimeError, QsctlError):
        pass  # the stream has no reader, or a write to it is in progress: the exit status is enough
    leave(_INTERRUPTED)


if __name__ == "__main__":
    main()
