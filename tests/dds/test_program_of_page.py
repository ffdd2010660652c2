"""The program of the page `programs`, run as it stands there against the configuration that it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qsctl.shipped import shipped
from tests.dds.service_process import ServiceProcess
from tests.documents import page, programs
from tests.patience import PATIENCE_S


def program() -> str:
    (found,) = [each for each in programs(page("programs")) if "wait_for_acknowledgments" in each]
    return found


def template(domain: int) -> str:
    text = shipped("fixtures/config/starter/work-queue.xml").read_text(encoding="utf-8")
    return text.replace("<domain_id>0<", f"<domain_id>{domain}<")


class TemplateService(ServiceProcess):
    """The service that the page's reader starts."""

    def start(self) -> None:
        self.file = self.directory / "USER_QUEUING_SERVICE.xml"
        self.file.write_text(template(self.domain), encoding="utf-8")
        self._arguments = (str(self.file),)
        super().start()


def test_typed_samples_travel_as_the_page_shows(tmp_path: Path, domain: int, run_python: Callable[..., Any]) -> None:
    service = TemplateService(tmp_path, domain)
    try:
        running = run_python(program().replace("domain_id = 0", f"domain_id = {domain}"))
        shown, _ = running.communicate(timeout=PATIENCE_S)
        assert shown == "{'number': 7, 'text': 'seven'} False 0\n"
        assert running.returncode == 0
    finally:
        service.end()
