"""Why no service answered: one without administration is seen by what it says of itself; else nothing is."""

from pathlib import Path

import pytest

from qsctl.client.administration import Administration
from qsctl.client.dds_connection import DdsConnection
from qsctl.errors import NoAnswer
from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import ServiceProcess
from tests.patience import eventually


def test_the_likely_reason_is_named(tmp_path: Path) -> None:
    domain, other = claim_domain(), claim_domain()
    service = ServiceProcess(tmp_path, other)
    text = service.file.read_text(encoding="utf-8")
    start, end = text.index("<administration>"), text.index("</administration>") + len("</administration>")
    service.stop()
    service.file.write_text(text[:start] + text[end:], encoding="utf-8")
    try:
        service.start()

        def reason(of: int) -> str:
            connection = DdsConnection(of, 1.0)
            try:
                with pytest.raises(NoAnswer) as raised:
                    Administration(connection).statuses()
                return raised.value.remedy
            finally:
                connection.close()

        assert eventually(lambda: f"Without administration in this domain: {service.name}." in reason(other))
        assert f"Nothing of a service is seen in domain {domain} on interface lo." in reason(domain)
    finally:
        service.end()
        release_domain(domain)
        release_domain(other)
