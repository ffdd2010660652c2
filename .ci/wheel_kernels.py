"""Build hook of the wheel: with ready-made kernels of these sources, the wheel has them and is for one system.

`python -m qsctl.sim.ready_kernels` makes them, and `.ci/platform_wheel` both. Without them, or when they were made of
other sources, the wheel is the pure one that installs everywhere.
"""

from __future__ import annotations

import hashlib
import json
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):
    """Adds `qsctl/_kernels`, and the tag of the system."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Say which files and which tag the wheel has."""
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        made = root / "qsctl" / "_kernels"
        if not fresh(made, root / "qsctl" / "sim"):
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"
        build_data["force_include"][str(made)] = "qsctl/_kernels"


def fresh(made: Path, sources: Path) -> bool:
    """Return whether the kernels were made of these sources; as `qsctl.sim.kernel.cache_directory.sources_digest`."""
    try:
        of = json.loads((made / "index.json").read_bytes())["sources"]
    except (OSError, ValueError, KeyError):
        return False
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(sources.rglob("*.py")):
        digest.update(path.relative_to(sources).as_posix().encode())
        digest.update(path.read_bytes())
    return bool(of == digest.hexdigest())


def platform_tag() -> str:
    """Return the tag of this system: object files link to the C library's mathematics alone, which manylinux has."""
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if system.startswith("linux_"):
        return system.replace("linux_", "manylinux_2_17_", 1)
    return "macosx_11_0_arm64" if system.startswith("macosx") and system.endswith(("arm64", "universal2")) else system
