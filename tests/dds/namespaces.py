"""Network namespaces on one bridge, as hosts of a network: with a link each that can be cut."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.processes import run


def ip(*words: str) -> None:
    """Run `ip`, which has to succeed."""
    done = run(["ip", *words])
    assert done.returncode == 0, done.stderr


@contextmanager
def bridged(addresses: Mapping[str, str], device_of: Callable[[str], str]) -> Iterator[str]:
    """Yield a tag: NAME is the namespace `<tag>NAME`, and `v<NAME>` its link in that of the bridge, `<tag>hub`.

    Args:
        addresses: of each name, in one network of 24 bits.
        device_of: the name of its device, in its own namespace.
    """
    tag = f"q{os.getpid() % 10_000}"
    hub = f"{tag}hub"
    try:
        ip("netns", "add", hub)
        ip("-n", hub, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        ip("-n", hub, "link", "set", "br0", "up")
        for name, address in addresses.items():
            inside, link, device = f"{tag}{name}", f"v{name}", device_of(name)
            ip("netns", "add", inside)
            ip("-n", hub, "link", "add", link, "type", "veth", "peer", "name", device, "netns", inside)
            ip("-n", hub, "link", "set", link, "master", "br0", "up")
            ip("-n", inside, "link", "set", "lo", "up")
            ip("-n", inside, "addr", "add", f"{address}/24", "dev", device)
            ip("-n", inside, "link", "set", device, "up")
        yield tag
    finally:
        for each in (hub, *(f"{tag}{name}" for name in addresses)):
            run(["ip", "netns", "del", each])
