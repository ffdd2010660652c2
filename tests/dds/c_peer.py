"""Peers in C, built from their own IDL and that of qsctl with another release of Cyclone DDS, as Debian packages it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from qsctl.shipped import shipped
from tests.processes import run

PEER = Path(__file__).parent / "peer"
COMPILER = shutil.which("cc") or shutil.which("gcc")
IDLC = shutil.which("idlc")
HEADER = Path("/usr/include/dds/dds.h")

URI = """<CycloneDDS><Domain Id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces>
<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>
<MaxAutoParticipantIndex>99</MaxAutoParticipantIndex><Peers><Peer address="127.0.0.1"/></Peers></Discovery>
</Domain></CycloneDDS>"""

ENVIRONMENT = {**os.environ, "CYCLONEDDS_URI": URI}

needs_c = pytest.mark.skipif(
    COMPILER is None or IDLC is None or not HEADER.exists(),
    reason="needs a C compiler, and cyclonedds-dev and cyclonedds-tools of Debian",
)


def build(directory: Path, idls: Sequence[str], program: str, *idlc_options: str) -> Path:
    """Compile `program` with the types of IDL files, its own or those of qsctl (`schemas/…`).

    Without options `idlc` adds the types' own descriptions.
    """
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(PEER / program, directory)
    (directory / "types").mkdir()
    for idl in idls:
        shutil.copy(shipped(idl) if idl.startswith("schemas/") else PEER / idl, directory)
        run([str(IDLC), *idlc_options, "-o", "types", Path(idl).name], cwd=directory, check=True)
    built = directory / "peer"
    types = [f"types/{Path(idl).stem}.c" for idl in idls]
    command = [str(COMPILER), "-O1", "-Itypes", "-o", str(built), program, *types, "-lddsc"]
    run(command, cwd=directory, check=True)
    return built
