"""Checks of a Spark master, so that an invalid or unreachable one is refused before Spark waits for it.

Spark itself tries a silent standalone master for a minute and a half and a silent Connect server for ten, and a cluster
without a configuration ends in a stack trace.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from qsctl.errors import NoAnswer, Unavailable, UsageError
from qsctl.identity import decimal_from_text

ANSWER_SECONDS: Final = 5.0
"""Timeout in seconds for connecting to an address, and again for its answer."""

CONNECT_PORT: Final = 15002
_CONNECT_MODULES: Final = ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas")
_RESOURCE_MANAGER_PORT: Final = 8032
_PORT_MAX: Final = 65535
_CORES_MAX: Final = 1_000_000
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})
_MASTER: Final = re.compile(
    r"local(\[(\d+|\*)(,\s*\d+)?\])?|local-cluster\[[\d,\s]+\]|spark://.+|yarn|k8s://.+|sc://.+"
)
_REMEDY: Final = (
    "Write local[*], local[4], spark://host:7077, yarn, k8s://https://host:port or sc://host:15002 (Spark Connect)."
)

_SPARK_REQUEST: Final = b"\x00\x00\x00\x00\x00\x00\x00\x19" + b"\x06" + b"\x00\x00\x00\x0c/files/qsctl"
"""A request of Spark's own protocol for a file that does not exist, which any Spark answers without logging it."""

_HTTP2_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
"""The preface of HTTP/2 with empty settings, which a gRPC server answers with its own, and a TLS server with an
alert.
"""

_HTTP_REQUEST: Final = b"GET /version HTTP/1.0\r\n\r\n"


def check_master(master: str, environment: Mapping[str, str] | None = None) -> None:
    """Check the syntax of a master, and probe its address if it has one.

    Args:
        master: the value of `--master`.
        environment: has the configuration of YARN; None: the variables of this process.

    Raises:
        UsageError: it is not a master, or YARN has no configuration.
        NoAnswer: no process listens at its address, or it does not answer.
        Unavailable: Spark Connect's packages are not installed.
    """
    environment = os.environ if environment is None else environment
    if not _MASTER.fullmatch(master):
        raise UsageError(f"{master!r} is not a Spark master", remedy=_REMEDY)
    if master.startswith("spark://"):
        _check_standalone(master)
    elif is_remote(master):
        _check_connect(master)
    elif master == "yarn":
        _check_yarn(environment)
    elif master.startswith("k8s://"):
        place = urlsplit(master.removeprefix("k8s://"))
        host, port = _host_and_port(master, place.netloc or place.path, 80 if place.scheme == "http" else 443)
        _probe(master, [(host, port)], _HTTP_REQUEST)


def is_remote(master: str) -> bool:
    """Return whether a master is a Spark Connect server, so that this process needs no Java."""
    return master.startswith("sc://")


def is_local(master: str) -> bool:
    """Return whether the master runs tasks on this machine alone."""
    return master.startswith("local")


def computes_here(master: str) -> bool:
    """Return whether tasks run in the Java virtual machine of the driver, instead of executors."""
    return is_local(master) and not master.startswith("local-cluster")


def is_loopback(master: str) -> bool:
    """Return whether a standalone master has an address of this machine."""
    return master.startswith("spark://") and master.removeprefix("spark://").rpartition(":")[0] in _LOOPBACK


def cores_of(master: str) -> int:
    """Return the number of tasks that a local master runs at once."""
    inside = master.partition("[")[2].rstrip("]").split(",")[0]
    cores = decimal_from_text(inside, _CORES_MAX)
    if cores is not None:
        return cores
    return (os.cpu_count() or 1) if inside == "*" else 1


def _check_standalone(master: str) -> None:
    places = master.removeprefix("spark://").split(",")
    _probe(master, [_host_and_port(master, place, None) for place in places], _SPARK_REQUEST)


def _check_connect(master: str) -> None:
    missing = [name for name in _CONNECT_MODULES if not _importable(name)]
    if missing:
        raise Unavailable(
            f"Spark Connect ({master}) needs packages that are not installed: {', '.join(missing)}",
            remedy="pip install 'qsctl[connect]'",
        )
    place = master.removeprefix("sc://").partition("/")[0]
    _probe(master, [_host_and_port(master, place, CONNECT_PORT)], _HTTP2_PREFACE)


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _check_yarn(environment: Mapping[str, str]) -> None:
    named = [name for name in ("YARN_CONF_DIR", "HADOOP_CONF_DIR") if environment.get(name)]
    remedy = "Set HADOOP_CONF_DIR to the folder that holds the cluster's yarn-site.xml and core-site.xml."
    if not named:
        raise UsageError("--master yarn has no configuration: HADOOP_CONF_DIR is not set", remedy=remedy)
    files = [Path(environment[name]) / "yarn-site.xml" for name in named]
    file = next((each for each in files if each.is_file()), None)
    if file is None:
        listed = ", ".join(f"{name}={environment[name]}" for name in named)
        raise UsageError(f"--master yarn has no configuration: there is no yarn-site.xml in {listed}", remedy=remedy)
    address = _resource_manager(file)
    if address is None or address.startswith("0.0.0.0"):
        raise UsageError(
            f"{file} does not name the resource manager: it has no yarn.resourcemanager.hostname",
            remedy="Add that property, or use the cluster's own yarn-site.xml.",
        )
    if address:
        # Hadoop's client would try for a quarter of an hour. Its protocol has no harmless request: only connect.
        _probe("yarn", [_host_and_port("yarn", address, _RESOURCE_MANAGER_PORT)], b"")


def _resource_manager(file: Path) -> str | None:
    """Return the address in a `yarn-site.xml`; None if it has none, empty if it contains a variable or is one of
    several.
    """
    from lxml import etree

    try:
        root = etree.parse(file, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)).getroot()
    except (OSError, etree.XMLSyntaxError) as error:
        raise UsageError(f"{file} cannot be read: {error}", remedy="Repair it, or name another folder.") from None
    values = {
        (each.findtext("name") or "").strip(): (each.findtext("value") or "").strip() for each in root.iter("property")
    }
    if "yarn.resourcemanager.ha.rm-ids" in values:
        return ""
    address = values.get("yarn.resourcemanager.address") or values.get("yarn.resourcemanager.hostname")
    return "" if address is not None and "${" in address else address


def _host_and_port(master: str, place: str, default: int | None) -> tuple[str, int]:
    host, colon, port = place.rpartition(":")
    if not colon or (place.startswith("[") and place.endswith("]")):
        host, port = place, "" if default is None else str(default)
    number = decimal_from_text(port, _PORT_MAX)
    if not host or number is None:
        raise UsageError(f"{master!r} is not a Spark master", remedy=_REMEDY)
    return host.strip("[]"), number


def _probe(master: str, places: list[tuple[str, int]], request: bytes) -> None:
    """Check that one of the addresses accepts a connection and answers the request, if there is one, or closes it."""
    silent = False
    for place in places:
        try:
            with socket.create_connection(place, timeout=ANSWER_SECONDS) as connection:
                if not request:
                    return
                connection.settimeout(ANSWER_SECONDS)
                with contextlib.suppress(ConnectionError):
                    connection.sendall(request)
                    connection.recv(1)
                return
        except TimeoutError:
            silent = True
        except OSError:
            continue
    if silent:
        raise NoAnswer(
            f"{master} does not answer within {ANSWER_SECONDS:g} s",
            remedy="Check the address, and that the master is not stuck; --master local[*] needs none.",
        )
    raise NoAnswer(
        f"nothing listens at {master}", remedy="Start the master, or use --master local[*], which needs none."
    )
