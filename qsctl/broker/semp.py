"""A client of a Solace broker's SEMP: collections of SEMP v2, page by page, and `show` requests of SEMP v1.

SEMP v2 monitoring has no figures of single priority queues, and no windows of connections: for these the `show`
requests of SEMP v1 are sent, to the same port. Only `change_profile` and `create_profile` change the broker: they
change client profiles.

Decides which collections are read, and when paging ends. Every page is read from the same collection at the same
origin: where the link to the next page names another origin, as behind a proxy, its cursor is used with our address.

Source: SEMP v2 monitoring and configuration reference; "SEMP Features", "Paging"; "Legacy SEMP".
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from qsctl.broker.access import origin_of
from qsctl.broker.client import HttpClient
from qsctl.config.files.document import DocumentLimits, parse_document
from qsctl.declared.problems import InvalidFile, shown
from qsctl.errors import InvalidInput, NotFound, Refused
from qsctl.profiles.formats import semp_v2 as profile_format
from qsctl.profiles.formats.draft import Drafts
from qsctl.profiles.formats.file import ProfileFile
from qsctl.profiles.formats.kinds import Format
from qsctl.profiles.listings.model import Listings
from qsctl.profiles.listings.semp import LIMITS, read_semp
from qsctl.profiles.listings.semp_v2 import MonitoringReplies

if TYPE_CHECKING:
    from lxml.etree import _Element

_MONITOR: Final = "/SEMP/v2/monitor"
_CONFIG: Final = "/SEMP/v2/config"
_V1: Final = "/SEMP"
PAGE_OBJECTS: Final = 100
"""Largest number of objects in a page that a broker returns."""
PAGES_MAX: Final = 1000
"""Largest number of pages of one collection: a hundred thousand objects."""
_CURSOR_CHARACTERS_MAX: Final = 8192

CLIENTS: Final = "clients"
QUEUES: Final = "queues"
TOPIC_ENDPOINTS: Final = "topicEndpoints"


class SempBroker:
    """A broker, or one message VPN of it.

    Args:
        client: HTTP client of the broker.
        message_vpn: the only message VPN that is read; empty: every one that the user may see.
    """

    def __init__(self, client: HttpClient, message_vpn: str = "") -> None:
        self._client = client
        self._message_vpn = message_vpn
        self.name = str(client.address)

    def begin(self) -> None:
        """Restart the limits on all requests, before the broker is read again."""
        self._client.begin()

    def message_vpns(self) -> tuple[str, ...]:
        """Return the names of the message VPNs.

        Raises:
            NotFound: the user may see none.
        """
        if self._message_vpn:
            return (self._message_vpn,)
        names = tuple(
            name
            for each in self._collection(f"{_MONITOR}/msgVpns", "select=msgVpnName")
            if isinstance(name := each.get("msgVpnName"), str)
        )
        if not names:
            raise NotFound(f"{self.name} has no message VPN that this user may see", remedy="Use another user.")
        return names

    def listings(self, *collections: str) -> Listings:
        """Return the objects that SEMP v2 monitoring lists in the given collections of each message VPN, and the VPNs
        too.
        """
        replies = MonitoringReplies(self.name)
        replies.add(self._message_vpn_objects())
        for vpn in self.message_vpns():
            for collection in collections:
                replies.add(list(self._collection(f"{_MONITOR}/msgVpns/{_quoted(vpn)}/{collection}")))
        return replies.listings()

    def client_queues(self, name: str = "*") -> Listings:
        """Return the priority queues of clients whose name matches the pattern.

        The reply is that of `show client NAME stats queues` over SEMP v1.
        """
        return self._show_client(name, "<stats/><queues/>")

    def connections(self, name: str = "*") -> Listings:
        """Return the connections of clients whose name matches the pattern, as `show client NAME connections wide` of
        SEMP v1.
        """
        return self._show_client(name, "<connections/><wide/>")

    def flows(self, clients: Iterable[tuple[str, str]]) -> Listings:
        """Return the flows of guaranteed messages to clients, given as (message VPN, client name) pairs.

        A client that has disconnected contributes none.
        """
        replies = MonitoringReplies(self.name)
        for vpn, name in clients:
            try:
                replies.add(
                    list(self._collection(f"{_MONITOR}/msgVpns/{_quoted(vpn)}/clients/{_quoted(name)}/txFlows"))
                )
            except (NotFound, Refused):
                continue
        return replies.listings()

    def statistics(self) -> Listings:
        """Return the broker-wide discards by cause, as `show stats client` of SEMP v1."""
        return self._show("<stats><client/></stats>")

    def profiles(self, message_vpn: str = "") -> ProfileFile:
        """Return every client profile of one message VPN, or of all if none is given.

        Raises:
            InvalidFile: a profile cannot be read.
        """
        drafts = Drafts(self.name, is_written_by_hand=False)
        for vpn in (message_vpn,) if message_vpn else self.message_vpns():
            for page in self._pages(f"{_CONFIG}/msgVpns/{_quoted(vpn)}/clientProfiles"):
                profile_format.read(json.dumps({"data": page["data"]}), drafts)
        return ProfileFile(self.name, Format.SEMP_V2, drafts.finish(may_be_empty=True), tuple(drafts.problems.problems))

    def change_profile(self, message_vpn: str, name: str, attributes: Mapping[str, object]) -> None:
        """Set attributes of a client profile; its other attributes keep their values.

        Raises:
            NoAnswer: no reply arrived; whether the change was made is not known.
            Refused, NotFound: the broker refused.
        """
        target = f"{_CONFIG}/msgVpns/{_quoted(message_vpn)}/clientProfiles/{_quoted(name)}"
        self._client.change("PATCH", target, _json(attributes), "application/json")

    def create_profile(self, message_vpn: str, name: str, attributes: Mapping[str, object]) -> None:
        """Create a client profile with these attributes and defaults for the others; raises as `change_profile`."""
        target = f"{_CONFIG}/msgVpns/{_quoted(message_vpn)}/clientProfiles"
        self._client.change("POST", target, _json({"clientProfileName": name, **attributes}), "application/json")

    def _message_vpn_objects(self) -> list[Mapping[str, Any]]:
        if self._message_vpn:
            (page,) = self._pages(f"{_MONITOR}/msgVpns/{_quoted(self._message_vpn)}", "", is_collection=False)
            return [each for each in (page.get("data"),) if isinstance(each, dict)]
        return list(self._collection(f"{_MONITOR}/msgVpns"))

    def _collection(self, target: str, query: str = "") -> Iterator[Mapping[str, Any]]:
        """Yield the objects of a collection."""
        for page in self._pages(target, query):
            yield from (each for each in page["data"] if isinstance(each, dict))

    def _pages(self, target: str, query: str = "", *, is_collection: bool = True) -> Iterator[dict[str, Any]]:
        """Yield the pages of a collection; `data` of each is a list.

        Raises:
            InvalidInput: a page is not a reply of SEMP v2, or the paging does not end.
        """
        count = f"count={PAGE_OBJECTS}" if is_collection else ""
        query = "&".join(part for part in (count, query) if part)
        where = f"{self.name}{target}"
        seen = set()
        for _ in range(PAGES_MAX):
            page = _document(self._client.get(f"{target}?{query}" if query else target), where)
            if is_collection and not isinstance(page.setdefault("data", []), list):
                raise InvalidInput(f"{where}: `data` of the reply is not a list", remedy=_NOT_SEMP)
            yield page
            following = self._following(page, target, query, where)
            if not following:
                return
            if following in seen:
                raise InvalidInput(f"{where}: a page names an earlier page as the next one", remedy=_NOT_SEMP)
            seen.add(following)
            query = following
        raise InvalidInput(f"{where}: more than {PAGES_MAX:,} pages", remedy="Ask for less, as with --message-vpn.")

    def _following(self, page: Mapping[str, Any], target: str, query: str, where: str) -> str:
        """Return the query string of the next page; empty after the last page.

        Raises:
            InvalidInput: the next page is not in this collection at our origin, and the page has no cursor.
        """
        meta = page.get("meta")
        paging = meta.get("paging") if isinstance(meta, dict) else None
        if not isinstance(paging, dict):
            return ""
        uri, cursor = paging.get("nextPageUri"), paging.get("cursorQuery")
        if isinstance(uri, str) and uri and len(uri) <= _CURSOR_CHARACTERS_MAX and uri.isascii() and uri.isprintable():
            try:
                parts = urllib.parse.urlsplit(urllib.parse.urljoin(f"{self.name}{target}", uri.replace(" ", "%20")))
                is_ours = origin_of(parts.geturl()) == self._client.address.origin
            except ValueError:
                is_ours = False
            else:
                is_ours = is_ours and parts.path == f"{self._client.address.path}{target}"
            if is_ours and parts.query:
                return parts.query
        if isinstance(cursor, str) and cursor and len(cursor) <= _CURSOR_CHARACTERS_MAX:
            kept = [each for each in query.split("&") if not each.startswith("cursor=")]
            return "&".join([*kept, f"cursor={urllib.parse.quote(urllib.parse.unquote(cursor), safe='')}"])
        if uri:
            raise InvalidInput(
                f"{where}: the next page is not of this collection at {self._client.address.origin}: "
                f"{shown(str(uri)[:200])}",
                remedy="Ask the broker at the address that it calls itself by.",
            )
        return ""

    def _show_client(self, name: str, words: str) -> Listings:
        vpn = f"<vpn-name>{escape(self._message_vpn)}</vpn-name>" if self._message_vpn else ""
        paging = f"<count/><num-elements>{PAGE_OBJECTS}</num-elements>"
        return self._show(f"<client><name>{escape(name)}</name>{vpn}{words}{paging}</client>")

    def _show(self, what: str) -> Listings:
        """Send a `show` request of SEMP v1 and return the listings of all its pages."""
        request = f"<rpc><show>{what}</show></rpc>"
        replies, asked = [], set()
        where = f"{self.name}{_V1}"
        for _ in range(PAGES_MAX):
            reply = self._client.query(_V1, request.encode(), "application/xml")
            replies.append(reply)
            asked.add(request)
            request = _next_request(reply, where)
            if not request:
                return read_semp(b"\n".join(replies), where)
            if request in asked:
                raise InvalidInput(f"{where}: a page names an earlier page as the next one", remedy=_NOT_SEMP)
        raise InvalidInput(f"{where}: more than {PAGES_MAX:,} pages", remedy="Ask for less, as with --message-vpn.")


_NOT_SEMP: Final = "Check that the address is that of the broker's SEMP interface."


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _json(attributes: Mapping[str, object]) -> bytes:
    return json.dumps(attributes, ensure_ascii=False).encode()


def _document(body: bytes, where: str) -> dict[str, Any]:
    """Parse a reply of SEMP v2.

    Raises:
        InvalidInput: the body is not JSON, or is not a reply of SEMP v2.
    """
    try:
        found = json.loads(body)
    except RecursionError:
        raise InvalidInput(f"{where}: the reply is nested too deeply", remedy=_NOT_SEMP) from None
    except ValueError:
        raise InvalidInput(f"{where}: the reply is not JSON", remedy=_NOT_SEMP) from None
    if not isinstance(found, dict) or not ("data" in found or "meta" in found):
        raise InvalidInput(f"{where}: the reply has neither `data` nor `meta`", remedy=_NOT_SEMP)
    return found


def _next_request(reply: bytes, where: str) -> str:
    """Return the request for the next page, which the reply contains; empty after the last page.

    Raises:
        InvalidInput: the reply is not XML.
        Refused: the request in the reply is not a `show` request.
    """
    from lxml import etree

    try:
        root = parse_document(reply, where, DocumentLimits(size_bytes=LIMITS.size_bytes)).root
    except InvalidFile as error:
        first = error.problems[0].message if error.problems else "it cannot be read"
        raise InvalidInput(f"{where}: the reply is not XML of SEMP v1: {first}", remedy=_NOT_SEMP) from None
    requests: Sequence[_Element] = root.findall("more-cookie/rpc")
    if not requests:
        return ""
    inside = [str(each.tag) for each in requests[0]]
    if inside != ["show"]:
        raise Refused(f"{where}: the broker asks for a request that is no `show`: {shown(str(inside)[:200])}")
    return etree.tostring(requests[0], encoding="unicode", with_tail=False)
