"""The names of the formats, in a module of their own: command lines need them without the readers and writers."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """A format of client profiles."""

    SEMP_V2 = "semp-v2"
    SEMP_V1 = "semp-v1"
    LISTING = "listing"
    CLI = "cli"
    TERRAFORM = "terraform"
    ANSIBLE = "ansible"
    CSV = "csv"
    XML = "xml"
