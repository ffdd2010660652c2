"""Files that a command writes: on request, overwritten only with `--force`, or replaced in one step."""

from __future__ import annotations

from pathlib import Path

from qsctl.errors import UsageError


def written(text: str, out: Path | str | None, *, force: bool) -> str:
    """Write a text to a file or to standard output; return the file's name, empty for standard output.

    Raises:
        UsageError: the file exists already, or cannot be written.
    """
    if out is None or str(out) == "-":
        return ""
    try:
        with Path(out).open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(f"{out} exists already", remedy="Choose another name, or overwrite it with --force.") from None
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from None
    return str(out)


def replace_text(file: Path, text: str) -> None:
    """Write a file in one step, for readers that run as another user; one that exists is replaced.

    Raises:
        UsageError: the file cannot be written.
    """
    from qsctl.endings import TemporaryFile

    try:
        with TemporaryFile(file) as temporary:
            temporary.write_text(text, encoding="utf-8")
            temporary.chmod(0o644)
            temporary.rename(file)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be written: {error.strerror}", remedy="Name a file in a folder of yours."
        ) from None
