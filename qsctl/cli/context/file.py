"""The user's configuration file: contexts by name, and the name of the one in use.

Decides its place (XDG base directories), its permitted content, and how it is written: atomically, readable by its
owner alone. A context is a set of options of a service; for an option that neither the command line nor the environment
gives, the value of the context in use applies. A context may also have a broker's address and credentials, which apply
if a command names the context with --broker. A password or a token is used only while the owner alone may read the
file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from qsctl.broker.access import Secret
from qsctl.errors import InvalidInput, NotFound, Refused

OPTIONS: Final = ("service", "state_dir", "timeout", "target", "key_file")
"""The options of a service that a context may have, by their names on the command line with underscores."""

BROKER: Final = ("broker", "broker_username", "broker_ca_file")
"""Settings of a broker in a context that may be printed."""
SECRETS: Final = ("broker_password", "broker_token")
"""Settings of a broker in a context that are never printed."""

_IN_USE: Final = "context"
_CONTEXTS: Final = "contexts"


@dataclass(frozen=True)
class Context:
    """A named service: the options by which it is reached, and those of a broker."""

    name: str
    options: Mapping[str, str]
    broker: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(f'{key} {value}' for key, value in self.options.items())})"


@dataclass
class Contexts:
    """The content of the file; `in_use` is empty where no context is in use."""

    in_use: str = ""
    by_name: dict[str, Context] = field(default_factory=dict)

    def named(self, name: str) -> Context:
        """Return the context of a name.

        Raises:
            NotFound: there is no context of that name.
        """
        found = self.by_name.get(name)
        if found is None:
            known = ", ".join(self.by_name) or "none yet"
            raise NotFound(
                f"there is no context {name!r} in {configuration_file()}",
                remedy=f"There is: {known}. `qsctl context add` makes one.",
            )
        return found


_BYTES_MAX: Final = 1024 * 1024
_NAME_A_FILE: Final = "Name a file that you may read with QSCTL_CONFIG, or unset it to use the one in ~/.config."


def configuration_file() -> Path:
    """Return the file's path: QSCTL_CONFIG, else `qsctl/config.toml` in XDG_CONFIG_HOME, by default ~/.config."""
    if given := os.environ.get("QSCTL_CONFIG"):
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "qsctl" / "config.toml"


def read_contexts() -> Contexts:
    """Return the content of the file; empty if it does not exist.

    Raises:
        InvalidInput: the file is not valid; names the place, the found and the allowed values.
    """
    path = configuration_file()
    try:
        if path.is_fifo():
            raise InvalidInput(f"{path} cannot be read: it is a pipe", remedy=_NAME_A_FILE)
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}", remedy=_NAME_A_FILE) from None
    if len(data) > _BYTES_MAX:
        raise InvalidInput(
            f"{path} has more than {_BYTES_MAX} octets", remedy="Move it away, and add the contexts again."
        )
    import tomllib

    try:
        return _checked(path, tomllib.loads(data.decode()))
    except (ValueError, RecursionError) as error:  # no TOML, not UTF-8, a number of too many digits, nested too deeply
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise InvalidInput(
            f"{path} cannot be read: {reason}", remedy="Mend it, or move it away and add the contexts again."
        ) from None


@contextmanager
def changed_contexts() -> Iterator[Contexts]:
    """Yield the content of the file, and write it back with its changes, under a lock for other commands.

    Raises:
        InvalidInput: the existing file is not valid.
    """
    import filelock

    path = configuration_file()
    read_contexts()  # before anything is made beside what cannot be the file
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with filelock.FileLock(path.with_name(f"{path.name}.lock"), mode=0o600):
        contexts = read_contexts()
        yield contexts
        temporary = path.with_name(f"{path.name}.tmp")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(_text(contexts))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)


def check_that_secrets_are_kept() -> None:
    """Refuse to use a password or a token that other users may read.

    Raises:
        Refused: other users may read the file.
    """
    path = configuration_file()
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise Refused(
            f"{path} has the mode {mode:03o} and a password or token in it, which others may read",
            remedy=f"Make it yours alone: chmod 600 {path}.",
        )


def _checked(path: Path, found: Mapping[str, Any]) -> Contexts:
    _known(path, "the file", found, (_IN_USE, _CONTEXTS))
    tables = _typed(path, _CONTEXTS, found.get(_CONTEXTS, {}), dict, "a table")
    contexts = Contexts(_typed(path, _IN_USE, found.get(_IN_USE, ""), str, "a text"))
    for name, table in tables.items():
        place = f"[{_CONTEXTS}.{name}]"
        options = _typed(path, place, table, dict, "a table")
        _known(path, place, options, (*OPTIONS, *BROKER, *SECRETS))
        for key, value in options.items():
            _typed(path, f"{place} {key}", value, str, "a text", is_secret=key in SECRETS)
        contexts.by_name[name] = Context(
            name,
            {key: options[key] for key in OPTIONS if key in options},
            {key: options[key] for key in BROKER if key in options},
            {key: Secret(options[key]) for key in SECRETS if key in options},
        )
    if contexts.in_use and contexts.in_use not in contexts.by_name:
        known = ", ".join(contexts.by_name) or "none"
        raise _wrong(path, f"{_IN_USE} is {contexts.in_use!r}, which is not a context", f"one of: {known}")
    return contexts


def _known(path: Path, place: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in found:
        if key not in known:
            raise _wrong(path, f"{place} has {key!r}", ", ".join(known))


def _typed(path: Path, place: str, value: Any, kind: Callable[..., Any], name: str, *, is_secret: bool = False) -> Any:
    if type(value) is not kind:
        raise _wrong(path, f"{place} is {'of another kind' if is_secret else repr(value)}", name)
    return value


def _wrong(path: Path, what: str, allowed: str) -> InvalidInput:
    return InvalidInput(f"{path}: {what}", remedy=f"Allowed: {allowed}.")


def _text(contexts: Contexts) -> str:
    """Return the file's text in TOML, whose basic strings are those of JSON."""
    lines = [f"{_IN_USE} = {json.dumps(contexts.in_use)}"] if contexts.in_use else []
    for context in contexts.by_name.values():
        lines += ["", f"[{_CONTEXTS}.{json.dumps(context.name)}]"]
        values = {**context.options, **context.broker, **{key: each.reveal() for key, each in context.secrets.items()}}
        lines += [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return "\n".join(lines).lstrip("\n") + "\n"
