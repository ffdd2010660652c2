"""A running service for tests over DDS: a process of its own, found ready, ended by its own process id."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from qsctl.client.dds_connection import DdsConnection
from qsctl.transport.dds.participant import DomainSettings
from tests.dds.domains import descriptors_of
from tests.patience import PATIENCE_S
from tests.patience import eventually as eventually
from tests.processes import end, start

CONFIGURATION = """
<dds>
  {types}
  <queuing_service name="{name}">
    <administration><domain_id>{domain}</domain_id>{administration}</administration>
    {service}
    <domain_participant name="P">
      <domain_id>{domain}</domain_id>
      <shared_subscriber name="{subscriber}">
        <session_settings>{sessions}</session_settings>
        {queues}
      </shared_subscriber>
    </domain_participant>
  </queuing_service>
</dds>
"""

ORDERS = """
<shared_reader_queue name="Orders" session="s">
  <topic_name>Orders</topic_name><type_name>DDS::Octets</type_name>
</shared_reader_queue>
"""

QUICK = DomainSettings()
"""Loopback and the usual lease, as a service's."""


class ServiceProcess:
    """`qsctl serve` as a process."""

    is_fresh = False
    """Whether the program is loaded anew for each start, from where the environment has it."""

    def __init__(
        self,
        directory: Path,
        domain: int,
        *arguments: str,
        configuration: str = CONFIGURATION,
        is_file_named: bool = True,
        program: Sequence[str] = ("-m", "qsctl"),
        **parts: str,
    ) -> None:
        self.domain = domain
        self.name = parts.get("name", "Test")
        self.file = directory / f"{self.name}.xml"
        values = {
            "name": self.name,
            "administration": "",
            "service": "",
            "subscriber": "S",
            "queues": ORDERS,
            "types": "",
        }
        values |= {"sessions": '<session name="s"/>'} | parts
        self.file.write_text(configuration.format(domain=domain, **values), encoding="utf-8")
        self.log = directory / f"{self.name}.log"
        self.program = program
        self.arguments = (*((str(self.file),) if is_file_named else ()), *arguments)
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None
        self._connections: list[DdsConnection] = []
        self._begins_at = 0
        self.start()

    def start(self) -> None:
        """Start it and wait until it serves; where that fails, nothing of it is left."""
        with self.log.open("ab") as log:
            self._begins_at = log.tell()
            self.process = start(
                [sys.executable, *self.program, "serve", "--verbosity", "3", *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=self.directory,
                pass_fds=descriptors_of(self.domain),
                is_fresh=self.is_fresh,
            )
        try:
            self._await_start()
        except BaseException:
            end(self.process)
            raise

    def _await_start(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while "'started'" not in self.log_of_run():
            assert self.is_running, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def log_of_run(self) -> str:
        """Return what the service has logged since it was started last."""
        return self.log.read_bytes()[self._begins_at :].decode(errors="replace")

    @property
    def is_running(self) -> bool:
        assert self.process is not None
        return self.process.poll() is None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def connection(self, timeout_s: float = PATIENCE_S) -> DdsConnection:
        connection = DdsConnection(self.domain, timeout_s, QUICK)
        self._connections.append(connection)
        return connection

    def end(self) -> None:
        """Leave nothing behind, however the test ended: who stays in the domain spoils the next test."""
        with contextlib.ExitStack() as stack:
            if self.process is not None:
                stack.callback(end, self.process)
            for connection in self._connections:
                stack.callback(connection.close)

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        if self.is_running:
            os.kill(self.process.pid, number)
        return self.process.wait(PATIENCE_S)


StartService = Callable[..., ServiceProcess]
