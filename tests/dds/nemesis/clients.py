"""The clients of a cluster under faults as processes: producers, consumers, and an operator."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from tests.dds.domains import descriptors_of
from tests.dds.nemesis.hosts import Hosts
from tests.dds.nemesis.journals import Journal, read_journal
from tests.dds.nemesis.programs import STOP, Arguments
from tests.patience import PATIENCE_S
from tests.processes import end, start

ANSWER_S = 120.0
"""Longest time of a command; its own time-outs are far shorter."""


class Answer(NamedTuple):
    """What a command of the operator exited with and wrote."""

    exit_code: int
    out: str
    error: str


@dataclass
class Client:
    """A running client."""

    role: str
    topic: str
    directory: Path
    process: subprocess.Popen[str]
    is_paused: bool = False

    @property
    def journal(self) -> Journal:
        """Return what it noted until now."""
        return read_journal(self.journal_file)

    @property
    def journal_file(self) -> Path:
        """Return the file of its journal, which has its name."""
        return self.directory / self.directory.name


class Clients:
    """All clients that were started, with their journals."""

    def __init__(self, directory: Path, domain: int, hosts: Hosts, *, rate_per_second: float) -> None:
        self._directory, self._domain, self._hosts, self._rate = directory, domain, hosts, rate_per_second
        self._all: list[Client] = []
        self._ending = contextlib.ExitStack()
        self.running: list[Client] = []

    def start(self, role: str, topic: str = "", *, rejects_every: int = 0) -> Client:
        """Start a client: `produce`, `consume` or `operate`."""
        directory = self._directory / f"{role}{len(self._all)}"
        directory.mkdir(parents=True)
        arguments = Arguments(
            self._domain,
            str(directory / directory.name),
            topic,
            self._hosts.namespace,
            self._hosts.interface,
            self._hosts.peers,
            self._rate,
            rejects_every=rejects_every,
        )
        (directory / "arguments.json").write_bytes(msgspec.json.encode(arguments))
        (directory / directory.name).touch()
        with (directory / "errors").open("ab") as errors:
            process = start(
                [sys.executable, "-m", "tests.dds.nemesis.programs", role, str(directory / "arguments.json")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=directory,
                pass_fds=descriptors_of(self._domain),
            )
        self._ending.callback(end, process)
        client = Client(role, topic, directory, process)
        self._all.append(client)
        self.running.append(client)
        return client

    def kill(self, client: Client) -> None:
        """Kill a client, which keeps its journal."""
        self.running.remove(client)
        end(client.process)

    def stop(self, client: Client) -> None:
        """Let a client end in order; a producer waits for its answers before that."""
        self.resume(client)
        self.running.remove(client)
        (client.directory / STOP).touch()
        status = client.process.wait(2 * PATIENCE_S)
        assert status == 0, f"{client.directory.name} ended with {status}: {(client.directory / 'errors').read_text()}"

    def pause(self, client: Client) -> None:
        """Let a client stand still."""
        os.kill(client.process.pid, signal.SIGSTOP)
        client.is_paused = True

    def resume(self, client: Client) -> None:
        """Let a client go on."""
        if client.is_paused:
            client.is_paused = False
            os.kill(client.process.pid, signal.SIGCONT)

    def check(self) -> None:
        """Check that none ended by itself."""
        for client in self.running:
            status = client.process.poll()
            assert status is None, f"{client.directory.name}: {status}, {(client.directory / 'errors').read_text()}"

    def of(self, role: str, *topics: str) -> list[Client]:
        """Return the running clients of a role and some topics."""
        return [each for each in self.running if each.role == role and each.topic in topics]

    def journals(self) -> list[Journal]:
        """Return the journals of all that ever ran."""
        return [each.journal for each in self._all]

    def end(self) -> None:
        """Leave nothing behind."""
        for client in self.running:
            self.resume(client)
        self._ending.close()


class Operator:
    """An operator, who gives one command after the other."""

    def __init__(self, clients: Clients, log: Path) -> None:
        self._client = clients.start("operate")
        self._log = log
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._asked: tuple[float, tuple[str, ...]] | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, words: tuple[str, ...]) -> None:
        """Give a command; `answer` has what came of it."""
        assert self._asked is None, self._asked
        assert self._client.process.stdin is not None
        self._asked = (time.monotonic(), words)
        self._client.process.stdin.write(json.dumps(words) + "\n")
        self._client.process.stdin.flush()

    def answer(self) -> Answer | None:
        """Return what the command came to, or None: it is not over."""
        assert self._asked is not None
        begun, words = self._asked
        try:
            answer = Answer(*json.loads(self._answers.get_nowait()))
        except queue.Empty:
            assert time.monotonic() < begun + ANSWER_S, f"no end of {words}"
            return None
        self._asked = None
        with self._log.open("a", encoding="utf-8") as log:
            log.write(f"{begun:.3f} {time.monotonic() - begun:.2f} s {' '.join(words)}\n{answer}\n")
        return answer

    def _read(self) -> None:
        assert self._client.process.stdout is not None
        for line in self._client.process.stdout:
            self._answers.put(line)
