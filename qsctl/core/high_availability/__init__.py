"""Replicated queues: one log a replication group, one master an epoch, commit by a quorum [QS 7].

Input: messages of clients, frames of other members, reports of what is durable, the time, and jitter. Output: writes
for the store, frames, answers to clients. Invariants: a frame leaves once the writes that it rests on are durable; an
answer leaves once the entry that it rests on is committed; a committed entry is never replaced.

The log of a group is the records of its queues, so that a slave follows by the same replay that a start uses. The epoch
of an entry is that of the last `EpochBegan` before it.

The content of a frame is a claim. A group is its incarnation, not its name (`groups`); an epoch is followed one step at
a time, or as its members themselves confirm it (`epochs`); a frame that no replica can have sent is refused with a
reason and changes nothing, and a log that cannot be replayed is replaced by that of the master (`replica`). An
assertion here is about a mistake of our own, never about a frame.

Read `member` first: it composes a `ServiceEngine` with one `replica` for each group and is stepped like an engine. A
replica is put together from `log`, `ballot` (elections), `epochs`, `groups`, `progress` (the other replicas), `learner`
(a lost log), `staging` (samples that no log has ordered yet), `clients` (answers that wait), `follower` (the queues)
and `outgoing` (writes and the frames that rest on them); `frames` are the messages between replicas.

The protocol is that of Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm" (Raft, 2014), with
its pre-vote; the names are those of [QS 7].
"""
