"""Print pip constraints that hold each dependency at the lowest version that pyproject.toml allows.

    python3 .ci/lowest_versions.py [EXTRA ...] > lowest.txt

Dependencies of dependencies are left to pip.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)\s*>=\s*(?P<lowest>[0-9][^,;\s]*)[^;]*(?P<marker>;.*)?")


def lowest(line: str) -> str:
    """Return the constraint of one requirement: `name==lowest`, nothing else of it but its marker.

    Raises:
        SystemExit: the requirement has no lower bound.
    """
    requirement = REQUIREMENT.fullmatch(line)
    if requirement is None:
        raise SystemExit(f"pyproject.toml: {line!r} has no lower bound first; write it as in 'name>=1.2'")
    return f"{requirement['name']}=={requirement['lowest']} {requirement['marker'] or ''}".rstrip()


def main() -> None:
    """Print the constraints of the dependencies, and of the extras that are named."""
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    for extra in sys.argv[1:]:
        lines += project["optional-dependencies"][extra]
    sys.stdout.write("".join(f"{lowest(line)}\n" for line in lines))


if __name__ == "__main__":
    main()
