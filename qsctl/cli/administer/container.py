"""`qsctl container …`: the files that run a service in containers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from qsctl.cli._shipped_file import ForceOption, OutOption, ShippedFile, shipped_file
from qsctl.cli.command import Commands
from qsctl.cli.panels import SERVICE_PANEL

COMMANDS: Final = Commands(
    panel=SERVICE_PANEL, group="container", help="Files that run a service with Podman, Docker or Kubernetes."
)

FOLDER: Final = Path(__file__).resolve().parents[2] / "containers"


@COMMANDS.command("image", examples=("qsctl container image --out Containerfile",))
def image(out: OutOption = None, force: ForceOption = False) -> ShippedFile:
    """Write a Containerfile: an image of the service and its administration, without the simulator and Spark."""
    return shipped_file(FOLDER / "Containerfile", out, force=force)


@COMMANDS.command("simulator", examples=("qsctl container simulator --out Simulator.Containerfile",))
def simulator(out: OutOption = None, force: ForceOption = False) -> ShippedFile:
    """Write a Containerfile: an image of all of qsctl, in which the simulator's kernels are compiled."""
    return shipped_file(FOLDER / "Simulator.Containerfile", out, force=force)


@COMMANDS.command("service", examples=("qsctl container service --out service.xml",))
def service(out: OutOption = None, force: ForceOption = False) -> ShippedFile:
    """Write the configuration of the service that `container compose` runs."""
    return shipped_file(FOLDER / "service.xml", out, force=force)


@COMMANDS.command("compose", examples=("qsctl container compose --out compose.yaml",))
def compose(out: OutOption = None, force: ForceOption = False) -> ShippedFile:
    """Write a Compose file: one service with its volume, health check and key, and a client for commands."""
    return shipped_file(FOLDER / "compose.yaml", out, force=force)


@COMMANDS.command("kubernetes", examples=("qsctl container kubernetes --out kubernetes.yaml",))
def kubernetes(out: OutOption = None, force: ForceOption = False) -> ShippedFile:
    """Write manifests of Kubernetes: three services that replicate their queues, with probes and their volumes."""
    return shipped_file(FOLDER / "kubernetes.yaml", out, force=force)
