"""The drain of a member before its machine is maintained: what is checked first, and what it hands over [QS 7.1.2]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qsctl.cli.confirmation import Hit

if TYPE_CHECKING:
    from qsctl.client.administration import Administration, FromService
    from qsctl.core.admin.reply import ServiceData


def check_drain(administration: Administration, answering: Sequence[FromService[ServiceData]]) -> None:
    """Check that one service answered, and that no queue, and not the configuration, lacks a quorum without it.

    Raises:
        UsageError: several services answered: to drain all members leaves none to hand over to.
        Refused: a queue or the configuration would have no quorum.
    """
    from qsctl.cli.administer._member_moves import all_statuses, check_spared
    from qsctl.client.administration import Administration as OfAll
    from qsctl.errors import UsageError

    names = sorted({each.service for each in answering})
    if len(names) > 1:
        raise UsageError(
            f"one service can be drained, and {', '.join(names)} answer", remedy="Name one, by its application name."
        )
    members = OfAll(administration.connection)
    members.tolerate_silence()
    check_spared(all_statuses(members), names[0])


def handed_over(administration: Administration) -> list[Hit]:
    """Return what a drained service hands over, and to which members."""
    return [Hit(each.replying_service, each.reply.text) for each in administration.drain(is_trial=True)]
