"""Make the directories beside this file by the code of an earlier commit.

The command: `python -m tests.storage.earlier_formats.make CHECKOUT DESTINATION`.

`c9b5695` is of the last commit before state directories were noted without their path, `04abe5f` of the last one before
incarnations were recorded. CHECKOUT is a worktree of that commit; the interpreter has the packages that it needs.
What is in DESTINATION then:

- `created`: a state directory without a configuration, whose queues were created by commands;
- `configured`: one of `embedded:service.xml`, with one queue more that was created;
- `served`: the files of `serve service.xml`, which was killed; one queue was created;
- `replicated`: the files of one of the two instances of `serve replicated.xml`, of which both were killed.

The state directories were made in HOME, which the files of `c9b5695` note. The reserve is left out: it is 512 KiB of
zeros. A state directory is read only by tests that copy it first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.processes import running

HERE = Path(__file__).resolve().parent
HOME = Path("/tmp/qsctl-home")
DOMAIN = "90"


def run(checkout: Path, *arguments: str, status: int = 0) -> str:
    done = subprocess.run(
        command(checkout, *arguments), env=environment(checkout), cwd=HOME, capture_output=True, text=True
    )
    if done.returncode != status:
        raise SystemExit(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def command(checkout: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from qsctl.__main__ import main; sys.exit(main())", *arguments]


def environment(checkout: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(checkout), "PYTHONSAFEPATH": "1", "QSCTL_CONTEXT": ""}


def fill(checkout: Path, where: tuple[str, ...], queue: str) -> None:
    """Leave three samples: one that was delivered and not acknowledged, two that were not; and reject one before."""
    for text in ("refused", "held", "second", "third"):
        run(checkout, "produce", queue, "--text", f"{text} of {queue}", *where)
    run(checkout, "consume", queue, "--reject", *where)


def create(checkout: Path, where: tuple[str, ...], *arguments: str) -> None:
    run(checkout, "create-queue", *arguments, "--type", "DDS::String", *where)


def in_database(name: str) -> str:
    return (
        f'<shared_reader_queue name="{name}" session="Session" dead_letter_queue="Letters">'
        f"<topic_name>{name}</topic_name>"
        "<type_name>DDS::String</type_name><queue_qos><persistence><kind>PERSISTENT</kind>"
        "<in_memory_state>false</in_memory_state></persistence></queue_qos></shared_reader_queue>"
    )


def make_created(checkout: Path) -> Path:
    directory = HOME / "created"
    where = ("--state-dir", str(directory))
    run(checkout, "create-queue", "Letters", "--as-dead-letter", "--persistent", *where)
    create(checkout, where, "InLog", "--persistent", "--dead-letter", "Letters")
    run(checkout, "create-queue", "--xml", in_database("InDatabase"), *where)
    create(checkout, where, "Volatile")
    for queue in ("InLog", "InDatabase", "Volatile"):
        fill(checkout, where, queue)
        run(checkout, "consume", queue, "--no-ack", *where)
    return directory


def make_configured(checkout: Path) -> Path:
    directory = HOME / "configured"
    where = ("--state-dir", str(directory), "--service", "embedded:service.xml")
    for queue in ("InLog", "InDatabase", "Volatile"):
        fill(checkout, where, queue)
    create(checkout, where, "Created", "--persistent")
    fill(checkout, where, "Created")
    return directory


@contextmanager
def served(checkout: Path, file: str, *directories: Path) -> Iterator[None]:
    """Run a service in each directory, named by it, and kill them."""
    with ExitStack() as services:
        for directory in directories:
            directory.mkdir(parents=True)
            arguments = ["serve", file, "--domain-id-base", DOMAIN, "--app-name", f"Kept_{directory.name}"]
            arguments += ["--persistent-storage-path", str(directory)]
            services.enter_context(running(command(checkout, *arguments), env=environment(checkout), cwd=HOME))
        time.sleep(8)
        yield


def make_served(checkout: Path) -> Path:
    directory = HOME / "served"
    where = ("--service", f"dds:{DOMAIN}", "--timeout", "20s")
    with served(checkout, "service.xml", directory):
        create(checkout, where, "Created", "--persistent")
        for queue in ("InLog", "InDatabase", "Created"):
            fill(checkout, where, queue)
        run(checkout, "consume", "InLog", "--no-ack", *where)
    return directory


def make_replicated(checkout: Path) -> Path:
    directory, other = HOME / "replicated", HOME / "other"
    where = ("--service", f"dds:{DOMAIN}", "--timeout", "20s")
    with served(checkout, "replicated.xml", directory, other):
        for text in ("first", "second", "third"):
            run(checkout, "produce", "Replicated", "--text", f"{text} of Replicated", *where)
        run(checkout, "consume", "Replicated", *where)
    shutil.rmtree(other)
    return directory


def main() -> None:
    checkout, destination = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    HOME.mkdir(mode=0o700)
    for file in ("service.xml", "replicated.xml"):
        shutil.copy(HERE / file, HOME)
    for make in (make_created, make_configured, make_served, make_replicated):
        directory = make(checkout)
        for each in [*directory.rglob("*.reserve"), *directory.rglob("lock"), *directory.rglob("*.lock")]:
            each.unlink()
        shutil.copytree(directory, destination / directory.name)
    shutil.rmtree(HOME)


if __name__ == "__main__":
    main()
