"""A stream of the write-ahead log with files of its own, its checkpoints [QS 2.14.2].

Read `logged` first; `checkpoints` are its files, `data_files` the payloads in them, `compaction` rewrites the metadata.
"""
