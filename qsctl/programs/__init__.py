"""The Python interface to qsctl's commands: the same work and results, without a terminal.

`service.py` has `qsctl.Service`; `configuration.py`, `explanation.py` and `studies.py` have the functions of `qsctl`.
Each calls the function of a command under a `ProgramCaller` (`qsctl/cli/caller.py`), so that nothing is printed and no
question is asked, and returns the command's result in a `CommandResult`. The commands validate the input; this package
only names the arguments. Read `command_result.py` first.
"""

from __future__ import annotations
