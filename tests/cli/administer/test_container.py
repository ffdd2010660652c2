"""The files for containers: they name what there is, agree with each other, and start a service."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from qsctl.config.signing_keys import create_keys
from qsctl.instant import SECOND_NS, parse_duration
from qsctl.service.run.open_service import GRACE_NS
from qsctl.service.sessions.coordinator import LEAVE_NS
from tests.cli.administer.containers import CLUSTER, CONTAINER, FOLDER, MANIFESTS, POD, PORT, SET
from tests.commands import command_line

IMAGE = (FOLDER / "Containerfile").read_text()
SERVICE = (FOLDER / "service.xml").read_text()
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
(COMMAND,) = re.findall(r"^CMD (\[.*\])$", IMAGE, re.MULTILINE)
WORDS = {"image": json.loads(COMMAND), "kubernetes": CONTAINER["args"]}


def value(words: list[str], option: str) -> list[str]:
    """The values of an option, after a space or an equals sign."""
    after = [words[at + 1] for at, word in enumerate(words) if word == option]
    return after + [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("image", "Containerfile"),
        ("simulator", "Simulator.Containerfile"),
        ("service", "service.xml"),
        ("compose", "compose.yaml"),
        ("kubernetes", "kubernetes.yaml"),
    ],
)
def test_a_command_writes_each_file(name: str, file: str, tmp_path: Path) -> None:
    out = tmp_path / file
    done = CliRunner().invoke(command_line(), ["container", name, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert out.read_text() == (FOLDER / file).read_text()
    printed = CliRunner().invoke(command_line(), ["container", name])
    assert printed.stdout.rstrip("\n") == out.read_text().rstrip("\n")


@pytest.mark.parametrize("place", WORDS)
def test_the_command_of_a_container_is_one_of_serve(place: str) -> None:
    words = WORDS[place]
    done = CliRunner().invoke(command_line(), [*words, "--print-unit"])
    assert done.exit_code == 0, done.output
    assert value(words, "--interface") == ["eth0"]
    assert value(words, "--metrics-port") == [str(PORT)]
    assert value(words, "--metrics-address") == ["0.0.0.0"]


@pytest.mark.parametrize(
    ("xml", "path"), [(SERVICE, "compose"), (CLUSTER, "kubernetes")], ids=["compose", "kubernetes"]
)
def test_a_configuration_is_valid_and_its_key_is_where_it_is_mounted(xml: str, path: str, tmp_path: Path) -> None:
    mounts = {each["name"]: each["mountPath"] for each in CONTAINER["volumeMounts"]}
    where = {"compose": "/run/secrets/qsctl-admin-key", "kubernetes": f"{mounts['key']}/admin.key"}[path]
    (named,) = re.findall("<key_file>(.*)</key_file>", xml)
    assert named == where
    assert value(WORDS["kubernetes"], "--cluster-key") == [f"{mounts['cluster-key']}/cluster.key"]
    create_keys(tmp_path / "admin.key")
    file = tmp_path / "service.xml"
    file.write_text(xml.replace(where, str(tmp_path / "admin.key")))
    done = CliRunner().invoke(command_line(), ["validate", str(file), "--strict"])
    assert done.exit_code == 0, done.output


def test_the_user_is_the_same_everywhere_and_may_write_to_the_volume_alone() -> None:
    (user,) = re.findall(r"^USER (\d+):\1$", IMAGE, re.MULTILINE)
    security = POD["securityContext"]
    assert {security[key] for key in ("runAsUser", "runAsGroup", "fsGroup")} == {int(user)}
    assert f"--owner={user} --group={user} --mode=0700 /var/lib/qsctl" in IMAGE
    assert f"chown {user}:{user} admin.key" in (FOLDER / "compose.yaml").read_text()
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    assert COMPOSE["services"]["queuing"]["read_only"]


def test_the_simulator_is_run_by_the_user_of_the_service_with_compiled_kernels() -> None:
    simulator = (FOLDER / "Simulator.Containerfile").read_text()
    for kind in ("USER", "WORKDIR", "ENTRYPOINT", "ENV", "FROM"):
        of_both = [re.findall(f"^{kind} (.*)$", text, re.MULTILINE) for text in (IMAGE, simulator)]
        assert of_both[0] == of_both[1]
    (module,) = re.findall(r"python -P -m ([\w.]+)", simulator)
    assert importlib.util.find_spec(module)


def test_the_files_of_the_queues_are_on_the_volume() -> None:
    (directory,) = re.findall(r"^WORKDIR (.*)$", IMAGE, re.MULTILINE)
    assert f"queues:{directory}" in COMPOSE["services"]["queuing"]["volumes"]
    mounts = {each["name"]: each["mountPath"] for each in CONTAINER["volumeMounts"]}
    (claim,) = SET["volumeClaimTemplates"]
    assert mounts[claim["metadata"]["name"]] == directory
    assert mounts["configuration"] == str(Path(CONTAINER["args"][1]).parent)
    assert {each["name"] for each in POD["volumes"]} | {claim["metadata"]["name"]} == set(mounts)


def test_the_members_are_the_pods_and_know_each_other_by_the_headless_service() -> None:
    service = MANIFESTS["Service"]
    name, count = MANIFESTS["StatefulSet"]["metadata"]["name"], SET["replicas"]
    pods = [f"{name}-{at}" for at in range(count)]
    assert value(CONTAINER["args"], "--members") == [",".join(pods)]
    assert value(CONTAINER["args"], "--peer") == [f"{pod}.{SET['serviceName']}" for pod in pods]
    assert value(CONTAINER["args"], "--app-name") == ["$(POD_NAME)"]
    assert (service["metadata"]["name"], service["spec"]["clusterIP"]) == (SET["serviceName"], "None")
    assert service["spec"]["publishNotReadyAddresses"], "a member is ready once it found the others"
    assert SET["podManagementPolicy"] == "Parallel", "one alone is never ready"
    assert re.findall("<queue_instances>(.*)</queue_instances>", CLUSTER) == [str(count)]
    assert MANIFESTS["PodDisruptionBudget"]["spec"]["minAvailable"] == count // 2 + 1
    labels = SET["template"]["metadata"]["labels"]
    for selector in (
        service["spec"]["selector"],
        SET["selector"]["matchLabels"],
        MANIFESTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()


def test_probes_ask_the_port_of_the_metrics_for_what_it_answers() -> None:
    (port,) = CONTAINER["ports"]
    assert port["containerPort"] == PORT
    probes = {kind: CONTAINER[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert probes == {
        "startup": {"path": "/healthz", "port": port["name"]},
        "liveness": {"path": "/healthz", "port": port["name"]},
        "readiness": {"path": "/readyz", "port": port["name"]},
    }
    startup = CONTAINER["startupProbe"]
    unit = CliRunner().invoke(command_line(), ["serve", "a.xml", "--print-unit"]).stdout
    (minutes,) = re.findall(r"TimeoutStartSec=(\d+)min", unit)
    assert startup["periodSeconds"] * startup["failureThreshold"] == 60 * int(minutes)
    check = COMPOSE["services"]["queuing"]["healthcheck"]
    assert f"http://127.0.0.1:{PORT}/readyz" in check["test"][-1]
    assert check["start_period"] == f"{minutes}m"
    compile(check["test"][-1], "healthcheck", "exec")
    assert SET["template"]["metadata"]["annotations"]["prometheus.io/port"] == str(PORT)


def test_a_service_has_the_time_to_leave() -> None:
    needed_s = (GRACE_NS + LEAVE_NS) / SECOND_NS
    assert POD["terminationGracePeriodSeconds"] > needed_s
    assert parse_duration(COMPOSE["services"]["queuing"]["stop_grace_period"]) / SECOND_NS > needed_s


def test_the_network_policy_admits_the_ports_of_the_domain() -> None:
    domains = {int(each) for each in re.findall("<domain_id>(.*)</domain_id>", CLUSTER)}
    rules = [port for rule in MANIFESTS["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]]
    udp = [each for each in rules if each["protocol"] == "UDP"]
    assert [(each["port"], each["endPort"]) for each in udp] == [(7400 + 250 * at, 7649 + 250 * at) for at in domains]
    assert {each["port"] for each in rules if each["protocol"] == "TCP"} == {PORT}


def test_a_client_is_a_member_of_the_network_and_names_the_service() -> None:
    client, served = COMPOSE["services"]["client"], COMPOSE["services"]["queuing"]
    assert client["networks"] == served["networks"]
    assert client["environment"]["QSCTL_SERVICE"] == "dds:0?interface=eth0&peer=queuing"
    assert client["environment"]["QSCTL_KEY_FILE"] == re.findall("<key_file>(.*)</key_file>", SERVICE)[0]


@pytest.mark.parametrize(
    "command",
    [
        "kubernetes-validate --strict kubernetes.yaml",
        "check-jsonschema --builtin-schema vendor.compose-spec compose.yaml",
        "hadolint Containerfile",
    ],
)
def test_other_tools_accept_the_files(command: str) -> None:
    program, *words = shlex.split(command)
    found = shutil.which(program, path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
    if found is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run([found, *words], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
