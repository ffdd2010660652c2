"""`--broker URL|CONTEXT` of the commands that read listings or client profiles: the broker itself in place of a file.

Decides the sources of address and credentials. The address is on the command line or in a context; a user name with a
password, or a token, is in the environment or in a context, and never on the command line. A context's credentials are
sent to its own broker only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.broker.access import Address, Credentials, Secret, parse_address
from qsctl.cli.context.file import Context, check_that_secrets_are_kept, read_contexts
from qsctl.cli.option_groups import OptionGroup
from qsctl.cli.output.render import note
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.broker.client import HttpClient
    from qsctl.broker.semp import SempBroker

_broker_option = partial(typer.Option, rich_help_panel="Broker")

BROKER: Final = "QSCTL_BROKER"
PROMETHEUS: Final = "QSCTL_PROMETHEUS"
"""Prefix of the variables with a Prometheus server's credentials; a broker's credentials are never sent to it."""
USERNAME: Final = f"{BROKER}_USERNAME"
PASSWORD: Final = f"{BROKER}_PASSWORD"
TOKEN: Final = f"{BROKER}_TOKEN"

BrokerOption = Annotated[
    str,
    _broker_option(
        metavar="URL|CONTEXT",
        help="Broker to read from by SEMP, https://HOST:PORT, or a context with one (`qsctl context add --broker`); "
        f"credentials are in {USERNAME} and {PASSWORD}, in {TOKEN}, or in the context.",
    ),
]
BrokerVpnOption = Annotated[
    str,
    _broker_option(
        metavar="VPN", help="Message VPN of the broker to read.", show_default="every one that the user may see"
    ),
]
BrokerTimeoutOption = Annotated[
    str,
    _broker_option(
        metavar="DURATION", help="Longest wait for one answer of the broker, a duration such as 500ms or 10s."
    ),
]


@dataclass(frozen=True)
class BrokerAddress(OptionGroup):
    """The options of a broker that is queried in place of a file."""

    broker: BrokerOption = ""
    broker_timeout: BrokerTimeoutOption = "10s"

    @contextmanager
    def opened(self, message_vpn: str | None) -> Iterator[SempBroker]:
        """Connect to the broker and yield it.

        Raises:
            UsageError: the address is not valid, or the context does not exist.
            Refused: other users may read the file with the password.
        """
        from qsctl.broker.semp import SempBroker

        with http_client(self.broker, self.broker_timeout, "--broker") as client:
            yield SempBroker(client, message_vpn or "")


@dataclass(frozen=True)
class BrokerOptions(BrokerAddress):
    """The options that select a broker and one of its message VPNs."""

    message_vpn: BrokerVpnOption = ""

    @contextmanager
    def open(self) -> Iterator[SempBroker]:
        """Connect to the broker and yield it, limited to the message VPN; raises as `BrokerAddress.opened`."""
        with self.opened(self.message_vpn) as broker:
            yield broker


@contextmanager
def http_client(place: str, timeout: str, option: str, variables: str = BROKER) -> Iterator[HttpClient]:
    """Yield an HTTP client of the server at an address, or of a context's broker.

    Args:
        place: the address, or the name of the context.
        timeout: the longest wait for one answer, as the user gave it.
        option: the option that gave `place`, for errors.
        variables: prefix of the environment variables with credentials.

    Raises:
        UsageError: the address is not valid, or the context does not exist.
        Refused: other users may read the file with the password.
    """
    from qsctl.broker.client import Bounds, HttpClient
    from qsctl.cli.location import seconds

    address, context = _placed(place, option)
    credentials = _credentials(context, os.environ, variables)
    certificates = os.environ.get(f"{variables}_CA_FILE") or (context.broker.get("broker_ca_file") if context else None)
    attempt_s = seconds(timeout, "--broker-timeout")
    if not attempt_s > 0:
        raise UsageError(f"--broker-timeout {timeout} is not a time to wait", remedy="Write it as in 10s.")
    if credentials.is_given and not address.origin.is_encrypted:
        note(f"Warning: {address.origin} is not encrypted: others on the way can read the credentials")
    bounds = Bounds(attempt_s=attempt_s, request_s=6 * attempt_s)
    path = None if certificates is None else Path(certificates)
    with HttpClient(address, credentials, path, bounds) as client:
        yield client


def _placed(place: str, option: str) -> tuple[Address, Context | None]:
    """Return the address, and the context whose credentials belong to it, or None."""
    contexts = read_contexts()
    if "://" not in place and "@" not in place:
        context = contexts.named(place)
        if "broker" not in context.broker:
            raise UsageError(
                f"context {place} has no broker", remedy=f"Add it: qsctl context add {place} --broker URL …"
            )
        return parse_address(context.broker["broker"], f"context {place}"), context
    address = parse_address(place, option)
    for context in contexts.by_name.values():
        if "broker" in context.broker:
            known = parse_address(context.broker["broker"], f"context {context.name}")
            if known.origin == address.origin:
                return address, context
    return address, None


def _credentials(context: Context | None, environment: Mapping[str, str], variables: str) -> Credentials:
    """Return the credentials of the environment, else those of the context; a token has precedence over a password."""
    if token := environment.get(f"{variables}_TOKEN"):
        return Credentials(token=Secret(token))
    if username := environment.get(f"{variables}_USERNAME"):
        return Credentials(username, Secret(environment.get(f"{variables}_PASSWORD", "")))
    if context is None or not (context.secrets or "broker_username" in context.broker):
        return Credentials()
    if context.secrets:
        check_that_secrets_are_kept()
    if "broker_token" in context.secrets:
        return Credentials(token=context.secrets["broker_token"])
    return Credentials(context.broker.get("broker_username", ""), context.secrets.get("broker_password", Secret("")))
