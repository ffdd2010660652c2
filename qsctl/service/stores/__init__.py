"""The stores of a service and its recovery: from a start, from a crash, and from a disk that refuses [QS 2.14].

Input: batches of records of turns (`core.turn`). Output: what is durable, and at a start the records again. This is the
contract of recovery; that of a store's own files is the docstring of `qsctl.storage`, that of replicated queues the one
of `qsctl.core.high_availability`.

Promises, under `<synchronization>` FULL; under NORMAL and OFF they hold for a process that ends in any way, and a loss
of power may take the last records:

- A sample that was answered 1, or a command that was answered OK, is there after any crash. A sample without an answer
  is there whole, or not at all.
- A sample whose removal is durable does not come back; one whose removal is not comes again, flagged as redelivered.
  No message states that a removal is durable, so that its sync may be deferred to the next group's.
- A dead sample is in its own queue or among the dead letters, and never in neither; the same holds for a moved one.
- A loss is never silent: files that are missing, older than the register has them, of another queue or another creation
  of it, or damaged are reported, and a service does not start on them unless its user accepts the loss. (Under OFF,
  where a loss of power may leave anything, only files of another queue or service keep it from starting.)

Assumptions: a sync that returned is durable; what a failed one covered may be durable or not. Files change by this
service alone, which the claim ensures for services of qsctl (`storage.claim`).

Who may write what. One process has the claim, and hands it to the session processes that it starts, each with a log of
its own. The process that hosts a queue writes its stream; the one that has the service's state writes that. A write is
in progress in one thread at a time; a sync may run in another.

The order of a group of turns, and what a crash after each step leaves:

1. Stores of queues that are created are opened, or the claim is taken for the first of them. Files of a queue that the
   state does not have: kept, for a queue of this name later.
2. Dead letters are appended before removals: in one log as one append, of which a crash leaves a prefix; of several
   files the first is synced before the next is written. A dead sample may then be in both queues: the restart removes
   it from its own (`complete_moves`). A move by command is written in the order of its batches in the same way.
3. Sync. Before its end any part of what was written may be there; nothing of it was answered.
4. Changes of the configuration are appended, each synced, once the records before them are durable. Then files of
   deleted queues are deleted; the next start deletes those that a crash left.
5. What was found in the files of created queues is replayed into them (`restore.adopt`).
6. The group is reported as durable, and its messages leave. A producer that a lost answer did not reach writes again,
  and its queue drops the duplicate by its identity.

The order of a start (`restore.restore`):

1. The claim; the register of extents; the service's state, which takes the place of the configuration that was read
   [QS 2.14.1]. A loss in it is refused here.
2. The logs of session processes that are gone are checkpointed into the queues' own files. A crash in between leaves
   the log, and this step is done again.
3. Each queue's store is opened; a tail that a crash cut short is cut. The records are replayed, but for queues whose
   samples are not restored (`<restore>` false); one that damage took is inferred where the others imply it
   (`restore.mended`).
4. Judgment (`Stores.judge`): any loss, or files of another creation of a queue, refuses the start; with
   `--discard-damaged` the damaged files are set aside, and what is whole is used. Only then is emptied what is not
   restored, and the register written.
5. Left-over files of deleted queues are deleted. What the log has of queues that are not hosted goes to files of their
   own, for another time.
6. Deliveries in progress are void: their samples are Enqueued again, flagged; expired ones, and those without attempts
   left, go to the dead letters. These records are in the first turn; until they are durable a crash repeats this step.

A disk that refuses while the service runs concerns the queue whose store it refuses (`recovery`, `withholding`): its
records of that group count as never written, producers are answered 0, nothing of it is delivered, the queue is set
back to what its store holds and suspended. A sync that failed is not tried again: the queue goes on once the whole of
it is in new files and synced. A change of the configuration that cannot be stored is answered with an error though it
is in force, and no other is made before the whole configuration is stored. A reserve of room on the disk is given up
for what must be written.

Refused: a second service on the same files (`Refused`, after `storage.claim.WAIT_S`); two queues whose files would have
one name; a queue to be created whose left-over files are damaged; whatever is lost (`Damaged`, which names file and
place).

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
- a disk that refuses: `test_a_store_that_fails_suspends_its_queue_until_the_whole_of_it_is_stored_anew`,
  `test_a_sync_that_failed_is_not_tried_again`,
  `test_a_configuration_that_cannot_be_stored_is_answered_with_an_error_and_stored_later`,
  `test_a_sample_written_behind_a_flush_is_refused_when_both_cannot_be_stored`;
- two services: `test_a_second_service_of_the_same_name_is_refused_with_the_holder_of_the_stores`.

Read `stores.py` first, then `recovery.py` and `restore.py`; `_store_files.py` has which files are whose,
`_queue_codec.py` what of a record a store must know.
"""
