"""A cluster whose members change."""

from __future__ import annotations

from qsctl.core.admin.command import ChangeMembers, MemberAction
from tests.core.high_availability.cluster import Cluster, Process, held, write
from tests.core.high_availability.member_commands import RESOURCE, command

ADD, PROMOTE, REMOVE = MemberAction.ADD, MemberAction.PROMOTE, MemberAction.REMOVE
OK = "OK"


class Changed(Cluster):
    """A cluster whose members change."""

    number = 0

    def request(self, process: Process, action: MemberAction, name: str, *, is_trial: bool = False) -> int:
        """Send a change to one process; return the number of the request."""
        self.number += 1
        self.send(process.name, command(self.number, ChangeMembers(RESOURCE, action, name, is_trial)))
        return self.number

    def refusal(self, process: Process, action: MemberAction, name: str) -> str:
        """Send a change that is refused at once; return the reason."""
        number = self.request(process, action, name)
        self.tick()
        code, text = process.replies().get(number, ("", ""))
        assert code == "ERROR"
        return text

    def change(self, process: Process, action: MemberAction, name: str) -> None:
        """Make a change, and wait until it is committed."""
        number = self.request(process, action, name)
        self.run_until(lambda: number in process.replies())
        assert process.replies()[number][0] == OK

    def grow(self, master: Process, name: str) -> Process:
        """Add a process as a learner, and promote it once it has caught up."""
        joined = self.join(name)
        self.change(master, ADD, name)
        self.run_until(lambda: has_caught_up(master, joined))
        self.change(master, PROMOTE, name)
        return joined


def has_caught_up(master: Process, joined: Process) -> bool:
    mastery = master.replica.mastery
    assert mastery is not None
    peer = mastery.progress[joined.name]
    return not peer.is_learner and peer.match_index >= master.replica.log.commit_index


def filled(size: int = 3, count: int = 3) -> tuple[Changed, Process, list[Process]]:
    """A cluster with samples, its master, and the others."""
    cluster = Changed(size)
    master = cluster.elect()
    cluster.send_all(*(write(number) for number in range(1, count + 1)))
    cluster.run_until(lambda: all(len(held(process)) == count for process in cluster))
    return cluster, master, [process for process in cluster if process is not master]


def voters(process: Process) -> list[str]:
    return sorted(process.replica.members.voters)
