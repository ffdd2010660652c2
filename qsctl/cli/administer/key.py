"""`qsctl key`: files with the secret keys that sign administration commands and replication messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.results import Block, Column, ListResult, Row, TableBlock, TextBlock
from qsctl.cli.panels import SERVICE_PANEL

if TYPE_CHECKING:
    from qsctl.config.signing_keys import SigningKey

COMMANDS: Final = Commands(
    panel=SERVICE_PANEL,
    group="key",
    help="Make and change the keys that sign administration commands and replication messages.",
)

FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="Key file; only its owner may have access to it.", show_default=False),
]


@dataclass(frozen=True)
class KeyList(ListResult):
    """The keys of a file by their numbers, without their octets."""

    file: str
    numbers: tuple[str, ...]
    text: str = ""

    field_help: ClassVar[Mapping[str, str]] = {
        "number": "number that the key is known by in messages; it is drawn from the key, which it does not reveal",
        "signs": "whether clients sign with this key: it is the newest; members of a cluster sign with each",
        "accepted": "whether services accept commands that are signed with it",
    }

    def rows(self) -> Sequence[Row]:
        """Return a row for each key, newest first."""
        return [{"number": each, "signs": not at, "accepted": True} for at, each in enumerate(self.numbers)]

    def blocks(self) -> list[Block]:
        """Return a sentence with what was done, and a table."""
        columns = [Column("number", "Key"), Column("signs", "Signs"), Column("accepted", "Accepted")]
        done: list[Block] = [TextBlock(self.text, "good")] if self.text else []
        return [*done, TableBlock(columns, self.rows())]


@COMMANDS.command("create", examples=("qsctl key create /etc/qsctl/admin.key",))
def create(file: FileArgument) -> KeyList:
    """Make a file with a new key.

    For commands, name it in <administration><key_file> of the service, and with --key-file, or in a context, at the
    clients. For a cluster, give each of its members the same file with `qsctl serve --cluster-key`.
    """
    from qsctl.config.signing_keys import create_keys

    return _listed(file, create_keys(file), f"{file} holds a new key")


@COMMANDS.command("rotate", examples=("qsctl key rotate /etc/qsctl/admin.key",))
def rotate(file: FileArgument) -> KeyList:
    """Put a new key into a file, and keep the former one beside it.

    Do it where the service runs, and send the service SIGHUP: it accepts both. Then copy the file to the clients, which
    sign with the new one; the file of a cluster to each member, with a SIGHUP. End with `qsctl key retire`.
    """
    from qsctl.config.signing_keys import rotate_keys

    return _listed(file, rotate_keys(file), f"{file} holds a new key and the former one")


@COMMANDS.command("retire", examples=("qsctl key retire /etc/qsctl/admin.key",))
def retire(file: FileArgument) -> KeyList:
    """Remove all keys but the newest from a file. After a SIGHUP a service accepts that one alone."""
    from qsctl.config.signing_keys import retire_keys

    return _listed(file, retire_keys(file), f"{file} holds its newest key only")


@COMMANDS.command("list", examples=("qsctl key list /etc/qsctl/admin.key",))
def list_keys(file: FileArgument) -> KeyList:
    """List the numbers of the keys in a file, by which error messages of clients and services name them."""
    from qsctl.config.signing_keys import read_keys

    return _listed(file, read_keys(file))


def _listed(file: Path, keys: Sequence[SigningKey], text: str = "") -> KeyList:
    return KeyList(str(file), tuple(map(str, keys)), text)
