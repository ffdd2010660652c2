"""Replicated queues: one log a replication group, one master an epoch, commit by a quorum [QS 7].

What comes in: messages of clients, frames of other members, reports of what is durable, the time, and jitter. What goes
out: writes for the store, frames, answers to clients. What always holds: a frame leaves once what it rests on is
durable; an answer leaves once what it rests on is committed; a committed entry is never replaced.

The log of a group is the records of its queues, so that a slave follows by the same replay that a start uses. The epoch
of an entry is that of the last `EpochBegan` before it.

Read `member` first: it composes a `ServiceEngine` with one `replica` for each group and is stepped like an engine. A
replica is put together from `log`, `ballot` (elections), `progress` (the other replicas), `learner` (a lost log),
`staging` (samples that no log has ordered yet), `clients` (answers that wait), `follower` (the queues) and `outgoing`
(writes and the frames that rest on them); `frames` is what travels between replicas.

The protocol is that of Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm" (Raft, 2014), with
its pre-vote; the names are those of [QS 7].
"""
