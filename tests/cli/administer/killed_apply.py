"""A program that is killed at one of the steps of apply."""

from __future__ import annotations

KILLED = """
import os, signal, sys
from qsctl.client.desired import execution

left = int(sys.argv.pop(1))
before = sys.argv.pop(1) == "before"
carry_out = execution._carry_out

def killed(*arguments, **named):
    global left
    left -= 1
    if before and not left:
        os.kill(os.getpid(), signal.SIGKILL)
    carry_out(*arguments, **named)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

execution._carry_out = killed
from qsctl.cli.app import main
main()
"""
