"""The wire: types and frames that a service, its clients and its administrators exchange over DDS, octet by octet.

Input and output: octets of DDS samples on one side, messages of the core (`core.messages`, `core.admin`) or plain data
on the other. This is its contract; topics, quality of service and channels are those of `transport.dds`, the letters
between members of a cluster those of `transport.dds.replicas`.

Promises:

- What one side packs the other unpacks as an equal message. Samples in one frame keep their order, and so do the frames
  of one writer.
- Types of [QS] have its names, members and order; members of ours are behind those, in appendable and mutable types, so
  that a peer without them reads the rest. Those of monitoring are what `schemas/qsctl_monitoring.idl` defines. The type
  of a frame is ours and final: clients of qsctl alone read it, and applications without qsctl exchange single samples
  of the queue's own type (`transport.dds.plain`).
- Octets of a peer are a claim. A reader checks every length and count before it uses them, and returns a whole message
  or raises `Malformed`; the message is refused, counted and reported at the boundary, and those around it have their
  effect. A frame that is cut short gives none of its samples; their producer has no answer, and writes again.

Assumptions: DDS delivers a sample whole and, on reliable topics, in the order of its writer. The sender of a sample is
what it claims to be, without proof: any process in the domain can send anything. Only commands can be signed
(`signed_commands`).

The octets: XCDR1, little-endian, with the encapsulation header `00 01 00 00`. Frames in any other encapsulation are
refused. The topics of replies and of monitoring have a second writer in XCDR2 for readers that match no other
(`representations`). Frames, and replies with a sample, are packed by hand (`frames`, `packed_replies`), equal to what
the declared type (`wire_types`) gives; whether the library takes octets as they are is tried once at the start (`raw`).

Who writes what, for a topic T and a shared subscriber S:

- a producer: `SampleFrame` on T; at most `frames.FRAME_SAMPLES_MAX` samples and about `FRAME_BYTES_TARGET` octets, a
  larger sample alone. It does not wait for a frame to fill;
- the service, to that producer alone: `AcknowledgmentFrame` on `ProducerAcknowledgment@T`, once what an answer rests on
  is committed; at most `ANSWERS_MAX` answers;
- the service, to one consumer in a channel of its own: `SampleFrame` on `T@S`;
- that consumer: `AcknowledgmentFrame` on `ConsumerAcknowledgment@T@S`, with its GUID, which must not be nil, and
  responses of 0, 1 or 2 (`AckResponse`); `ConsumerAvailability_t` on `ConsumerAvailability@T@S` [QS 2.10.2];
- an administrator: `CommandRequest` [QS 5.3]; each service that it names: `CommandReply`, as many as the command has
  results, all but the last with the flag of an intermediate reply;
- the service, where the configuration asks for it: monitoring (`wire_monitoring`) [QS 6.2] and its log [QS 3.5].

Numbers that share a field, which a reader of frames must take apart:

- `flags` of a producer's sample: the lower 16 bits are `SampleFlag` and, in `BRIDGES_MASK`, a count that only a service
  sets, the upper the number of the attempt, 0 for none;
- `flags` of a delivery: the same, the upper 16 bits being the lower ones of the master's epoch, 0 without replication;
- `lifespan` of a delivery: infinite for the first delivery, else the number of the delivery in place of the
  nanoseconds;
- `response` to a producer: the lower 8 bits are the answer, bit 8 (`LACKS_MASTER`) that no master decided it, the upper
  16 the attempt that it answers.

What another version does: a member that it does not have is skipped by the reader, or has its default there; a service
without a key ignores a signature; a command or body that it does not know is answered with an ERROR, and a request for
another kind of service not at all. Letters between members are the exception: of another version they are refused, with
what to do.

What a process that ends leaves: a frame that DDS did not deliver whole is not delivered. A producer writes again what
has no answer; a consumer's acknowledgment that did not arrive is a delivery in progress, of which the service learns
that the consumer is gone. Nothing on the wire outlives its writer: a late reader gets at most each queue's last status.

Shown by, in tests/transport where no other folder is named:

- the inverse: `test_a_frame_gives_back_what_was_packed`, `test_the_hand_packed_bytes_are_those_of_the_type`,
  `test_answers_give_back_what_was_packed_and_are_those_of_the_type`,
  `test_a_reply_is_written_and_read_as_its_wire_type`, `test_a_command_arrives_as_it_was_sent`,
  `test_frames_keep_the_order_and_stay_below_one_message`;
- the IDL: `test_type_is_the_recorded_one`, `test_octets_of_monitoring_are_the_recorded_ones`;
- claims: `test_no_octets_do_more_than_be_refused`, `test_a_frame_cut_anywhere_is_refused`,
  `test_a_claim_of_four_billion_samples_costs_nothing`, `test_any_octets_are_a_reply_or_malformed`,
  `test_octets_that_are_no_request_are_malformed`, `test_messages_around_a_broken_one_have_their_effect`; tests/dds,
  `test_thousands_of_broken_frames_cost_a_few_lines`, `test_a_request_of_any_octets_ends_no_service`;
- fields: `test_a_consumer_is_sent_the_number_of_the_attempt`, `test_a_lifespan_is_no_attempt`,
  `test_a_response_that_no_consumer_gives_is_malformed`;
- other versions: `test_a_reply_with_the_original_members_only_is_read`,
  `test_an_earlier_service_reads_a_signed_command`,
  `test_a_sample_of_an_earlier_version_is_read_without_what_that_does_not_write`,
  `test_a_letter_of_another_format_is_refused_with_what_to_do`; programs without qsctl: tests/dds,
  `test_a_program_in_c_administers_and_monitors_a_service`.

Read `wire_types` first, then `frames`; for administration `commands`, `replies` and `bodies`.
"""
