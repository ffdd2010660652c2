"""The configuration of the manual's section 9.2 as three processes that keep it in common [QS 7.2 and 9.2].

The transport is UDP on loopback, for the addresses of the manual are nobody's here, and there are three instances.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree
from typer.testing import CliRunner

from qsctl.shipped import shipped
from tests.commands import command_line
from tests.dds.cluster import Cluster
from tests.dds.cluster_commands import Shell
from tests.dds.domains import claim_domain, release_domain
from tests.dds.service_process import ServiceProcess, eventually
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.xdist_group("cluster")

PROTOCOL = """<replication_settings><queue_instances>3</queue_instances>
<master_timeout><sec>0</sec><nanosec>500000000</nanosec></master_timeout></replication_settings>"""
KEPT = "<persistence><kind>PERSISTENT</kind></persistence>"
OWN = """<shared_reader_queue name="Own" session="Session"><topic_name>Own</topic_name>
<type_name>DDS::Octets</type_name></shared_reader_queue>"""


def section_9_2() -> str:
    """The fixture without its transports, with three instances; `{domain}` is to be filled in."""
    root = etree.parse(str(shipped("fixtures/config/manual/section_9.2.xml"))).getroot()
    for name in ("qos_library", "participant_qos"):
        for element in root.findall(f".//{name}"):
            element.getparent().remove(element)
    for element in root.findall(".//domain_id"):
        element.text = "{domain}"
    service = root.find("queuing_service")
    assert service is not None
    service_qos = service.find("service_qos")
    assert service_qos is not None
    service_qos.insert(0, etree.fromstring(KEPT))
    service.insert(service.index(service_qos), etree.fromstring(PROTOCOL))
    return etree.tostring(root, encoding="unicode")


def queues(qsctl: Shell) -> dict[str, list[str]]:
    """The queues that each service has."""
    found: dict[str, list[str]] = {}
    for each in qsctl.document("get", "data")["queues"]:
        found.setdefault(each["service"], []).append(each["queue_name"].rsplit("/", 1)[1])
    return {name: sorted(found[name]) for name in sorted(found)}


def answers(qsctl: Shell, *command: str) -> dict[str, str]:
    """What each service answers to a command."""
    text = qsctl(*command, "--target", "Cluster_1*")
    return dict(re.findall(r"^(?:Error: )?(\S+): (\w+): ", text, flags=re.MULTILINE))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all, for it takes seconds to start."""
    domain = claim_domain()
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), domain, configuration=section_9_2(), name="Service")
    cluster.await_all("configuration")
    yield cluster
    cluster.end()
    release_domain(domain)


def all_have(cluster: Cluster, *names: str) -> bool:
    return queues(Shell(cluster.domain)) == {service: sorted(names) for service in cluster.services}


def test_commands_to_the_cluster_while_one_is_down_and_its_return(cluster: Cluster) -> None:
    qsctl = Shell(cluster.domain)
    assert answers(qsctl, "create-queue", "One") == dict.fromkeys(cluster.services, "OK")
    master = cluster.master("configuration")
    away = next(name for name in cluster.services if name != master)
    present = [name for name in cluster.services if name != away]
    cluster.kill(away)
    assert answers(qsctl, "create-queue", "Two") == dict.fromkeys(present, "OK")
    assert answers(qsctl, "delete-queue", "One") == dict.fromkeys(present, "OK")
    cluster.services[away].start()
    assert eventually(lambda: all_have(cluster, "Two"), PATIENCE_S)
    log = cluster.services[away].log.read_text()
    assert re.findall(r"event='configuration_followed' .* text='([^']*)'", log)[-2:] == [
        "queue DomainParticipant/SharedSubscriber/One is deleted",
        "queue DomainParticipant/SharedSubscriber/Two is created",
    ]


def test_a_member_with_a_new_disk_and_another_file_takes_over_the_clusters_configuration(cluster: Cluster) -> None:
    master = cluster.master("configuration")
    service = cluster.services[next(name for name in cluster.services if name != master)]
    had = queues(Shell(cluster.domain))[service.directory.name]
    assert service.stop(signal.SIGTERM) == 0
    file = service.file.read_text()
    for path in service.directory.iterdir():
        if path != service.log:
            path.unlink()
    service.file.write_text(file.replace("</shared_subscriber>", f"{OWN}</shared_subscriber>"))
    service.start()
    assert eventually(lambda: all_have(cluster, *had), PATIENCE_S)
    (text,) = re.findall(r"event='configuration_of_the_cluster' .* text='([^']*)'", service.log.read_text())
    assert text.startswith(
        "it takes the place of Service as it was read: queue DomainParticipant/SharedSubscriber/Own is not here"
    )


def test_another_cluster_in_the_same_domain_is_not_seen(cluster: Cluster, tmp_path: Path) -> None:
    own = {name: list(each) for name, each in queues(Shell(cluster.domain)).items()}
    (tmp_path / "other").mkdir()
    members = ("--members", "Cluster_2_A,Cluster_2_B,Cluster_2_C")
    service = ServiceProcess(
        tmp_path / "other", cluster.domain, "--app-name", "Cluster_2_A", *members, configuration=section_9_2(),
        name="Service",
    )  # fmt: skip
    try:
        assert answers(Shell(cluster.domain), "create-queue", "Three") == dict.fromkeys(cluster.services, "OK")
        assert eventually(
            lambda: queues(Shell(cluster.domain)) == {name: sorted([*each, "Three"]) for name, each in own.items()},
            PATIENCE_S,
        )
        assert "learner" in service.log.read_text()
        assert "role='slave'" not in service.log.read_text()
        logs = [each.log.read_text() for each in (service, *cluster.services.values())]
        assert not any("too_many_instances" in log or "cluster_disagrees" in log for log in logs)
    finally:
        service.end()


@pytest.mark.slow
def test_without_a_quorum_commands_are_refused_and_nothing_changes(cluster: Cluster) -> None:
    qsctl = Shell(cluster.domain)
    master = cluster.master("configuration")
    one, other = (name for name in cluster.services if name != master)
    assert answers(qsctl, "create-queue", "Kept") == dict.fromkeys(cluster.services, "OK")
    assert eventually(lambda: "Kept" in queues(qsctl).get(one, ()), PATIENCE_S)
    had = queues(qsctl)[one]
    cluster.kill(master)
    cluster.kill(other)
    assert eventually(lambda: cluster.roles("configuration")[one][1] == "candidate", PATIENCE_S)
    words = ["create-queue", "Four", "--target", "Cluster_1*", "--service", f"dds:{cluster.domain}"]
    refused = CliRunner().invoke(command_line(), words)
    assert refused.exit_code != 0
    assert "the configuration has no master now" in refused.output
    assert queues(qsctl) == {one: had}
