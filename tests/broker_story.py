"""The broker of the page "My subscriber is slow, this afternoon": a simulated one, behind the interface of SEMP.

A desk has a link of 6 Mbit/s for quotes of 1 KB that come 1,000 a second, on 20 topics: D-1 is always full. Its profile
elides nothing. The broker lists what the simulator counts, later each time that it is asked; what is changed of its
client profile counts from then on.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.profiles.formats.file import parse_profiles
from qsctl.sim.listings.broker_listings import client_queues, connections
from qsctl.sim.listings.run_state import read_run_state
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides.overlay import overlay
from qsctl.sim.scenario.xml import read_scenario
from tests import broker_server as b

SCENARIO = """<scenario name="afternoon" seed="7" horizon="40s">
  <port name="p1"/>
  <profile name="desks"><queue name="D-1" max-depth="500"/></profile>
  <group name="desk-7" port="p1" profile="desks" round-trip="2ms" link-rate="6 Mbit/s"/>
  <group name="desk-8" port="p1" profile="desks" count="3" round-trip="2ms"/>
  <traffic name="quotes" to="desk-7" topics="20"><poisson rate="1000/s"/><size bytes="1 KB"/></traffic>
  <traffic name="others" to="desk-8"><poisson rate="200/s"/><size bytes="1 KB"/></traffic>
</scenario>
"""
STEP_S = 20
WINDOW_BYTES = 262_144


class Story:
    """The state of the broker, `STEP_S` seconds later each time that its queues are asked for."""

    def __init__(self, folder: Path) -> None:
        (folder / "hidden.xml").write_text(SCENARIO)
        self._scenario = read_scenario(folder / "hidden.xml")
        self._folder = folder
        self._seconds = 2 * STEP_S
        self._runs = 0
        self._shown = ""
        self.state = b.BrokerState()
        self.state.add_profile("default", "default")
        self._profile = self.state.add_profile("default", "desks", queueDirect1MaxDepth=500)
        self._look()

    def served(self, tls: tuple[Path, Path]) -> b.BrokerServer:
        """Return the interface of it."""
        server = b.BrokerServer(self.state, tls)
        show = server._show

        def later(request: Any, body: bytes) -> None:
            if b"<queues" in body:
                self._seconds += STEP_S
                self._look()
            show(request, body)

        server._show = later  # type: ignore[method-assign]
        return server

    def _look(self) -> None:
        text = json.dumps(self._profile)
        if self._shown not in ("", text):
            self._seconds = 2 * STEP_S  # the clients have connected anew
        self._shown = text
        (profile,) = parse_profiles(text.encode(), "profile").profiles
        scenario = overlay(self._scenario, profile.profile, "desks").scenario
        self._runs += 1
        folder = self._folder / f"run-{self._runs}"
        run(replace(scenario, horizon_ns=self._seconds * SECOND_NS), folder, level=LogLevel.EVENTS)
        found = read_run_state(folder)
        self.state.queues = list(client_queues(found))
        self.state.connections = [
            replace(
                each, advertised_window_bytes=WINDOW_BYTES, congestion_window_bytes=WINDOW_BYTES,
                send_queue_bytes=96_000 if each.name == "desk-7" else 0,
            )
            for each in connections(found)
        ]  # fmt: skip
        self.state.vpns["default"]["clients"] = [
            b.client_object(
                each.name, clientProfileName="desks", slowSubscriber=bool(each.slow_subscriber),
                txDiscardedMsgCount=sum(row.discarded_messages or 0 for row in each.queues),
                dataTxMsgCount=sum(row.delivered_messages or 0 for row in each.queues),
                dataTxByteCount=next(one.sent_bytes or 0 for one in connections(found) if one.name == each.name),
                eliding=bool(each.eliding_enabled), uptime=self._seconds,
            )
            for each in self.state.queues
        ]  # fmt: skip
