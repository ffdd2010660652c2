"""The embedded service: one command at a time, and damaged state."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from qsctl.core.messages import AckResponse, Delivery
from qsctl.errors import Damaged, NoAnswer, Refused
from qsctl.service.directory.embedded import open_embedded
from tests.patience import PATIENCE_S
from tests.service.embedded_commands import (
    FULL_NAME,
    IN_MEMORY,
    WRITER,
    create,
    messages,
    queue,
    status,
    write,
)


class TestOneAtATime:
    def test_a_second_command_waits_for_the_first(self, tmp_path: Path) -> None:
        with open_embedded(tmp_path / "s") as service:
            create(service, queue())
            opened = threading.Event()

            def other() -> None:
                with open_embedded(tmp_path / "s", wait_s=20.0):
                    opened.set()

            thread = threading.Thread(target=other)
            thread.start()
            assert not opened.wait(0.1)
        assert opened.wait(20.0)
        thread.join()

    def test_a_second_command_that_timed_out_names_the_holder(self, tmp_path: Path) -> None:
        pattern = (
            rf"process {os.getpid()} \(since 20..-..-.. ..:..:.. UTC\) is using the state directory .*; waited 0.05 s"
        )
        with open_embedded(tmp_path / "s"):
            with pytest.raises(NoAnswer, match=pattern) as caught, open_embedded(tmp_path / "s", wait_s=0.05):
                pass
            assert "--timeout" in caught.value.remedy
        assert not (tmp_path / "s" / "lock.holder").exists()

    def test_a_killed_holder_does_not_block_others(self, tmp_path: Path) -> None:
        child = os.fork()
        if child == 0:
            with open_embedded(tmp_path / "s"):
                os._exit(0)
        os.waitpid(child, 0)
        assert (tmp_path / "s" / "lock.holder").exists()
        with open_embedded(tmp_path / "s", wait_s=0.0):
            pass

    def test_a_consumer_that_waits_lets_a_producer_in(self, tmp_path: Path) -> None:
        with open_embedded(tmp_path / "s") as service:
            create(service, queue())
        found: list[list[Delivery]] = []

        def consume() -> None:
            with open_embedded(tmp_path / "s") as service:
                found.append(service.receive(FULL_NAME + "Orders", 1, 20.0))
                service.acknowledge(found[0][0], ok=True)

        thread = threading.Thread(target=consume)
        thread.start()
        time.sleep(0.2)
        with open_embedded(tmp_path / "s") as service:
            write(service, b"here")
        thread.join(20.0)
        assert [each.payload for each in found[0]] == [b"here"]
        with open_embedded(tmp_path / "s") as service:
            assert messages(service) == []

    def test_a_consumer_waits_no_longer_than_its_limit(self, tmp_path: Path) -> None:
        with open_embedded(tmp_path / "s") as service:
            create(service, queue())
            assert service.receive(FULL_NAME + "Orders", 1, 0.1) == []

    def test_many_processes_at_once_lose_nothing(self, tmp_path: Path) -> None:
        with open_embedded(tmp_path / "s") as service:
            create(service, queue())
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=_produce, args=(tmp_path / "s", number), daemon=True) for number in range(4)]
        try:
            for child in children:
                child.start()
            for child in children:
                child.join(PATIENCE_S)
                assert child.exitcode == 0
        finally:
            for child in children:
                if child.is_alive():
                    child.kill()
        with open_embedded(tmp_path / "s") as service:
            assert len(messages(service)) == 4 * 5 * 3


def _produce(state_dir: Path, number: int) -> None:
    for start in range(0, 15, 3):
        with open_embedded(state_dir, wait_s=PATIENCE_S) as service:
            write(service, b"a", b"b", b"c", start=1_000 * number + start)


class TestDamage:
    def test_a_damaged_store_is_restored_around_and_reported_once(self, tmp_path: Path) -> None:
        with open_embedded(tmp_path / "s") as service:
            create(service, queue(persistence=IN_MEMORY))
            for at in range(5):
                write(service, b"%d" % at, start=at)
        path = tmp_path / "s" / "QSlog@qsctl_w0.db"
        content = bytearray(path.read_bytes())
        content[content.index(WRITER) + 1] ^= 1
        path.write_bytes(content)
        with pytest.raises(Damaged, match="nothing was changed"), open_embedded(tmp_path / "s"):
            pass
        assert path.read_bytes() == bytes(content)
        with open_embedded(tmp_path / "s", discard_damaged=True) as service:
            assert len(messages(service)) == 4
            assert service.damage
            assert all(report.file.name.startswith("QSlog") for report in service.damage)
        assert (tmp_path / "s" / f"{path.name}.damaged").read_bytes() == bytes(content)
        with open_embedded(tmp_path / "s") as service:
            assert len(messages(service)) == 4
            assert not service.damage

    def test_damaged_statistics_restart_from_zero_and_are_reported(self, tmp_path: Path) -> None:
        with open_embedded(tmp_path / "s") as service:
            create(service, queue())
            write(service, b"one")
        (tmp_path / "s" / "statistics.bin").write_bytes(b"\xff\x00 nonsense")
        with open_embedded(tmp_path / "s") as service:
            assert status(service).total.received_message_count == 0
            assert status(service).current_message_count == 1
            assert [report.file.name for report in service.damage] == ["statistics.bin"]

    def test_an_unreadable_instance_file_is_reported_and_nothing_is_touched(self, tmp_path: Path) -> None:
        with open_embedded(tmp_path / "s") as service:
            create(service, queue())
        (tmp_path / "s" / "instance.json").write_text("{")
        with pytest.raises(Damaged, match=r"instance\.json"), open_embedded(tmp_path / "s"):
            pass
        assert (tmp_path / "s" / "QSservice@qsctl.db").exists()

    def test_a_state_of_a_later_version_is_refused(self, tmp_path: Path) -> None:
        with open_embedded(tmp_path / "s"):
            pass
        file = tmp_path / "s" / "instance.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 99, "checksum": None}))
        with pytest.raises(Refused, match="has format 99"), open_embedded(tmp_path / "s"):
            pass

    def test_what_a_disk_refuses_is_answered_0_and_never_comes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with open_embedded(tmp_path / "s") as service:
            create(service, queue())
            write(service, b"kept")

            def refuse(descriptor: int, data: bytes, offset: int) -> int:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(os, "pwrite", refuse)
            assert write(service, b"lost", start=10) == [AckResponse.REJECTED]
            monkeypatch.undo()
        with open_embedded(tmp_path / "s") as service:
            assert [each.payload for each in messages(service)] == [b"kept"]
            assert write(service, b"again", start=10) == [AckResponse.ACCEPTED]
            assert [each.payload for each in messages(service)] == [b"kept", b"again"]
