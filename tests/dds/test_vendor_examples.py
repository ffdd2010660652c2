"""The hello_world and remote_config examples of RTI Queuing Service, by the commands of the page rti-shop.

The file has the structure of theirs, TCP plug-in included; the test changes its domains alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaigns import is_campaign
from tests.dds.c_peer import needs_c
from tests.dds.domains import claim_domain, release_domain
from tests.dds.foreign import FOREIGN, ROOT, needs_fast_dds
from tests.documents import page
from tests.patience import PATIENCE_S, eventually

SECTION = page("rti-shop").partition("### The hello_world and remote_config examples\n")[2].partition("\n## ")[0]
HELLO_WORLD, REMOTE_CONFIG = re.findall(r"^```sh\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
BUILDING = "cmake -S fixtures/foreign -B build && cmake --build build --target hello_world fast_hello_world\n"
PROGRAMS = ("build/hello_world write $D 5 5\n", "build/fast_hello_world $D 5 10\n")


@pytest.fixture
def domains() -> Iterator[tuple[int, int]]:
    """The domain of the queues, and the one of the administration."""
    claimed = claim_domain(), claim_domain()
    yield claimed
    for each in claimed:
        release_domain(each)


@pytest.fixture
def copy(tmp_path: Path, domains: tuple[int, int]) -> Iterator[Path]:
    """A folder as a copy of the repository, with the file of the examples; its services are stopped in the end."""
    for name in ("fixtures", "schemas"):
        (tmp_path / name).symlink_to(ROOT / name)
    text = (FOREIGN / "example.xml").read_text(encoding="utf-8")
    changed = text.replace("<domain_id>0<", f"<domain_id>{domains[0]}<").replace(
        "<administration>\n      <domain_id>1<", f"<administration>\n      <domain_id>{domains[1]}<"
    )
    (tmp_path / "QsHelloWorld.xml").write_text(changed, encoding="utf-8")
    yield tmp_path
    for file in tmp_path.glob("*.pid"):
        with contextlib.suppress(ProcessLookupError, ValueError):
            os.kill(int(file.read_text()), signal.SIGKILL)


def typed(script: str, folder: Path, domains: tuple[int, int]) -> str:
    """Run commands of the page in a shell that stops at the first failure; return what they print."""
    place = f"D={domains[0]}\nA={domains[1]}\n"
    script = re.sub(r"^[DA]=\d.*\n", "", script, flags=re.MULTILINE)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "200",
    }
    ran = subprocess.run(
        ["bash", "-e", "-o", "pipefail"],
        input=f'qsctl() {{ "{sys.executable}" -m qsctl "$@"; }}\n{place}{script}',
        capture_output=True, text=True, check=False, cwd=folder, env=environment, timeout=10 * PATIENCE_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def check_hello_world(printed: str, log: str, count: int) -> None:
    assert printed.count("5 written") == count // 5
    numbers = sorted(int(each) for each in re.findall(r'"messageId": (\d+)', printed))
    assert numbers == list(range(count)), printed
    assert "asks for TCP, and is served over UDP alone" in log
    assert "HelloWorld as a writer of it describes it" in printed


@pytest.mark.slow
def test_hello_world_is_served_as_its_file_is(copy: Path, domains: tuple[int, int]) -> None:
    script = HELLO_WORLD
    for line in (BUILDING, *PROGRAMS):
        assert script.count(line) == 1
        script = script.replace(line, "")
    check_hello_world(typed(script, copy, domains), (copy / "hello.log").read_text(), 5)


@pytest.mark.campaign
@pytest.mark.skipif(not is_campaign(), reason="a minute of compilers: -m campaign")
@needs_c
@needs_fast_dds
def test_hello_world_is_written_from_c_c_plus_plus_and_python_as_the_page_has_it(
    copy: Path, domains: tuple[int, int]
) -> None:
    check_hello_world(typed(HELLO_WORLD, copy, domains), (copy / "hello.log").read_text(), 15)


@pytest.mark.slow
def test_remote_config_has_a_command_for_each_of_the_example_s(copy: Path, domains: tuple[int, int]) -> None:
    uri = next(each for each in HELLO_WORLD.split("export ") if each.startswith("CYCLONEDDS_URI"))
    printed = typed(f"export {uri}{REMOTE_CONFIG}", copy, domains)
    created, _, rest = printed.partition("5 written")
    assert "queue DomainParticipant/SharedSubscriber/HelloWorldTopic is created" in created
    assert "HelloWorldTopic" in created.partition("is created")[2], "it is among the queues"
    assert rest.count("UNDELIVERED") == 5, printed
    assert "is deleted" in rest
    assert "No queues yet" in rest.partition("is deleted")[2]
    assert eventually(lambda: not (copy / "remote.pid").exists(), PATIENCE_S), "the service left"
