"""A whole configuration as canonical XML: what `qsctl render` prints and what a service persists of itself.

Everything is resolved: no variable, no base_name of the own libraries, no default left out. Types stay as they were
written, with their includes read in.
"""

from __future__ import annotations

from lxml import etree
from lxml.etree import _Element

from qsctl.config.sample_types.type_xml import types_element
from qsctl.config.settings import ServiceConfiguration
from qsctl.config.tables.service import SERVICE
from qsctl.config.writer import write


def configuration_element(configuration: ServiceConfiguration, *, with_qos_defaults: bool = False) -> _Element:
    """Return `<dds>` with the types and the one service."""
    dds = etree.Element("dds")
    if configuration.types.definitions:
        dds.append(types_element(configuration.types))
    dds.append(service_element(configuration, with_qos_defaults=with_qos_defaults))
    return dds


def configuration_text(configuration: ServiceConfiguration, *, with_qos_defaults: bool = False) -> str:
    """Return the same as text, indented."""
    element = configuration_element(configuration, with_qos_defaults=with_qos_defaults)
    etree.indent(element)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + etree.tostring(element, encoding="unicode") + "\n"


def service_element(configuration: ServiceConfiguration, *, with_qos_defaults: bool = False) -> _Element:
    """Return the `<queuing_service>`; QoS lies over the defaults of [QS Table 3.14] where that is asked for."""
    return write(SERVICE, configuration, with_qos_defaults=with_qos_defaults)
