"""The write-ahead log of a process: numbered files of checksummed frames, shared by its streams [QS 2.14.2].

Read `write_ahead_log` first, then `segment_log` and `segment_file` below it, and `log_stream`, `log_usage` and
`log_upkeep` above it.
"""
