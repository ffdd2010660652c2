"""A store that is gone, or reaches less far than it did, is reported: the register knows [QS 2.14]."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qsctl.core.queue.settings import PersistenceSettings
from qsctl.errors import Damaged
from qsctl.service.directory.embedded import open_embedded
from tests.earlier_formats import contents
from tests.service.embedded_commands import IN_MEMORY, ON_DISK, create, messages, queue, write


def filled(state: Path, persistence: PersistenceSettings | None) -> None:
    with open_embedded(state) as service:
        create(service, queue("P", persistence) if persistence is not None else queue("P"))
        write(service, b"one", b"two", topic="P")


def reported(state: Path) -> list[str]:
    """Return what is lost where the user says that it may be; without that nothing is changed."""
    before = contents(state)
    try:
        with open_embedded(state) as service:
            return [str(report) for report in service.damage]
    except Damaged as error:
        assert "--discard-damaged" in error.remedy
        assert contents(state) == before
    with open_embedded(state, discard_damaged=True) as service:
        return [str(report) for report in service.damage]


KINDS = pytest.mark.parametrize("persistence", [None, IN_MEMORY, ON_DISK], ids=["volatile", "segments", "database"])


@KINDS
def test_a_deleted_store_is_reported_once_and_made_anew(
    tmp_path: Path, persistence: PersistenceSettings | None
) -> None:
    filled(tmp_path / "s", persistence)
    folder = tmp_path / "s" if persistence is not None else tmp_path / "s" / "volatile"
    files = [path for path in folder.glob("*.db") if "service@" not in path.name]
    assert files
    for path in files:
        path.unlink()
    assert any("missing" in each for each in reported(tmp_path / "s"))
    with open_embedded(tmp_path / "s") as service:
        assert messages(service, "P") == []


@pytest.mark.parametrize("persistence", [IN_MEMORY, ON_DISK], ids=["segments", "database"])
@pytest.mark.parametrize("hosts_another", [False, True], ids=["alone", "beside-another"])
def test_a_queue_lost_with_the_service_s_state_is_created_again_once_the_loss_was_accepted(
    tmp_path: Path, persistence: PersistenceSettings, hosts_another: bool
) -> None:
    """The queue is not hosted at the start that accepts the loss: its files, and the state that named it, are gone."""
    filled(tmp_path / "s", persistence)
    for path in (tmp_path / "s").glob("*.db"):
        path.unlink()
    if hosts_another:
        with open_embedded(tmp_path / "s", discard_damaged=True) as service:
            create(service, queue("Q", persistence))
            write(service, b"kept", topic="Q")
    else:
        assert any("missing" in each for each in reported(tmp_path / "s"))
    with open_embedded(tmp_path / "s") as service:
        create(service, queue("P", persistence))
        write(service, b"three", topic="P", start=10)
    with open_embedded(tmp_path / "s") as service:
        assert [each.payload for each in messages(service, "P")] == [b"three"]
        assert service.damage == []


def test_a_deleted_service_state_is_reported(tmp_path: Path) -> None:
    filled(tmp_path / "s", IN_MEMORY)
    next((tmp_path / "s").glob("*service@*.db")).unlink()
    assert any("service@" in each and "missing" in each for each in reported(tmp_path / "s"))


@pytest.mark.parametrize("persistence", [IN_MEMORY, ON_DISK], ids=["segments", "database"])
def test_stores_without_the_service_s_state_and_the_register_are_reported(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    filled(tmp_path / "s", persistence)
    for path in (*(tmp_path / "s").glob("*service@*.db"), tmp_path / "s" / "QSstores@qsctl.json"):
        path.unlink()
    assert any("state and the register are missing" in each for each in reported(tmp_path / "s"))


@KINDS
def test_a_store_put_back_to_what_it_was_before_is_reported(
    tmp_path: Path, persistence: PersistenceSettings | None
) -> None:
    filled(tmp_path / "s", persistence)
    folder = tmp_path / "s" if persistence is not None else tmp_path / "s" / "volatile"
    before = {path: path.read_bytes() for path in folder.glob("*.db")}
    with open_embedded(tmp_path / "s") as service:
        write(service, b"three", topic="P", start=10)
    for path, content in before.items():
        path.write_bytes(content)
    assert reported(tmp_path / "s")


def test_a_register_that_is_gone_or_damaged_is_reported_and_written_anew(tmp_path: Path) -> None:
    filled(tmp_path / "s", IN_MEMORY)
    register = tmp_path / "s" / "QSstores@qsctl.json"
    register.unlink()
    assert any("the register of the stores is missing" in each for each in reported(tmp_path / "s"))
    assert reported(tmp_path / "s") == []
    register.write_text(register.read_text().replace("segments", "Segments"))
    assert any("its checksum does not match" in each for each in reported(tmp_path / "s"))
    assert reported(tmp_path / "s") == []
    assert json.loads(register.read_text())["stores"]


@pytest.mark.parametrize("octets", [b'{"pid": "\xff"}', b"\xff\xfe", b"{}", b"[1"])
def test_an_instance_file_that_is_no_text_is_damage(tmp_path: Path, octets: bytes) -> None:
    filled(tmp_path / "s", IN_MEMORY)
    (tmp_path / "s" / "instance.json").write_bytes(octets)
    with pytest.raises(Damaged, match=r"instance\.json"), open_embedded(tmp_path / "s"):
        pass


def test_an_instance_file_with_a_field_more_that_is_no_text_is_damage(tmp_path: Path) -> None:
    filled(tmp_path / "s", IN_MEMORY)
    file = tmp_path / "s" / "instance.json"
    file.write_bytes(file.read_bytes().replace(b'{"', b'{"a\xa1":1,"', 1))
    with pytest.raises(Damaged, match=r"instance\.json"), open_embedded(tmp_path / "s"):
        pass


def test_a_changed_instance_file_is_damage_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    filled(tmp_path / "s", IN_MEMORY)
    file = tmp_path / "s" / "instance.json"
    file.write_text(file.read_text().replace('"qsctl"', '"qsctm"'))
    with pytest.raises(Damaged, match="its checksum does not match"), open_embedded(tmp_path / "s"):
        pass
    file.unlink()
    assert any("instance.json" in each and "missing" in each for each in reported(tmp_path / "s"))


def test_the_remedy_of_a_damaged_instance_file_leads_to_its_samples(tmp_path: Path) -> None:
    filled(tmp_path / "s", IN_MEMORY)
    file = tmp_path / "s" / "instance.json"
    file.write_bytes(b"")
    with pytest.raises(Damaged) as raised, open_embedded(tmp_path / "s"):
        pass
    assert "move the file away" in raised.value.remedy.lower()
    file.rename(tmp_path / "moved away")
    discards = "--discard-damaged" in raised.value.remedy
    with open_embedded(tmp_path / "s", discard_damaged=discards) as service:
        assert len(messages(service, "P")) == 2


def test_statistics_that_were_changed_are_reported(tmp_path: Path) -> None:
    filled(tmp_path / "s", IN_MEMORY)
    file = tmp_path / "s" / "statistics.bin"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert any("statistics.bin" in each for each in reported(tmp_path / "s"))
