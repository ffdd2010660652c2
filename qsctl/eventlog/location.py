"""The location of a run, a sweep or a table: a path on this machine, or a URI of another filesystem.

`location` parses a user's text. A plain path and `file:` become a `pathlib.Path`; `s3:`, `s3a:`, `gs:`, `abfs:`,
`hdfs:` and, where fsspec is installed, its other schemes become a `RemotePath`, which has the part of a path's methods
that the event log and the sweeps use, over `pyarrow.fs`. Credentials, regions and endpoints come from each store's own
environment variables (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on), which Spark's connectors read too.

An object store has no rename: a file is complete when it appears, and replacing one is a copy and a deletion.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from qsctl.errors import InvalidInput, Unavailable, UsageError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")
_NATIVE: Final = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
_SPARK_SCHEME: Final = {"s3": "s3a", "gcs": "gs"}
"""Hadoop's name of a store where it differs from what is written."""


class RemotePath:
    """A file or folder of a remote filesystem, with some methods of `pathlib.Path`."""

    __slots__ = ("_filesystem", "_path", "_root")

    def __init__(self, root: str, path: str, filesystem: Any) -> None:
        """Refer to a file or folder.

        Args:
            root: the URI's part before the path, as in `s3a://` or `hdfs://head:9000`.
            path: the path within the filesystem.
            filesystem: a filesystem of `pyarrow.fs`.
        """
        self._root, self._path, self._filesystem = root, path, filesystem

    def __str__(self) -> str:
        return f"{self._root}{self._path}"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return location, (str(self),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: RemotePath) -> bool:
        return str(self) < str(other)

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(self._root, f"{self._path.rstrip('/')}/{name}", self._filesystem)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self._path).name

    @property
    def parent(self) -> RemotePath:
        """The folder that contains this."""
        return RemotePath(self._root, str(PurePosixPath(self._path).parent), self._filesystem)

    def absolute(self) -> RemotePath:
        """Return this path unchanged, as a URI is absolute."""
        return self

    def resolve(self) -> RemotePath:
        """Return this path unchanged, as a URI is absolute."""
        return self

    def relative_to(self, other: RemotePath) -> PurePosixPath:
        """Return the path relative to a folder above it."""
        return PurePosixPath(self._path).relative_to(other._path)

    def exists(self) -> bool:
        """Return whether the file or folder exists."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Return whether this is a file."""
        return bool(self._info().is_file)

    def is_dir(self) -> bool:
        """Return whether this is a folder; in an object store, whether it contains anything."""
        from pyarrow.fs import FileType

        return bool(self._info().type == FileType.Directory)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Create the folder and its parents."""
        del parents
        if not exist_ok and self.exists():
            raise FileExistsError(f"{self} exists")
        with self._reported():
            self._filesystem.create_dir(self._path, recursive=True)

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the files and folders in this folder."""
        return self._listed(recursive=False)

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield the files and folders below that match a pattern, part by part, sorted."""
        depth = len(PurePosixPath(pattern).parts)
        for each in self._listed(recursive=depth > 1):
            below = each.relative_to(self)
            if len(below.parts) == depth and below.match(pattern):
                yield each

    def rglob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield the files and folders at any depth whose name matches a pattern, sorted."""
        return (each for each in self._listed(recursive=True) if PurePosixPath(each.name).match(pattern))

    def stat(self) -> FileSize:
        """Return the size of the file.

        Raises:
            FileNotFoundError: the file does not exist.
        """
        info = self._info()
        if not info.is_file:
            raise FileNotFoundError(2, "No such file", str(self))
        return FileSize(int(info.size))

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open the file as bytes, for reading, or for writing from the start."""
        with self._reported():
            if mode == "wb":
                return self._filesystem.open_output_stream(self._path)  # type: ignore[no-any-return]
            return self._filesystem.open_input_file(self._path)  # type: ignore[no-any-return]

    def read_bytes(self) -> bytes:
        """Return the content."""
        with self.open() as file:
            return bytes(file.read())

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return the content as text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content: bytes) -> int:
        """Replace the content."""
        with self.open("wb") as file:
            return file.write(content)

    def write_text(self, content: str, encoding: str = "utf-8") -> int:
        """Replace the content by text."""
        return self.write_bytes(content.encode(encoding))

    def touch(self, *, exist_ok: bool = True) -> None:
        """Create an empty file; in an object store two concurrent callers may both succeed even with `exist_ok`
        False.
        """
        if self.is_file():
            if not exist_ok:
                raise FileExistsError(f"{self} exists")
            return
        self.write_bytes(b"")

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the file."""
        if missing_ok and not self.is_file():
            return
        with self._reported():
            self._filesystem.delete_file(self._path)

    def replace(self, target: RemotePath) -> RemotePath:
        """Rename the file, replacing an existing target."""
        with self._reported():
            self._filesystem.move(self._path, target._path)
        return target

    def rename(self, target: RemotePath) -> RemotePath:
        """Rename a folder with its content, file by file where the store has no folders."""
        for each in list(self._listed(recursive=True)):
            if each.is_file():
                each.replace(target / str(each.relative_to(self)))
        self.remove()
        return target

    def remove(self) -> None:
        """Delete the folder with its content; a missing one is not an error."""
        with self._reported():
            if self.is_dir():
                self._filesystem.delete_dir(self._path)

    @property
    def one_at_a_time(self) -> bool:
        """Return whether only one thread at a time may read its files: some fsspec filesystems have a single
        connection.
        """
        return str(self._filesystem.type_name).startswith("py::")

    def for_spark(self) -> str:
        """Return the URI by which Spark reads and writes it."""
        scheme, colon, rest = str(self).partition(":")
        return f"{_SPARK_SCHEME.get(scheme, scheme)}{colon}{rest}"

    def _info(self) -> Any:
        with self._reported():
            return self._filesystem.get_file_info(self._path)

    def _listed(self, *, recursive: bool) -> Iterator[RemotePath]:
        from pyarrow.fs import FileSelector

        with self._reported():
            found = self._filesystem.get_file_info(FileSelector(self._path, allow_not_found=True, recursive=recursive))
        for each in sorted(found, key=lambda info: info.path):
            yield RemotePath(self._root, each.path, self._filesystem)

    def _reported(self) -> _Reported:
        return _Reported(str(self))


