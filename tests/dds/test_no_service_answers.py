"""Why no service answered: one without administration is seen by what it says of itself; else nothing is."""

import os
import signal
import threading
from pathlib import Path

import msgspec
import pytest

from qsctl.client.administration import Administration
from qsctl.client.dds_connection import DdsConnection
from qsctl.core.messages import Write
from qsctl.errors import NoAnswer
from qsctl.identity import Guid, SampleIdentity
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
        assert f"-remoteAdministrationDomainId {other}" in reason(other)
        assert f"Nothing of a service is seen in domain {domain} on interface lo." in reason(domain)
    finally:
        service.end()
        release_domain(domain)
        release_domain(other)


def test_a_writer_learns_that_it_waits_for_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service is stopped in its tracks: as it is for its producers while replicas elect a new master."""
    domain = claim_domain()
    service = ServiceProcess(tmp_path, domain)
    connection = DdsConnection(domain, 30.0)
    waited: list[int] = []
    connection.on_silence = waited.append
    try:
        sample = Write("P", "Orders", SampleIdentity(Guid(bytes(range(16))), 1), b"x")
        assert len(connection.write([sample])) == 1
        assert waited == []
        hosted = connection._samples._all_hosted()
        monkeypatch.setattr(connection._samples, "_all_hosted", lambda: hosted)  # as another member would answer
        os.kill(service.pid, signal.SIGSTOP)
        timer = threading.Timer(2.0, os.kill, (service.pid, signal.SIGCONT))
        timer.start()
        later = msgspec.structs.replace(sample, identity=SampleIdentity(Guid(bytes(range(16))), 2))
        assert len(connection.write([later])) == 1
        assert waited == [1]
        timer.join()
    finally:
        os.kill(service.pid, signal.SIGCONT)
        connection.close()
        service.end()
        release_domain(domain)
