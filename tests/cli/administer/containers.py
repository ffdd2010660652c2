"""The files for containers, and what they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

import qsctl

FOLDER = Path(qsctl.__file__).parent / "containers"
MANIFESTS = {each["kind"]: each for each in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())}
SET: dict[str, Any] = MANIFESTS["StatefulSet"]["spec"]
POD: dict[str, Any] = SET["template"]["spec"]
(CONTAINER,) = POD["containers"]
CLUSTER = MANIFESTS["ConfigMap"]["data"]["service.xml"]
PORT = 9100