@dataclass(frozen=True, slots=True)
class FileSize:
    """The result of `stat` of a remote file."""

    st_size: int


Location: TypeAlias = Path | RemotePath
"""A file or folder, here or elsewhere."""


@dataclass(frozen=True, slots=True)
class _Reported:
    """Converts errors of a store to OSError with a short reason, as for files of this machine."""

    place: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not error.strerror:
            reason = " ".join(str(error).split())[:300]
            raise type(error)(error.errno or 5, reason, self.place) from error


def location(text: str | Location) -> Location:
    """Return the location for a path or URI.

    Raises:
        UsageError: no filesystem has the URI's scheme, or the URI has no bucket or host.
        Unavailable: the library for that filesystem is not installed.
    """
    if not isinstance(text, str):
        return text if isinstance(text, RemotePath) else location(_uri_again(str(text)))
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(text)
    name = scheme[1].lower()
    parts = urlsplit(text)
    if name == "file":
        if parts.netloc not in {"", "localhost"}:
            raise UsageError(f"{text!r} names a file of another host", remedy="Write it as in file:///data/run.")
        return Path(unquote(parts.path))
    if not parts.netloc:
        raise UsageError(f"{text!r} names no bucket or host", remedy=f"Write it as in {name}://bucket/run.")
    return _remote(text, name, parts.netloc, parts.path)


def spark_path(place: Location) -> str:
    """Return the text by which Spark reads or writes a location."""
    return place.for_spark() if isinstance(place, RemotePath) else str(place)


