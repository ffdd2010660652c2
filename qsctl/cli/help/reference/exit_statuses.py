"""The page of exit statuses: each status with its meaning, from the program's own texts."""

from __future__ import annotations

from qsctl.cli.help.reference.markdown import table
from qsctl.errors import EXIT_STATUS_MEANINGS

_CHECKS = """\
`check` has the statuses of monitoring plug-ins instead: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. Whatever keeps it
from an answer, a wrong command line included, is UNKNOWN with one line. Ranges are theirs too: `10` is well from 0
to 10, `10:` from 10 up, `~:10` up to 10, `10:20` between, `@10:20` outside.

A command that ends with 74 or 141 has done its work, with these exceptions: `consume` and `request` acknowledge
what they have printed and flushed, and the rest comes again, marked as redelivered. A pipe accepts more than its
reader reads: `consume --count 3` receives three samples, `consume --count 0 | head -3` may consume what the pipe
held."""


def page() -> str:
    """Return the table of statuses, then those of `qsctl check`."""
    rows = [(str(int(status)), meaning) for status, meaning in EXIT_STATUS_MEANINGS.items()]
    return f"{table(('status', 'meaning'), rows)}\n\n{_CHECKS}"
