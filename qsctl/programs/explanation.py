"""`qsctl.explain`: explain a setting of a service, or losses and slow clients of a broker or a run."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from qsctl.cli.broker_options import BrokerOptions
from qsctl.cli.configuration.explain_setting import ExplainedSettings, setting
from qsctl.errors import UsageError
from qsctl.programs.called import called
from qsctl.programs.command_result import CommandResult

if TYPE_CHECKING:
    from qsctl.cli.monitoring.explain import ExplainedDiscards
    from qsctl.cli.monitoring.slow_subscriber import ExplainedSlowness


@overload
def explain(subject: Literal["setting"], source: str) -> CommandResult[ExplainedSettings]: ...
@overload
def explain(
    subject: Literal["discards"], source: str | PathLike[str] | None = None, *, broker: str = "",
    broker_timeout: str = "10s", message_vpn: str = "",
) -> CommandResult[ExplainedDiscards]: ...  # fmt: skip
@overload
def explain(
    subject: Literal["slow-subscriber"], source: str | PathLike[str] | None = None, *, broker: str = "",
    broker_timeout: str = "10s", message_vpn: str = "",
) -> CommandResult[ExplainedSlowness]: ...  # fmt: skip
def explain(
    subject: Literal["setting", "discards", "slow-subscriber"],
    source: str | PathLike[str] | None = None,
    *,
    broker: str = "",
    broker_timeout: str = "10s",
    message_vpn: str = "",
) -> CommandResult[Any]:
    """Explain a setting of a service, the discards of a broker or a run, or its slow subscribers.

    Args:
        subject: `setting`, `discards` or `slow-subscriber`, the nouns of `qsctl explain`.
        source: for `setting`, its name or path, or an option of `create-queue`; else a run folder, or a file with a
            broker's captured listings.
        broker: the broker to read instead of a source, `https://HOST:PORT`, or a context with its address.
        broker_timeout: longest wait for a reply of the broker.
        message_vpn: the message VPN of the broker; empty: all.

    Returns:
        A row for each setting, cause of discards, or slow client.

    Raises:
        NotFound: there is no such setting, file or run.
        UsageError: the subject is unknown, or not exactly one of source and broker is given.
        InvalidFile: the file is not a listing of a broker.

    >>> import qsctl
    >>> row = qsctl.explain("setting", "max_delivery_retries")[0]
    >>> row["option"], row["default"]
    ('--max-delivery-retries', '0')
    """
    asked = BrokerOptions(broker=broker, broker_timeout=broker_timeout, message_vpn=message_vpn)
    place = None if source is None else Path(source)
    if subject == "setting":
        if source is None or broker:
            raise UsageError(
                "the subject setting requires the name of a setting, and allows no broker",
                remedy='As in explain("setting", "max_count").',
            )
        return called(lambda: setting(str(source)))
    if subject == "discards":
        from qsctl.cli.monitoring.explain import discards

        return called(lambda: discards(place, broker=asked))
    if subject == "slow-subscriber":
        from qsctl.cli.monitoring.slow_subscriber import slow_subscriber

        return called(lambda: slow_subscriber(place, broker=asked))
    raise UsageError(f"{subject!r} cannot be explained", remedy="Ask for setting, discards or slow-subscriber.")
