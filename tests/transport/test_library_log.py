"""Lines of Cyclone DDS itself: what differs from datagram to datagram is left out, so that a kind is one line."""

from __future__ import annotations

from qsctl.transport.dds.boundary import Boundary
from qsctl.transport.dds.diagnosis.library_log import LibraryLog
from qsctl.transport.dds.diagnosis.peer_faults import PeerFault

LINES = [
    b"1.5 [7] recv: malformed packet received from vendor 1.16 length 187 state parse:DATA <52545053 02050110 @48> (",
    b"1.6 [7] recv: malformed packet received from vendor 1.16 length 99 state parse:DATA <52545053 02ff0110 @5> (no",
    b'1.7 [7] recv: invalid parameter list (vendor 1.16, version 2.5): pid 62 (ENTITY_NAME) invalid, input = 8,"Test"',
    b"1.8 [7] recv: invalid parameter list (vendor 1.16, version 2.5): pid 62 (ENTITY_NAME) invalid, input = 9,0,0,1",
    b"1.8 [7] recv: invalid parameter list (vendor 1.15, version 2): pid 75 (TYPE_INFORMATION) invalid, input = 0,1",
    b"1.9 [7] recv: something else <52545053 02050110 00aa>",
]


def test_octets_of_datagrams_are_left_out_and_each_kind_is_counted() -> None:
    faults: list[PeerFault] = []
    boundary = Boundary(faults.append)
    log = LibraryLog()
    log.listen(7, boundary)
    log._report(LINES)
    boundary.close()
    found: dict[str, int] = {}
    for fault in faults:
        found[fault.reason] = found.get(fault.reason, 0) + fault.count
    (unseen,) = [reason for reason in found if "generate its types without -typeobject" in reason]
    assert found.pop(unseen) == 1
    assert found == {
        "malformed packet received from vendor 1.16, at parse:DATA": 2,
        "invalid parameter list (vendor 1.16, version 2.5): pid 62 (ENTITY_NAME) invalid": 2,
        "something else": 1,
    }
