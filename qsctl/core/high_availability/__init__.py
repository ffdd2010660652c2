"""Replicated queues: one log a replication group, one master an epoch, commit by a quorum [QS 7].

The protocol is that of Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm" (Raft, 2014), with
its pre-vote, here a *trial*; the names are those of [QS 7]. This is its contract, as `core.turn` has that of a driver.

Promises, as long as more than half of the members that have a vote keep their logs:

- A sample that was answered 1 is in the logs of a quorum. It is delivered and acknowledged, or becomes a dead letter,
  expires, or is flushed or deleted with its queue. A committed entry is never replaced.
- An attempt to write that every member answered 0 is in no log and never will be. Where a replica cannot be sure of
  either it does not answer, and the producer writes again; identities suppress the duplicate (`producers`).
- An epoch has at most one master. At most one delivery of a sample lacks the flag *redelivered*.
- Replicas that applied the same entry are in the same state: a slave follows by the replay that a start uses.

Assumptions:

- Clocks run at the same rate; they may differ, and be set back (`steady_time`).
- A sync that returned is durable. Only under `<synchronization>` FULL is a sync waited for at all.
- The network may lose, double, delay and reorder letters. A forged one that no member can have sent is refused. With a
  key of the cluster letters are signed, and only its holders can write in a member's name (`letter_signatures` of the
  transport, which has what that promises); without one every process that can write to the domain can.
- A member that was removed is stopped: alone it disturbs nothing, but a quorum of removed members that all lost their
  logs would form a group of their own.

Who writes what, and when. The log of a group is the records of its queues (`log`); the epoch of an entry is that of
the last `EpochBegan` before it. Beside it a replica stores its hard state (`ballot.HardState`).

- Entries: the master's queues alone decide what becomes of samples, also of time-outs, expiry and retries; what they
  record is appended. A slave appends what the master of its epoch sends; for that it takes back entries of its own that
  contradict it and are not committed.
- Snapshot: a replica replaces entries by the committed state that they led to (`compaction`), in memory, and in its
  files when these are compacted; or it installs the master's.
- Epoch: raised by a candidate's canvass or a master's frame, to at most one above the highest in which a quorum was
  seen (`epochs`); a trial raises none. Vote: one an epoch.
- Floor: the longest log of those present when a group forms anew; a shorter one gets no vote after that.
- Incarnation: of the group, from CREATE, else drawn by the first master. Frames of another creation of the queue have
  no effect (`groups`).

The steps of a sample, and what a crash of the master leaves after each:

1. A write reaches the replicas; a slave keeps it aside (`staging`). Nothing of it is left: the producer has no answer,
  and writes again.
2. The master's queue records `Enqueued`, and the entry is to be written. As after 1, or as after 3.
3. The entry is durable at the master, and only then sent to the others (`mastery`), without a payload of more than 64
   octets that they have from the producer. The next master either has the entry, and commits it with one of its own
   epoch, or does not, and the entry is taken back where it is. Until that is decided no replica that has it answers.
4. A slave holds entry and payload durably, and confirms. It votes for no log that is less up to date than its own.
5. A quorum holds the entry, and it or one behind it is of the master's own epoch: it is committed (`progress`). Answer
   1 leaves. Every later master has the entry, and answers 1 to who asks again.
6. `Assigned` is recorded. The delivery leaves once that is committed; or, where `synchronize_consumer_assignment` is
   false and the log allows it (`SendsAhead`), once the sample's own entry is; never before an entry of the own epoch is
   (`clients`). The next master delivers what was assigned to the same consumer first, flagged; where the log allowed to
   send ahead, it flags all samples that are held.
7. The consumer's acknowledgment is recorded as `Removed`. Until that is committed the next master delivers the sample
   again, flagged.

Runs. Samples of one producer that arrive together are one object in the master's queues, and so are their records in
the log, in frames to members that understand it, and among the samples that wait at a slave. That changes nothing of
the above: each sample has an index of its own, and a bound inside a run divides it (what fits into a frame, is
confirmed, committed, taken back, or has arrived at a slave). A frame of the producer is processed one by one where
samples of it may differ: written again, refused before, known here, or to be passed on. A slave's queues replay runs,
too; files and snapshots have single samples.

Elections (`replica`, `ballot`, `allegiance`). A replica without a sign of a master for `master_timeout`, and a random
part of it more, begins a trial. With a quorum of it, it votes for itself in the next epoch, durably, and asks the
others. It waits as long for their votes before the next trial, and longer after a candidacy in vain
(`replica.WAIT_FACTOR_MAX`); votes for its candidacy count as long as it is in that epoch and follows no other. They
vote for one candidate an epoch, whose last entry is no less up to date than theirs: first by epoch, then by index. A
vote leaves once it is durable. A replica that confirmed a master's frame votes for no other within `master_timeout`,
nor within that time after its start, unless it is new to the group. A master without confirmations of a quorum for
`master_timeout`, twice that before the first one, or whose clock was set back, follows. One that leaves in order, or
that an operator asks to, waits until another holds all, and hands over (`Farewell`); one that is drained is no
candidate before it restarts. A master also hands over by itself to a voter of a higher priority that has been level for
long (`hand_over`), and in an election lower priorities wait longer (`preferences`); the log alone decides who is
elected.

Members (`members`). A group is formed with `queue_instances` members that have a vote; one that a command creates after
the members of a replicated configuration changed, with those, which the entry of the command names. Its hard state has
them, and its first master lists them in the log, for a member that loses both. From then on its log lists them:
an operator's command adds a learner, which receives the log and counts for no quorum, gives one that has caught up a
vote, or removes a member. One member is changed at a time, so that any quorum of the former list overlaps with any of
the latter. A list takes effect at a replica once it is appended there, durable or not, and is taken back with its
entry; snapshots contain the list that is committed. The master refuses a change before an entry of its own epoch and
the change before are committed, else two masters could each change the same list and have disjoint quorums; and one
after which the voters that answered within `master_timeout` would be no quorum. A master that is removed leads until
that is committed, does not count itself, and hands over. A replica that is being removed may still be a candidate, for
it alone may have the entry: one in the latest list or in the one before, which was committed when a master wrote the
latest. One that knows that its removal is committed may not. Voters are counted by the candidate's list: a replica
votes for a process that it does not list, also where it does not list itself. So canvasses and entries of an unlisted
process have an effect where they are of this group; votes and confirmations have none. Its epoch may be far ahead, and
all that the receiver lists may be gone: its answer to a question of the receiver counts where it has more of the log
(`epochs`). One that was removed and missed it gets no vote of those that did not: their logs are more up to date.

Witnesses. A voter that holds the entries without payloads (`for_witness`); an operator's command adds it as one, and
the list of members in the log names it for good, so that its log never counts as one with payloads. A master sends it
entries once that list is committed, and only those that each other voter has that was level lately (`held_index`):
otherwise its log would be ahead of those that could lead. It begins no election, keeps no samples of producers, and
what it has is no content when a group is formed by force. At least two voters hold payloads beside one.

Losses. A replica whose log is gone, damaged, or shorter than at its orderly close, and any volatile one that restarts,
is a *learner*: it has no vote and counts for no quorum until an entry is committed that the others wrote after its loss
(`ReplicaRejoined`). Where too few logs are left, a group forms by an operator's command (`qsctl member force-quorum`);
volatile replicas form anew once all are present. A master on whose disk no sync ends for `master_timeout` follows, and
begins no election until one ends (`disk_watch`); one on a quick disk, whose syncs its loop waits for, is silent as
long. A write or sync that failed is not tried again: the replica is silent until its process starts again.

Refused without effect, counted, and reported (`FrameRefused`): a vote, confirmation or sample of a process that is not
a member, and any frame of another creation of the queue; an epoch that is too far ahead; entries or a snapshot of a
second master of the epoch, of a queue of another group, or against a committed entry; a confirmation of what was not
sent. Entries and canvasses of an earlier epoch are answered with the own one. A replica that cannot replay what is
committed falls back alone: a master gives it the whole log. An assertion here is about a mistake of our own, never
about a frame.

Versions: a letter contains its sender's version (`versions`), a number that rises with each change of what members
send each other. A member of version N understands every frame and record that members of version N or lower send. So a
frame goes to a member only if the member's latest letter contains a version that understands it, and a record that
all must replay is written only once all members do; a member that sent no letter yet counts as the earliest version.
What arrives nevertheless of a later version, a kind of frame or a field behind the last known one, is skipped alone,
counted (`qsctl_skipped_parts_total`) and reported with its sender. The records and the meaning of a field never change
under the same number.

Limits: a frame has at most `_progress.ENTRIES_MAX` entries with `FRAME_BYTES_MAX` octets of payloads; a larger sample
is alone in its frame, and a frame that finds out where logs agree has `PROBE_BYTES_MAX`. To a replica that does not
confirm, a master sends ahead `UNCONFIRMED_MAX` entries, or payloads of `UNCONFIRMED_BYTES_MAX` octets, and then
heartbeats alone: what waits for one replica of a group is that and a frame more, or twice that where frames were lost
and are sent again. Where the groups together have too much waiting for a process, its frames of samples are dropped and
sent again later (`replica_link.WAITING_PIECES_MAX`).

Order: heartbeats, canvasses, votes, confirmations and rolls pass frames of samples that wait, at the sender and at the
receiver (`frames.passes`); all other frames arrive in the order of sending. That is safe in any case, for the network
is assumed to reorder. But nothing must be sent again because of it: a replica that reads a heartbeat about the end of
the log before the entries would report these as lost. So a heartbeat claims nothing about the log while frames are on
their way; one of entries without records follows these, by which the replica finds out whether some were lost; and
answers to frames from before the master began to send again are outdated. A `Farewell` follows the entries that the
successor needs. A member whose version has no `Heartbeat` receives all frames in the order of sending.

A snapshot travels in frames of the same bounds (`_snapshot_pieces`), each confirmed. A replica reports how much of it
has arrived, so that a transfer continues behind lost pieces, and with a master that was restarted, or another one, that
has the same snapshot. A replica that restarts begins it anew, since pieces are not stored. Memory: a master keeps a
snapshot, whose payloads are those of its samples, until its recipient has it; a replica has at most one arriving
snapshot a group, no larger than what its queues hold afterwards. A member whose version does not understand pieces is
sent one frame, bounded by the transport alone (`LETTER_BYTES_MAX`).

Shown by these tests, in tests/core/high_availability where no other folder is named:

- promises, under drawn faults: P1 to P15 of `sim.world.invariants`, tests/world, `test_no_seed_breaks_a_rule`; broken
  replicas are caught by `test_random_search_catches` and `test_its_schedule_catches` there; with processes that are
  killed, tests/dds, `test_no_accepted_sample_is_lost_when_masters_are_killed`;
- what waits for the disk: `test_a_vote_leaves_once_it_is_durable`,
  `test_a_confirmation_leaves_once_the_entry_is_durable`, `test_a_master_gives_away_only_what_is_durable_at_itself`;
- commit: `test_an_entry_of_an_older_epoch_is_not_committed_by_counting`, `test_a_committed_entry_is_never_taken_back`;
- answers: `test_a_replica_is_silent_on_what_is_in_its_log_and_not_committed`,
  `test_without_a_master_every_replica_rejects_what_it_never_had`;
- deliveries: `test_nothing_is_delivered_before_the_first_entry_of_the_own_epoch_is_committed`,
  `test_what_was_assigned_goes_to_the_same_consumers_before_anything_else`,
  `test_while_samples_are_sent_ahead_everything_held_is_flagged_after_a_take_over`;
- elections: `test_the_first_candidacy_elects_a_lasting_master_however_late_the_votes_come`,
  `test_a_voter_votes_once_an_epoch_also_after_a_restart`, `test_a_trial_raises_no_epoch`,
  `test_a_voter_that_restarts_withholds_its_vote_as_long_as_a_master_may_count_on_it`;
- hand-over by command: test_step_down.py, and to a preferred member: test_priorities.py, tests/world,
  `test_preferred_instance_is_the_master_once_faults_have_ended`;
- members: test_member_changes.py, test_created_members.py, their status: test_member_status.py, and under drawn faults
  `test_nothing_accepted_is_lost_while_members_change_under_random_faults`;
- witnesses: test_witnesses.py, and under drawn faults those of members;
- losses: `test_a_replica_with_a_new_disk_has_no_vote_until_a_quorum_without_it_committed_an_entry`,
  `test_a_store_that_fails_silences_its_replica_and_another_takes_over`,
  `test_a_master_whose_disk_hangs_follows_until_the_disk_answers`, tests/dds, test_hanging_disk.py, tests/service,
  `test_a_log_that_lost_its_end_after_an_orderly_stop_has_no_vote`;
- snapshots: `test_snapshot_comes_in_bounded_pieces_and_no_more_of_them_than_may_be_unconfirmed`,
  `test_transfer_of_a_snapshot_goes_on_behind_a_lost_piece`,
  `test_transfer_of_a_snapshot_goes_on_with_a_master_that_was_restarted`; versions: test_versions.py, and
  with processes from wheels of two commits tests/dds, test_two_versions.py;
- limits: test_mastery.py, tests/service,
  `test_large_writes_are_encoded_and_written_in_another_thread` and `test_writes_go_on_while_the_log_is_compacted`, and
  tests/dds, test_large_held.py (memory, too),
  `test_frames_without_samples_are_kept_while_a_member_does_not_read_and_those_of_samples_are_not`;
- order: `test_heartbeats_that_pass_a_backlog_keep_a_slow_replica_and_have_nothing_sent_twice`, tests/dds,
  `test_heartbeat_passes_the_samples_that_wait_for_a_member`, and tests/world,
  `test_member_that_catches_up_over_a_slow_link_receives_heartbeats_in_time`; refusals: test_frames.py;
- runs: test_log_of_runs.py, test_staged_runs.py,
  `test_every_prefix_of_a_log_of_runs_replays_to_the_state_that_wrote_it`, and under drawn faults
  `test_nothing_accepted_is_lost_where_samples_are_runs`;
- replay: `test_every_prefix_of_a_log_replays_to_the_state_that_wrote_it`.

Read `member` first: it composes a `ServiceEngine` with one `replica` for each group, is stepped like an engine, and has
the loop of its driver in its docstring. A replica is put together from `log`, `members`, `ballot` (elections),
`epochs`, `groups`, `mastery` and `progress` (the other replicas), `preferences` and `hand_over` (to another master),
`learner` (a lost log), `producers` and `staging` (samples that no log has ordered yet), `clients` (answers that wait),
`follower` (the queues) and `outgoing` (writes and the frames that rest on them); `frames` are the messages between
replicas. `configuration` orders the commands that create and delete queues, by a log of the same kind [QS 7.2].
"""
