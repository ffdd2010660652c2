"""Settings to XML by the tables: the canonical text of a configuration, and the difference from the defaults.

Canonical: every value written out, in one order, in one spelling; reading it gives the settings back. The difference is
the body of a CREATE command ([QS 5.4.1], [QS 5.4.7]): what it leaves out is the service's to inherit.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from lxml import etree
from lxml.etree import _Element

from qsctl.config.form import Element, QosElements, Row, Setting, Shape, defaults_of
from qsctl.config.qos_libraries.qos_tree import merge, read_qos, to_element
from qsctl.config.tables.containers import SUBSCRIBER
from qsctl.config.tables.qos import QOS_DEFAULTS, qos_holder
from qsctl.config.tables.queue import form_of
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.declared.values import duration_texts

_BODY_SESSION: Final = "session"
"""The session of a shared subscriber that was described without one: a service needs one [QS Table 3.12]."""


def write(form: Element, settings: object, *, with_qos_defaults: bool = False) -> _Element:
    """Return settings as the element of their table, every value written out."""
    return _Writer(with_qos_defaults=with_qos_defaults).element(form, settings)


def queue_snippet(settings: SharedReaderQueueSettings) -> str:
    """Return the body of a CREATE command for a queue: what differs from the defaults."""
    return etree.tostring(_Writer(difference=True).element(form_of(settings), settings), encoding="unicode")


def queue_text(settings: SharedReaderQueueSettings) -> str:
    """Return a queue with every value written out: the body of a command that shall inherit nothing."""
    return etree.tostring(write(form_of(settings), settings), encoding="unicode")


def subscriber_text(settings: SharedSubscriberSettings) -> str:
    """Return a shared subscriber with every value written out."""
    return etree.tostring(write(SUBSCRIBER, settings), encoding="unicode")


def subscriber_snippet(settings: SharedSubscriberSettings) -> str:
    """Return the body of a CREATE command for a shared subscriber with its sessions and queues."""
    element = _Writer(difference=True).element(SUBSCRIBER, settings)
    if not settings.sessions:
        holder = etree.SubElement(element, "session_settings")
        etree.SubElement(holder, "session", name=_BODY_SESSION)
    return etree.tostring(element, encoding="unicode")


class _Writer:
    """Writes by the tables: everything, or with `difference` what is not the default."""

    def __init__(self, *, with_qos_defaults: bool = False, difference: bool = False) -> None:
        self._with_qos_defaults = with_qos_defaults
        self._difference = difference

    def element(self, form: Element, settings: object) -> _Element:
        element = etree.Element(form.tag)
        self._fill(element, form.rows, settings, defaults_of(form.makes) if form.makes else {}, self._difference)
        return element

    def _fill(self, element: _Element, rows: tuple[Row, ...], settings: Any, defaults: Any, only_changed: bool) -> None:
        """Write rows into an element; of the settings themselves with `only_changed` those that are not the default.

        What is set of an element that is inherited as a whole is written as a whole: only what is inside it and has a
        dataclass of its own may still be left out.
        """
        for row in rows:
            if isinstance(row, QosElements):
                element.extend(self._qos(str(element.tag), settings.qos))
                continue
            value = attrgetter(row.field)(settings) if row.field else settings
            if isinstance(row, Setting):
                if not only_changed or value != defaults.get(row.field):
                    _write_setting(element, row, value)
            elif isinstance(row, Element):
                self._write_element(element, row, value, defaults, only_changed)
            else:
                holder = etree.SubElement(element, row.inside) if row.inside and value else element
                for each in value:
                    form = form_of(each) if isinstance(each, SharedReaderQueueSettings) else row.forms[0]
                    holder.append(self.element(form, each))

    def _write_element(self, parent: _Element, row: Element, value: Any, defaults: Any, only_changed: bool) -> None:
        made = row.makes is not None
        if made and (self._difference or row.switch) and value == defaults.get(row.field):
            return
        element = etree.Element(row.tag) if row.tag else parent
        inner = defaults_of(row.makes) if row.makes else defaults
        self._fill(element, row.rows, value, inner, only_changed and not made)
        if row.tag and (made or len(element)):
            parent.append(element)

    def _qos(self, holder: str, qos: dict[str, str]) -> list[_Element]:
        """Return the QoS elements of an entity in alphabetical order, over the stated defaults where asked for."""
        texts = dict(qos)
        if self._with_qos_defaults:
            for owner, tag in QOS_DEFAULTS:
                if owner == qos_holder(holder):
                    texts[tag] = effective_qos(holder, tag, qos.get(tag))
        return [etree.fromstring(texts[tag].encode()) for tag in sorted(texts)]


def _write_setting(element: _Element, row: Setting, value: Any) -> None:
    if value is None or value == "":
        return
    if row.shape is Shape.ATTRIBUTE:
        element.set(row.tag, row.value.write(value))
    elif row.shape is Shape.PROPERTY:
        # One <property> with one <value> for all of them.
        holder = element.find("property/value")
        if holder is None:
            holder = etree.SubElement(etree.SubElement(element, "property"), "value")
        item = etree.SubElement(holder, "element")
        etree.SubElement(item, "name").text = row.tag
        etree.SubElement(item, "value").text = row.value.write(value)
    else:
        child = etree.SubElement(element, row.tag)
        if row.shape is Shape.ELEMENT:
            child.text = row.value.write(value)
            return
        if row.shape is Shape.HELD_DURATION:
            child = etree.SubElement(child, "duration")
        for tag, text in zip(("sec", "nanosec"), duration_texts(value), strict=True):
            etree.SubElement(child, tag).text = text


def effective_qos(holder: str, tag: str, given: str | None) -> str:
    """Return a QoS element with the defaults for its place laid under it [QS Tables 3.4, 3.5 and 3.14].

    Args:
        holder: the tag that holds the element, such as `shared_reader_queue` or `administration`.
        tag: the element's own tag.
        given: what the configuration gives, None for nothing.

    Returns:
        Canonical XML.
    """
    default = QOS_DEFAULTS[(qos_holder(holder), tag)]
    if given is None:
        return default.text
    element = etree.fromstring(given)
    over = merge(read_qos(etree.fromstring(default.text)), read_qos(element))
    result = to_element(over)
    base_name = element.get("base_name")
    if base_name:
        result.set("base_name", base_name)
    return etree.tostring(result, encoding="unicode")