def spark_pattern(place: Location) -> str:
    """Return the text by which Spark reads exactly this location, with `[`, `{` and `*` escaped, which it would
    expand.
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", spark_path(place))


def move(source: Location, target: Location) -> None:
    """Move a file, replacing an existing one, or a folder to a free place; both are in one filesystem."""
    if isinstance(source, RemotePath) and isinstance(target, RemotePath):
        if source.is_dir():
            source.rename(target)
        else:
            source.replace(target)
        return
    assert isinstance(source, Path), f"{source} and {target} are of two filesystems"
    assert isinstance(target, Path), f"{source} and {target} are of two filesystems"
    source.replace(target)


def path_within(folder: Location, place: Location) -> str:
    """Return the path of a location relative to a folder that contains it, with slashes."""
    if isinstance(place, RemotePath) and isinstance(folder, RemotePath):
        return place.relative_to(folder).as_posix()
    assert isinstance(place, Path), f"{place} is not in {folder}"
    assert isinstance(folder, Path), f"{place} is not in {folder}"
    return place.relative_to(folder).as_posix()


def listed(places: Iterable[Location]) -> list[Location]:
    """Return locations sorted by name."""
    return sorted(places, key=str)


def parquet_source(place: Location) -> Any:
    """Return the object from which pyarrow reads a Parquet file."""
    return place.open() if isinstance(place, RemotePath) else place


def parquet_sink(place: Location) -> Any:
    """Return the object to which pyarrow writes a Parquet file; the caller closes it through the writer."""
    return place.open("wb") if isinstance(place, RemotePath) else place


def remove_tree(place: Location) -> None:
    """Delete a folder with its content."""
    if isinstance(place, RemotePath):
        place.remove()
    else:
        shutil.rmtree(place)


def _uri_again(text: str) -> str:
    """Return a URI restored after `pathlib` reduced its two slashes to one."""
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]+):/(?=[^/])", r"\1://", text) if not text.startswith("file:") else text


def _remote(text: str, scheme: str, host: str, path: str) -> RemotePath:
    written = text.partition("://")[0]
    if scheme in {"s3", "s3a", "s3n"}:
        return RemotePath(f"{written}://", f"{host}{path}", _s3())
    try:
        from pyarrow import ArrowException
        from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

        if scheme in _NATIVE:
            filesystem, inside = FileSystem.from_uri(text)
            root = f"{written}://" if inside.startswith(host) else f"{written}://{host}"
            return RemotePath(root, inside, filesystem)
        import fsspec  # type: ignore[import-not-found]

        opened, inside = fsspec.core.url_to_fs(text)
        return RemotePath(text.removesuffix(inside), inside, PyFileSystem(FSSpecHandler(opened)))
    except ImportError as error:
        raise Unavailable(
            f"{text}: no library for {scheme}: is installed ({error})",
            remedy=f"Use s3a:, gs:, abfs: or hdfs:, or install fsspec with its package for {scheme}:.",
        ) from None
    except ValueError as error:
        raise UsageError(f"{text}: {error}", remedy="Use file:, s3a:, gs:, abfs: or hdfs:.") from None
    except (OSError, ArrowException) as error:
        reason = " ".join(str(error).split())[:300]
        raise InvalidInput(
            f"{text} cannot be reached: {reason}", remedy="Check the address and the store's environment variables."
        ) from None


def _s3() -> Any:
    """Return a client of S3, or of the S3-compatible store that AWS_ENDPOINT_URL names."""
    from pyarrow.fs import S3FileSystem

    options: dict[str, Any] = {}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint:
        parts = urlsplit(endpoint)
        options = {"endpoint_override": parts.netloc, "scheme": parts.scheme or "https"}
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region or endpoint:
        options["region"] = region or "us-east-1"
    return S3FileSystem(connect_timeout=5, request_timeout=10, allow_bucket_creation=False, **options)
