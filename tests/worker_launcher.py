"""The program that xdist starts as the interpreter of a worker: has a `worker_server` fork the worker, and waits.

It imports little, since its own start is all that a worker's start costs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence


def launch(address: str, arguments: Sequence[str]) -> None:
    """Have a process forked with the standard streams, environment and directory of this one; wait for its end.

    Args:
        address: the path of the server's socket.
        arguments: those of the interpreter.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    request = json.dumps([list(arguments), dict(os.environ), os.getcwd()]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        socket.send_fds(connection, [len(request).to_bytes(8, "little")], [0, 1, 2])
        connection.sendall(request)
        for each in (0, 1):  # these pipes are the worker's alone: they end with it
            os.close(each)
        connection.recv(1)  # nothing is ever sent: the connection closes when the worker ends


if __name__ == "__main__":
    launch(sys.argv[1], sys.argv[2:])
