"""Durable storage of streams of records on disk [QS 2.14].

Input: batches of records, each of one stream, whose records have indexes from 1 on; and a codec, through which a store
finds which records carry a payload, which end one, and how many ended ones to keep. Output: the records of a stream, in
order, also after a crash, and a report of every damaged place that was found.

Two kinds of store implement `base.Storage`. `sqlite.store` is a database file, for a queue without in-memory state and
for the service's state; only it obeys `<journal_mode>`, `<vacuum>` and `<trace_file>`. `streams.logged` is a stream of
the write-ahead log, for a queue with in-memory state. A process has one log; a turn's batches of all its queues are one
append and, under synchronization FULL, one sync. A stream's files `…_m[index].db` and `…_d[index].db` are its
checkpoints.

A stream's state is its checkpoints, followed by the records in the log with a higher index than they cover. The log
records the extent of the checkpoints; anything behind it was not finished, and is cut when they are opened. Files are
only appended to, or replaced as a whole by a rename.

Files are reached through the interface `file_system` alone, except databases, which SQLite opens itself.

Invariants, and why a crash at any point keeps them (tested by `tests/storage/test_power_loss.py`):

- append: a group begins with a mark that records how many frames before it were durable. After a crash any part of the
  unsynced frames may exist: they are cut at the first gap, unless a later mark proves that they were durable; then the
  gap is damage, is reported, and intact frames behind it are read. So a prefix of a group remains: a dead letter may
  remain without the removal after it, but not the removal without the dead letter.
- roll: the new file exists, and its name is durable, before its predecessor is sealed and synced. Each file begins with
  the whole table of streams: any suffix of the log can be read.
- checkpoint: needed records of the oldest file are written to the streams' own files, and synced; then one group of the
  log records the extents of those, and is synced; then the log file is deleted, and data files without held payloads.
  Until that group is durable a restart reads the old state, afterwards the new one.
- Needed in a log file are held payloads, records about positions in the checkpoints, and those of ended positions that
  are still remembered. A sample that is consumed before its file becomes the oldest is never copied.
- compaction: the whole state is written to a new file beside the old ones, under a temporary name; then the steps of a
  checkpoint follow.
- remove: the log drops the stream durably before its files are deleted; a later stream of the same name is a new one.
- failed sync: the frames that it covered are cut and count as never written, and the log continues in another file.

The replicas of a process have a log of their own, `replicas.replica_log`, of records that must be durable before a
replica votes or confirms; one append and one sync cover all replicas. A replica keeps its log in memory, so the files
are read at the start only. The two logs share the code of their files (`log.segment_log`), not the files: samples leave
the queues' log one by one, for checkpoints, and a snapshot supersedes a stream of the replicas' log as a whole; and no
vote waits for the sync of a queue that is not replicated.

What has left the log is in two kinds of file, segments and database files. Measured side by side, neither replaces the
other: the docstring of `sqlite.store` has the figures.

After a loss of files or of places in them `damage.refuse_loss` raises an error before any file is changed; a store
continues with the intact records where its user accepts the loss (`discards_damaged`).

Stores of version 0.1, and those without a log, are opened as the checkpoints of a stream that the log does not have
yet.

Common modules: the interface `base`, `codec`, `frames`, `names`, and for a directory (`claim`, `register`, `room`,
`damage`). Packages: `log`, the write-ahead log; `streams`, a stream of it with files of its own; `replicas`, the log of
replicas; `sqlite`, database files. Read `base`, `codec`, `log.write_ahead_log`, `log.log_stream`, `streams.logged`,
`log.log_upkeep`, in this order; then `streams.checkpoints`.
"""
