"""Streams of records on the disk [QS 2.14].

Input: batches of records, each of one stream, whose records have indexes from 1 on; and a codec, through which a store
learns which records carry a payload, which end one, and what is remembered. Output: the records of a stream, in order,
also after a crash, and a report of every damage that was found.

Two kinds of store implement `base.Storage`. `sqlite.store` is a database file: of a queue without in-memory state, and
of the service's state; `<journal_mode>`, `<vacuum>` and `<trace_file>` are its own. `streams.logged` is a stream of the
write-ahead log, of a queue with in-memory state. A process has one log; a turn's batches of all its queues are one
append and, under synchronization FULL, one sync. A stream's files `…_m[index].db` and `…_d[index].db` are its
checkpoints.

A stream's state is its checkpoints and, behind them, the records in the log with a higher index than they cover. The
log records how far they reach; later records were not finished, and is cut when they are opened. Files are only
appended to, or replaced whole by a rename.

Files are reached through the seam `file_system` alone, but for those of a database, which its library opens itself.

Invariants, and why a crash at any place keeps them (`tests/storage/test_power_loss.py` tries):

- append: a group begins with a mark that says how many frames before it were durable. What was not synced may be there
  in any part: from the first gap on it is cut, unless a later mark proves that it was durable; then it is damage, is
  reported, and what is whole behind it is read. So of a group a prefix remains: the dead letter, not the removal alone.
- roll: the new file is there, and its name durable, before the one before is sealed and synced. Each file begins with
  the whole table of streams: any suffix of the log can be read.
- checkpoint: what the oldest file has, and is needed, is written to the streams' own files, and synced; then one group
  of the log says how far those reach, and is synced; then the file goes, and data files in which nothing is held. Until
  that group is durable a restart reads the old state, after it the new one; there is nothing between.
- What is needed of a log file: payloads that are held, what it says of positions in the checkpoints, and what is
  remembered of those that ended. A sample that was consumed before its file is the oldest never leaves the log.
- compaction: the whole state goes to a new file beside the old ones, under a temporary name; then as a checkpoint.
- remove: the log forgets the stream durably before its files go; a stream of the same name is another one.
- a sync that failed: what it covered is cut, counts as never written, and the log goes on in another file.

The replicas of a process have a log of their own, `replicas.replica_log`: what each must have durable before it votes
or confirms, for all of them one append and one sync. A replica has its log in memory: that is read at the start alone.

What is lost, whole files or places in them, is refused by `damage.refuse_loss` before anything is changed; a store goes
on with what is whole where its user says so (`discards_damaged`).

Stores of 0.1, and of the form without a log, are read once where the log does not know the stream; they are its
checkpoints from then on.

Here is what all have in common: the seam `base`, `codec`, `frames`, `names`, and what belongs to a directory (`claim`,
`register`, `room`, `damage`). The rooms: `log`, the write-ahead log; `streams`, a stream of it with files of its own;
`replicas`, the log of replicas; `sqlite`, database files. Read `base`, `codec`, `log.write_ahead_log`,
`log.log_stream`, `streams.logged`, `log.log_upkeep`, in this order; then `streams.checkpoints`.
"""
