"""The commands' work and results for programs, without a terminal.

`service.py` has `qsctl.Service`; `configuration.py`, `explanation.py` and `studies.py` have the functions of `qsctl`.
Each calls the function of a command under a `ProgramCaller` (`qsctl/cli/caller.py`), so that nothing is printed or
asked, and gives the command's result in a `CommandResult`. Input is judged by the command; here are only the names of
arguments. Read `command_result.py` first.
"""

from __future__ import annotations
