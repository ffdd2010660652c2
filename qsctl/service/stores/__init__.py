"""The stores of a service, and its recovery after a restart, a crash or a failed write to the disk [QS 2.14].

Input: batches of records of turns (`core.turn`). Output: the records that are durable, which a start replays. This is
the contract of recovery; `qsctl.storage` documents that of a store's own files, and `qsctl.core.high_availability` that
of replicated queues.

Promises, under `<synchronization>` FULL; under NORMAL and OFF they hold for a process that ends in any way, and a loss
of power may take the last records:

- A sample that was answered 1, and the effect of a command that was answered OK, survive any crash. A sample that was
  not answered is restored whole, or not at all.
- A sample whose removal is durable is not restored; one whose removal is not durable is delivered again, flagged as
  redelivered. No message states that a removal is durable, so that its sync may be deferred to that of the next group.
- A dead sample is in its own queue or among the dead letters, never in neither; the same holds for a moved sample and
  its two queues.
- A loss is never silent: files are reported that are missing, damaged, older than the register records, or of another
  queue or another creation of the queue. A service does not start on them unless its user accepts the loss. (Under OFF,
  where a loss of power may leave anything, only files of another queue or service prevent the start.)

Assumptions: what a sync covered is durable once it has returned; what a failed sync covered may be durable or not. No
other program changes the files; the claim excludes other services of qsctl (`storage.claim`).

Writers: one process has the claim, and passes it to the session processes that it starts, each with a log of its own.
The process that hosts a queue writes the queue's stream; the process that has the service's state writes that. One
thread at a time writes; a sync may run in another thread.

The order of a group of turns, and what a crash after each step leaves:

1. The stores of created queues are opened; for the first of them, the claim is taken. A crash leaves files of a queue
   that is not in the state; they are kept for a later queue of this name.
2. Dead letters are appended before removals: in one log in one append, of which a crash leaves a prefix; of several
   files, one is synced before the next is written. A crash may leave a dead sample in both queues; the restart removes
   it from its own queue (`complete_moves`). The batches of a move by command are written in order, in the same way.
3. The stores are synced. A crash before the end of the sync leaves any part of what was written; none was answered.
4. Changes of the configuration are appended, each with a sync, once the records before them are durable. Then the files
   of deleted queues are deleted; the next start deletes those that a crash left.
5. The records found in the files of created queues are replayed into the queues (`restore.adopt`).
6. The group is reported as durable, and its messages are released. A producer whose answer a crash lost writes its
   sample again, and the queue drops the duplicate by its identity.

The order of a start (`restore.restore`):

1. The claim is taken, the register of extents is read, and then the service's state, which replaces the configuration
   that was read [QS 2.14.1]. A loss in the state refuses the start here.
2. The logs of session processes that have ended are checkpointed into the queues' own files. A crash during this step
   leaves the log, and the next start repeats the step.
3. Each queue's store is opened; an incomplete tail, which a crash left, is truncated. The records are replayed, except
   for queues whose samples are not restored (`<restore>` false); a record lost to damage is inferred where the other
   records imply it (`restore.mended`).
4. The losses are judged (`Stores.judge`): any loss, or files of another creation of a queue, refuses the start; with
   `--discard-damaged` the damaged files are set aside, and the undamaged records are used. Only after that are the
   queues emptied that are not restored, and is the register written.
5. Left-over files of deleted queues are deleted. The log's records of queues that are not hosted are copied to files of
   their own, which are kept.
6. Deliveries in progress are void: their samples are Enqueued again, flagged; expired samples, and those without
   attempts left, are dead-lettered. These records are in the first turn; a crash before they are durable repeats this
   step.

A failed write or sync while the service runs affects the queue whose store it is (`recovery`, `_failures`): its
records of that group count as never written, producers are answered 0, none of its samples is delivered, and the queue
is reset to the content of its store and suspended. A failed sync is not retried: the queue resumes once its whole
content is in new files and synced. A change of the configuration that cannot be stored is answered with an error though
it is in force, and no other change is made before the whole configuration is stored. A reserve of disk space is freed
for records that must be written.

Refused: a second service on the same files (`Refused`, after `storage.claim.WAIT_S`); two queues whose files would have
one name; creating a queue whose left-over files are damaged; any loss (`Damaged`, which names file and place).

Shown by, in tests/service where no other folder is named:

- crashes: `test_no_kill_loses_a_kept_sample_or_restores_an_acknowledged_one`,
  `test_no_kill_loses_doubles_or_unmarks_a_sample_among_dead_letters`,
  `test_no_kill_loses_a_moved_sample_or_makes_it_two`,
  `test_each_sample_is_in_one_queue_wherever_the_writes_of_a_move_end`; loss of power: tests/storage,
  `test_what_an_append_returned_for_survives_a_power_failure`;
- the start: `test_files_that_belong_to_a_queue_deleted_at_once_with_a_crash_are_deleted`,
  `test_a_session_that_outlives_its_service_holds_the_stores_and_a_new_one_waits_for_it`,
  `test_a_created_subscriber_finds_the_samples_of_its_queues_and_of_no_others`; tests/storage,
  `test_unopened_streams_are_checkpointed_or_carried_over`;
- losses: `test_damage_is_restored_around_and_never_silent`, `test_a_store_put_back_to_what_it_was_before_is_reported`,
  `test_files_of_two_queues_that_were_exchanged_are_refused`,
  `test_serve_refuses_damaged_files_until_they_are_discarded_once`, `test_a_start_that_damage_refuses_empties_no_queue`;
- a disk whose writes fail: `test_a_store_that_fails_suspends_its_queue_until_the_whole_of_it_is_stored_anew`,
  `test_a_sync_that_failed_is_not_tried_again`,
  `test_a_configuration_that_cannot_be_stored_is_answered_with_an_error_and_stored_later`,
  `test_a_sample_written_behind_a_flush_is_refused_when_both_cannot_be_stored`;
- two services: `test_a_second_service_of_the_same_name_is_refused_with_the_holder_of_the_stores`.

Read `stores.py` first, then `recovery.py` and `restore.py`; `_store_files.py` maps queues to files, and
`_queue_codec.py` encodes and decodes records.
"""
