"""What an endpoint says of itself in discovery: user data, partitions and the property of section 2.5, all octets.

The parts are separated by an octet 0x1f: partition, property, user data; the rest of them are further partitions.
"""

from __future__ import annotations

from types import SimpleNamespace

from qsctl.core.client.consumer import UNACKED_THRESHOLD_MAX
from qsctl.identity import GUID_SIZE_BYTES
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.peers.announcements import Announcement
from qsctl.transport.dds.peers.discovery import Changes, endpoint_of
from qsctl.transport.dds.peers.matches import Matches, ReappearedPeers

DICTIONARY = (b"qsctl;", b"role=consumer", b"role=queue", b"guid=", b"source=", b"threshold=", b"subscriber=", b"\x1f")


def one_input(data: bytes) -> None:
    partition, shared_subscriber, user_data, *others = (*data.split(b"\x1f"), b"", b"")[: max(3, data.count(b"\x1f"))]
    said = Announcement(
        b"k" * GUID_SIZE_BYTES,
        "Orders@S",
        (partition, *others),
        user_data,
        shared_subscriber or None,
        SimpleNamespace(instance_handle=1),
    )
    for is_writer in (True, False):
        try:
            endpoint = endpoint_of(said, is_writer)
        except Malformed as error:
            assert len(str(error)) < 1000
            continue
        assert len(endpoint.guid) == len(endpoint.source_guid) == GUID_SIZE_BYTES
        assert endpoint.unacked_threshold is None or 0 <= endpoint.unacked_threshold <= UNACKED_THRESHOLD_MAX
        matches, reappeared = Matches(), ReappearedPeers(lambda each: each.is_writer)
        for changes in (
            Changes(appeared=(endpoint,)),
            Changes(vanished=(endpoint,)),
            Changes((endpoint,), (endpoint,)),
        ):
            matches.look(changes, key="topic", value="Orders")
            matches.look(changes, key="", value="Orders@S")
            matches.newly({endpoint.participant})
            matches.matched()
            reappeared.look(changes)
