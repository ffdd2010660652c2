"""Read a bill of materials from standard input and write it without what ages: addresses, descriptions, tools."""

from __future__ import annotations

import json
import sys
from typing import Any

KEPT = ("type", "bom-ref", "name", "version", "purl", "licenses")


def shortened(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with what identifies a component and its licence, and what depends on what."""
    document["metadata"].pop("tools", None)
    for component in (document["metadata"]["component"], *document["components"]):
        for name in set(component) - set(KEPT):
            del component[name]
    return document


if __name__ == "__main__":
    sys.stdout.write(json.dumps(shortened(json.load(sys.stdin)), indent=1, sort_keys=True) + "\n")
