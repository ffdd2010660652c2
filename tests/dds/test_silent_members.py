"""A service that does not answer costs a command its time once, and is shown."""

from __future__ import annotations

import os
import signal

import pytest

from qsctl.client._dds_administrator import Administrator
from qsctl.core.admin.command import GetData
from qsctl.errors import NoAnswer
from qsctl.resource import ResourceIdentifier, ResourceKind
from tests.dds.service_process import StartService
from tests.patience import eventually

DATA = GetData(ResourceIdentifier().at(ResourceKind.DATA))
TIMEOUT_S = 3.0


@pytest.mark.timeout(600)
def test_a_silent_service_costs_the_time_once_and_is_named(
    start_service: StartService, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_service(name="Speaks")
    silent = start_service(name="Silent", queues="")
    administrator = Administrator(domain, TIMEOUT_S)
    try:
        assert eventually(lambda: len(administrator.request(DATA, "*")) == 2)
        assert silent.process is not None
        os.kill(silent.process.pid, signal.SIGSTOP)
        with pytest.raises(NoAnswer, match="did not answer within 3 s: Silent; others did: Speaks OK"):
            administrator.request(DATA, "*")
        administrator.tolerates_silence = True
        monkeypatch.setattr(administrator, "_timeout_s", 1_000_000.0)  # it does not wait for the silent one again
        assert [each.message.replying_service for each in administrator.request(DATA, "*")] == ["Speaks"]
        assert administrator.silent == {"Silent"}
        monkeypatch.undo()
        os.kill(silent.process.pid, signal.SIGCONT)
        assert eventually(lambda: len(administrator.request(DATA, "*")) == 2)
        assert administrator.silent == frozenset()
    finally:
        os.kill(silent.process.pid, signal.SIGCONT)
        administrator.leave()
