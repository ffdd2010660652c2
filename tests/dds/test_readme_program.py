"""README.md's program, run as it stands there against the configuration that it names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qsctl.shipped import shipped
from tests.dds.service_process import ServiceProcess
from tests.patience import PATIENCE_S

README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")


def program() -> str:
    (found,) = [
        block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "wait_for_acknowledgments" in block
    ]
    return found


def template(domain: int) -> str:
    text = shipped("fixtures/config/starter/work-queue.xml").read_text(encoding="utf-8")
    return text.replace("<domain_id>0<", f"<domain_id>{domain}<")


class TemplateService(ServiceProcess):
    """The service that the README's reader starts."""

    def start(self) -> None:
        self.file = self.directory / "USER_QUEUING_SERVICE.xml"
        self.file.write_text(template(self.domain), encoding="utf-8")
        super().start()


def test_typed_samples_travel_as_the_readme_shows(tmp_path: Path, domain: int, run_python: Callable[..., Any]) -> None:
    service = TemplateService(tmp_path, domain)
    try:
        running = run_python(program().replace("domain_id = 0", f"domain_id = {domain}"))
        shown, _ = running.communicate(timeout=PATIENCE_S)
        assert shown == "{'number': 7, 'text': 'seven'} False 0\n"
        assert running.returncode == 0
    finally:
        service.end()
