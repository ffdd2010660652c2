"""A program whose files are watched: it works with an embedded service, a command after the other.

`traced_program STATE_DIR SYNCHRONIZATION JOURNAL_MODE`: it writes what the queues hold, `QUEUE=TEXT,TEXT`, separated by
spaces: before samples are acknowledged or a queue is deleted what is left then, and `done` after each command.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.config.settings import ServiceConfiguration
from qsctl.core.admin.command import DeleteQueue
from qsctl.core.messages import AckResponse
from qsctl.resource import ResourceKind
from qsctl.service.directory._embedded_settings import DEFAULT_SETTINGS
from qsctl.service.directory.embedded import open_embedded
from tests.service.embedded_commands import FULL_NAME, IN_MEMORY, ON_DISK, SUBSCRIBER, create, queue, write
from tests.storage.await_strace import await_strace

COMMANDS = 12


def configuration(synchronization: str, journal_mode: str) -> ServiceConfiguration:
    """Return how the files are written, which are small."""
    filesystem = FilesystemSettings(
        file_max_size_kb=1,
        synchronization=Synchronization(synchronization),
        journal_mode=JournalMode(journal_mode),
    )
    return ServiceConfiguration("qsctl", DEFAULT_SETTINGS, filesystem=filesystem)


def main() -> None:
    await_strace()
    state_dir, given = Path(sys.argv[1]), configuration(*sys.argv[2:4])
    chance, held = random.Random(1), dict[str, list[str]]()

    def say(word: str) -> None:
        text = " ".join(f"{name}={','.join(texts)}" for name, texts in held.items())
        os.write(1, f"{word} {text}\n".encode())

    number = 0
    for at in range(COMMANDS):
        with open_embedded(state_dir, configuration=given) as service:
            for name, persistence in (("Log", IN_MEMORY), ("Database", ON_DISK)):
                if name not in held:
                    held[name] = []
                    assert create(service, queue(name, persistence)) == 0
                if at % 5 == 4:
                    del held[name]
                    say("deleting")
                    service.request(DeleteQueue(SUBSCRIBER.child(ResourceKind.SHARED_READER_QUEUE, name)))
                    continue
                texts = [f"{number + each}" + "x" * chance.choice([3, 400]) for each in range(chance.randint(0, 4))]
                assert set(write(service, *(each.encode() for each in texts), topic=name, start=number)) <= {
                    AckResponse.ACCEPTED
                }
                number += len(texts)
                held[name] += texts
                got = service.receive(FULL_NAME + name, chance.randint(0, 2), 0.0)
                for each in got:
                    held[name].remove(each.payload.decode())
                say("acknowledging")
                service.acknowledge_all(got, ok=True)
        say("done")


if __name__ == "__main__":
    main()
