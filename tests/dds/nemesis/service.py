"""`qsctl` in the network namespace that the file `namespace` names, with a disk that hangs while a file `hang` exists.

Both files are in the working directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from qsctl.__main__ import main
from tests.dds.nemesis.programs import enter_namespace
from tests.dds.watched_service import let_disk_hang

NAMESPACE: Final = Path("namespace")

if __name__ == "__main__":
    if NAMESPACE.exists():
        enter_namespace(NAMESPACE.read_text(encoding="ascii"))
    let_disk_hang()
    main()
