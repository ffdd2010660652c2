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
log records how far they reach; later records were not finished, and are cut when they are opened. Files are only
appended to, or replaced whole by a rename.

Files are reached through the seam `file_system` alone, but for those of a database, which its library opens itself.

Invariants, and why a crash at any place keeps them (`tests/storage/test_power_loss.py` tries):

- append: a group begins with a mark that records how many frames before it were durable. Of unsynced frames any part
  may exist: from the first gap on they are cut, unless a later mark proves that they were durable; then the gap is
  damage, is reported, and whole frames behind it are read. So of a group a prefix remains: the dead letter, not the
  removal alone.
- roll: the new file exists, and its name is durable, before the one before is sealed and synced. Each file begins with
  the whole table of streams: any suffix of the log can be read.
- checkpoint: needed records of the oldest file are written to the streams' own files, and synced; then one group of the
  log records how far those reach, and is synced; then the file is deleted, and data files without held payloads. Until
  that group is durable a restart reads the old state, after it the new one; there is no state between.
- Needed of a log file: held payloads, its records about positions in the checkpoints, and those of remembered positions
  that ended. A sample that was consumed before its file is the oldest never leaves the log.
- compaction: the whole state is written to a new file beside the old ones, under a temporary name; then as a
  checkpoint.
- remove: the log drops the stream durably before its files are deleted; a stream of the same name is another one.
- a sync that failed: the frames that it covered are cut and count as never written, and the log continues in another
  file.

The replicas of a process have a log of their own, `replicas.replica_log`: records that must be durable before a replica
votes or confirms, for all of them one append and one sync. A replica has its log in memory: that is read at the start
alone.

A loss, of whole files or places in them, is refused by `damage.refuse_loss` before anything is changed; a store
continues with the whole records where its user accepts that (`discards_damaged`).

Stores of 0.1, and of the form without a log, are read once where the log does not have the stream; they are its
checkpoints from then on.

Common modules: the interface `base`, `codec`, `frames`, `names`, and those of a directory (`claim`, `register`, `room`,
`damage`). Packages: `log`, the write-ahead log; `streams`, a stream of it with files of its own; `replicas`, the log of
replicas; `sqlite`, database files. Read `base`, `codec`, `log.write_ahead_log`, `log.log_stream`, `streams.logged`,
`log.log_upkeep`, in this order; then `streams.checkpoints`.
"""
