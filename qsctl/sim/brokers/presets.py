"""The presets: what queues of RabbitMQ, SQS, JetStream, IBM MQ, Kafka groups and Celery do by default.

Each default has the address of the vendor's public document that states it; so has each fixed behaviour of a broker.
What differs from the broker is stated with the preset, and shown on its page (`qsctl help broker-sqs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from qsctl.instant import SECOND_NS, format_duration, parse_duration
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.settings import (
    MILLISECONDS,
    SECONDS,
    SWITCH,
    TEXT,
    UNLIMITED,
    BrokerSetting,
    FixedValue,
    Preset,
    choice,
    count,
    duration,
    durations,
)

PUBLISHER: Final = "publisher"
CONSUMER: Final = "consumer"
CLASS: Final = "class"

_RABBITMQ: Final = "https://www.rabbitmq.com/docs"
_SQS: Final = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest"
_SQS_ATTRIBUTES: Final = f"{_SQS}/APIReference/API_SetQueueAttributes.html"
_SQS_RECEIVE: Final = f"{_SQS}/APIReference/API_ReceiveMessage.html"
_SQS_QUOTAS: Final = f"{_SQS}/SQSDeveloperGuide/quotas-messages.html"
_SQS_VISIBILITY: Final = f"{_SQS}/SQSDeveloperGuide/sqs-visibility-timeout.html"
_SQS_DEAD_LETTERS: Final = f"{_SQS}/SQSDeveloperGuide/sqs-dead-letter-queues.html"
_SQS_POLLING: Final = f"{_SQS}/SQSDeveloperGuide/sqs-short-and-long-polling.html"
_SQS_GROUPS: Final = f"{_SQS}/SQSDeveloperGuide/using-messagegroupid-property.html"
_SQS_PRICES: Final = "https://aws.amazon.com/sqs/pricing/"
_NATS_CONSUMERS: Final = "https://docs.nats.io/nats-concepts/jetstream/consumers"
_NATS_STREAMS: Final = "https://docs.nats.io/nats-concepts/jetstream/streams"
_NATS_SERVER: Final = "https://github.com/nats-io/nats-server/blob/main/server/consumer.go"
_NATS_GO: Final = "https://pkg.go.dev/github.com/nats-io/nats.go/jetstream"
_IBM_MQ: Final = "https://www.ibm.com/docs/en/ibm-mq/9.4.x"
_IBM_MQ_QLOCAL: Final = f"{_IBM_MQ}?topic=reference-define-qlocal-define-new-local-queue"
_IBM_MQ_BACKOUT: Final = f"{_IBM_MQ}?topic=applications-handling-poison-messages-in-mq-classes-jms"
_KAFKA: Final = "https://kafka.apache.org/documentation/"
_CELERY: Final = "https://docs.celeryq.dev/en/stable/userguide/configuration.html"
_CELERY_TASKS: Final = "https://docs.celeryq.dev/en/stable/userguide/tasks.html"
_CELERY_REDIS: Final = "https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html"

_NO_LIMIT: Final = "unlimited"

LOAD: Final = (
    BrokerSetting(
        "arrivals", "publisher/poisson/rate", "1/s", TEXT, "", "rate at which messages arrive, as in 0.033/s or 90/min",
        ("rate",),
    ),
    BrokerSetting(
        "work", "class/work", "100ms", TEXT, "", "time that a message is worked on, a distribution as in "
        "lognormal:45s,p99=280s", ("service-time",),
    ),
    BrokerSetting("fails", "class/fails", "0", TEXT, "", "probability that an attempt fails", ("failures",)),
    BrokerSetting("poison", "class/poison", "0", TEXT, "", "probability that every attempt on a message fails"),
    BrokerSetting("consumers", "consumer/count", "1", TEXT, "", "number of consumers", ("workers",)),
    BrokerSetting(
        "servers", "consumer/servers", "1", TEXT, "", "messages that one consumer works on at once",
        ("threads", "concurrency"),
    ),
    BrokerSetting(
        "round-trip", "consumer/round-trip", "1ms", TEXT, "", "time to the broker and back", ("rtt", "latency"),
    ),
    BrokerSetting("size", "publisher/size/bytes", "1 KB", TEXT, "", "size of a message"),
    BrokerSetting("backlog", "backlog/messages", "0", count(0), "", "messages that are in the queue at the beginning"),
    BrokerSetting(
        "outage", "outage/duration", "0s", SECONDS, "",
        "time for which what the work depends on is down, from a quarter of the run on: every attempt fails", ("down",),
    ),
    BrokerSetting(
        "absence", "consumer/absence/duration", "0s", SECONDS, "",
        "time for which all consumers are gone, from a quarter of the run on", ("gone",),
    ),
)  # fmt: skip
"""Values that no broker determines: the load and the consumers, by words of ours."""


def _dead_letters(values: Mapping[str, str], word: str) -> Mapping[str, str]:
    """Return the scenario values that enable dead letters, where the setting names a target for them."""
    return {"dead-letters": ""} if values[word] else {}


def _classic(values: Mapping[str, str]) -> Mapping[str, str]:
    levels = values["max-priority"]
    priorities = {} if levels == "0" else {"queue/order": "priority", "queue/priorities": str(int(levels) + 1)}
    return {**_dead_letters(values, "dead-letter-exchange"), **priorities}


def _quorum(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the dead letters and the place of returned messages: the back of the queue without a delivery limit."""
    to = "tail" if values["delivery-limit"] == UNLIMITED else "head"
    return {**_dead_letters(values, "dead-letter-exchange"), "retry/to": to}


def _sqs(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the dead letters and the prefetch: a consumer polls again once it has done all messages of an answer."""
    dead = {} if values["maxReceiveCount"] == UNLIMITED else {"dead-letters": ""}
    return {**dead, "consumer/prefetch": values["MaxNumberOfMessages"]}


def _jetstream(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the visibility time-outs: `backoff` replaces `ack_wait` where it is set."""
    return {"visibility/timeout": values["backoff"] or values["ack_wait"]}


def _ibm_mq(values: Mapping[str, str]) -> Mapping[str, str]:
    return {} if values["BOTHRESH"] == UNLIMITED else {"dead-letters": ""}


def _celery(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return how many tasks a worker reserves, and for how long.

    The prefetch count is the multiplier times the processes. A task that is acknowledged before it runs
    (`task_acks_late` off) leaves its slot when it begins, and no time-out returns it while it runs: this is simulated
    by one slot more for each process, and a heartbeat.
    """
    processes, multiplier = int(values["worker_concurrency"]), values["worker_prefetch_multiplier"]
    is_early = values["task_acks_late"] != "true"
    reserved = UNLIMITED if multiplier == UNLIMITED else str(processes * (int(multiplier) + is_early))
    timeout = values["visibility_timeout"]
    heartbeat = {"visibility/heartbeat": format_duration(max(1, parse_duration(timeout) // 2))} if is_early else {}
    return {"consumer/prefetch": reserved, **heartbeat}


_RABBITMQ_SETTINGS: Final = (
    BrokerSetting(
        "prefetch", "consumer/prefetch", "0", count(0, ("0",)), f"{_RABBITMQ}/consumer-prefetch",
        "messages that a consumer may have unacknowledged (prefetch count); 0: no limit",
        ("prefetch_count", "basic.qos", "qos"),
    ),
    BrokerSetting(
        "consumer_timeout", "visibility/timeout", "1800000", MILLISECONDS,
        f"{_RABBITMQ}/consumers#acknowledgement-timeout",
        "time after which a delivery without an acknowledgment is returned", ("timeout",),
    ),
    BrokerSetting(
        "max-length", "limits/max-messages", _NO_LIMIT, count(0), f"{_RABBITMQ}/maxlength",
        "messages that may be ready; unacknowledged ones do not count", ("length",),
    ),
    BrokerSetting(
        "max-length-bytes", "limits/max-bytes", _NO_LIMIT, count(1), f"{_RABBITMQ}/maxlength",
        "bytes of the messages that may be ready",
    ),
)  # fmt: skip
_RABBITMQ_MORE: Final = (
    BrokerSetting(
        "message-ttl", "queue/time-to-live", _NO_LIMIT, MILLISECONDS, f"{_RABBITMQ}/ttl",
        "time that a message may be in the queue", ("ttl",),
    ),
    BrokerSetting(
        "dead-letter-exchange", "dead-letters", "", TEXT, f"{_RABBITMQ}/dlx",
        "exchange of dead letters; empty: they are dropped", ("dlx",), is_direct=False,
    ),
    BrokerSetting(
        "single-active-consumer", "queue/access", "false", choice({"true": "exclusive", "false": "shared"}),
        f"{_RABBITMQ}/consumers#single-active-consumer", "whether one consumer alone receives, and others stand by",
    ),
)  # fmt: skip
_RABBITMQ_WAYS: Final = (
    FixedValue("limits/counts", "ready", "messages that are ready count towards the limits", f"{_RABBITMQ}/maxlength"),
    FixedValue(
        "queue/expires", "head", "a message that has expired leaves when it is at the head", f"{_RABBITMQ}/ttl"
    ),
    FixedValue(
        "visibility/late", "ignored", "the channel is closed: a later acknowledgment is of no delivery",
        f"{_RABBITMQ}/consumers#acknowledgement-timeout",
    ),
    FixedValue(
        "queue/connection-loss", "return", "what a consumer had is requeued when its channel closes",
        f"{_RABBITMQ}/confirms#automatic-requeueing",
    ),
)  # fmt: skip
_RABBITMQ_MODELLED: Final = (
    "prefetch, acknowledgments with their round trip, requeueing, limits of messages and bytes with each overflow, "
    "time to live, dead letters, a single active consumer",
    "a delivery that is not acknowledged in time is returned; the other deliveries of the same channel stay, though "
    "RabbitMQ closes the channel and returns all of them",
)
_RABBITMQ_NOT: Final = (
    "memory and disk alarms, flow control of connections, paging of messages to the disk",
    "exchanges, bindings and several queues of one publication",
    "consumer priorities, and a prefetch that several consumers of a channel share (global)",
    "the network, beside a round trip; failures of nodes",
)

PRESETS: Final[Mapping[BrokerKind, Preset]] = {
    BrokerKind.RABBITMQ_CLASSIC: Preset(
        "RabbitMQ, classic queue",
        (
            *_RABBITMQ_SETTINGS,
            BrokerSetting(
                "overflow", "limits/overflow", "drop-head",
                choice({"drop-head": "drop-head", "reject-publish": "reject",
                        "reject-publish-dlx": "reject-dead-letter"}),
                f"{_RABBITMQ}/maxlength#overflow-behaviour", "what happens when the limits are reached",
            ),
            *_RABBITMQ_MORE,
            BrokerSetting(
                "max-priority", "queue/priorities", "0", count(0), f"{_RABBITMQ}/priority",
                "highest priority; 0: no priorities", ("priorities",), is_direct=False,
            ),
        ),
        (
            *_RABBITMQ_WAYS,
            FixedValue(
                "retry/to", "head", "a message that is requeued returns to its place, or near it",
                f"{_RABBITMQ}/nack",
            ),
        ),
        (*_RABBITMQ_MODELLED, "priorities, the highest first"),
        (*_RABBITMQ_NOT, "storage: a message is taken and delivered in no time"),
        _classic,
    ),
    BrokerKind.RABBITMQ_QUORUM: Preset(
        "RabbitMQ, quorum queue",
        (
            *_RABBITMQ_SETTINGS,
            BrokerSetting(
                "overflow", "limits/overflow", "drop-head",
                choice({"drop-head": "drop-head", "reject-publish": "reject"}),
                f"{_RABBITMQ}/quorum-queues#feature-matrix", "what happens when the limits are reached",
            ),
            BrokerSetting(
                "delivery-limit", "retry/max-deliveries", "20", count(0, ("-1",), shift=1),
                f"{_RABBITMQ}/quorum-queues#poison-message-handling",
                "redeliveries of a message, after which it is a dead letter; -1: no limit", ("deliveries",),
            ),
            *_RABBITMQ_MORE,
        ),
        _RABBITMQ_WAYS,
        (
            *_RABBITMQ_MODELLED,
            "the delivery limit; with one, what is requeued returns near the head, without one to the back",
        ),
        (
            *_RABBITMQ_NOT,
            "replication: elections, the log's growth, slower confirmation",
            "the two priorities of a quorum queue, and the messages by which reject-publish overshoots its limit",
        ),
        _quorum,
    ),
    BrokerKind.SQS: Preset(
        "Amazon SQS, standard queue",
        (
            BrokerSetting(
                "VisibilityTimeout", "visibility/timeout", "30", SECONDS, _SQS_ATTRIBUTES,
                "time for which a received message is hidden from other consumers", ("visibility", "timeout"),
            ),
            BrokerSetting(
                "maxReceiveCount", "retry/max-deliveries", _NO_LIMIT, count(1), _SQS_DEAD_LETTERS,
                "receives of a message, after which it is a dead letter (redrive policy)", ("receives", "deliveries"),
            ),
            BrokerSetting(
                "MessageRetentionPeriod", "queue/time-to-live", "345600", SECONDS, _SQS_ATTRIBUTES,
                "time for which a message is kept", ("retention",),
            ),
            BrokerSetting(
                "DelaySeconds", "queue/delay", "0", SECONDS, _SQS_ATTRIBUTES,
                "time before a message can be received", ("delay",),
            ),
            BrokerSetting(
                "MaxNumberOfMessages", "consumer/batch", "1", count(1), _SQS_RECEIVE,
                "messages that one receive returns at most (10)", ("batch",),
            ),
            BrokerSetting(
                "WaitTimeSeconds", "consumer/wait", "20", SECONDS, _SQS_POLLING,
                "time for which a receive waits; long polling of 20 s, as is recommended (the queue's own "
                "ReceiveMessageWaitTimeSeconds is 0 by default)", ("ReceiveMessageWaitTimeSeconds", "wait"),
            ),
            BrokerSetting(
                "InFlight", "queue/max-unacknowledged", "120000", count(1), _SQS_QUOTAS,
                "messages that may be received and not deleted",
            ),
        ),
        (
            FixedValue("consumer/receive", "poll", "consumers ask for messages", _SQS_RECEIVE),
            FixedValue("retry/to", "tail", "the order of a standard queue is best effort", _SQS_VISIBILITY),
            FixedValue(
                "retry/on-failure", "silent", "what is not deleted comes back when its time-out is over",
                _SQS_VISIBILITY,
            ),
            FixedValue(
                "visibility/late", "until-redelivered", "a receipt handle serves until the message is received again",
                _SQS_VISIBILITY,
            ),
            FixedValue(
                "queue/connection-loss", "time-out", "SQS knows of no connection: the time-out returns a message",
                _SQS_VISIBILITY,
            ),
            FixedValue("price/million-requests", "0.40", "US dollars, us-east-1, beyond the free tier", _SQS_PRICES),
        ),
        (
            "the visibility time-out, work that goes on after it, duplicates, long polls in batches, delay, retention, "
            "the redrive policy, the limit of messages in flight, requests and their price",
            "a consumer polls again when all messages of its last answer are done",
        ),
        (
            "duplicates that a standard queue delivers of itself, and the share of servers that a short poll asks",
            "the retention of dead letters from the first sending on; throttling; extended messages in S3",
            "Lambda's pollers, which add consumers by themselves: state them as consumers, or with <autoscaling>",
        ),
        _sqs,
    ),
    BrokerKind.SQS_FIFO: Preset(
        "Amazon SQS, FIFO queue",
        (
            BrokerSetting(
                "VisibilityTimeout", "visibility/timeout", "30", SECONDS, _SQS_ATTRIBUTES,
                "time for which a received message is hidden from other consumers", ("visibility", "timeout"),
            ),
            BrokerSetting(
                "MessageGroupId", "publisher/keys", "100", count(1), _SQS_GROUPS,
                "number of message groups; the preset's own assumption, for a queue has none by default",
                ("groups", "keys"),
            ),
            BrokerSetting(
                "maxReceiveCount", "retry/max-deliveries", _NO_LIMIT, count(1), _SQS_DEAD_LETTERS,
                "receives of a message, after which it is a dead letter (redrive policy)", ("receives", "deliveries"),
            ),
            BrokerSetting(
                "MessageRetentionPeriod", "queue/time-to-live", "345600", SECONDS, _SQS_ATTRIBUTES,
                "time for which a message is kept", ("retention",),
            ),
            BrokerSetting(
                "DelaySeconds", "queue/delay", "0", SECONDS, _SQS_ATTRIBUTES,
                "time before a message can be received", ("delay",),
            ),
            BrokerSetting(
                "MaxNumberOfMessages", "consumer/batch", "1", count(1), _SQS_RECEIVE,
                "messages that one receive returns at most (10)", ("batch",),
            ),
            BrokerSetting(
                "WaitTimeSeconds", "consumer/wait", "20", SECONDS, _SQS_POLLING,
                "time for which a receive waits; long polling of 20 s, as is recommended (the queue's own "
                "ReceiveMessageWaitTimeSeconds is 0 by default)", ("ReceiveMessageWaitTimeSeconds", "wait"),
            ),
            BrokerSetting(
                "InFlight", "queue/max-unacknowledged", "120000", count(1), _SQS_QUOTAS,
                "messages that may be received and not deleted",
            ),
        ),
        (
            FixedValue("queue/order", "key", "one message of a group at a time", _SQS_GROUPS),
            FixedValue("consumer/receive", "poll", "consumers ask for messages", _SQS_RECEIVE),
            FixedValue("retry/to", "head", "the order of a group is kept", _SQS_GROUPS),
            FixedValue(
                "retry/on-failure", "silent", "what is not deleted comes back when its time-out is over",
                _SQS_VISIBILITY,
            ),
            FixedValue(
                "visibility/late", "until-redelivered", "a receipt handle serves until the message is received again",
                _SQS_VISIBILITY,
            ),
            FixedValue(
                "queue/connection-loss", "time-out", "SQS knows of no connection: the time-out returns a message",
                _SQS_VISIBILITY,
            ),
            FixedValue("price/million-requests", "0.50", "US dollars, us-east-1, beyond the free tier", _SQS_PRICES),
        ),
        (
            "message groups, one message of each at a time, and all of a standard queue",
            "a consumer polls again when all messages of its last answer are done",
        ),
        (
            "several messages of one group in one answer",
            "deduplication, and the limit of requests a second without high throughput",
            "the retention of dead letters from the first sending on; extended messages in S3",
        ),
        _sqs,
    ),
    BrokerKind.JETSTREAM: Preset(
        "NATS JetStream, consumer of a work queue",
        (
            BrokerSetting(
                "ack_wait", "visibility/timeout", "30s", duration(SECOND_NS, "seconds"), _NATS_SERVER,
                "time after which a message without an acknowledgment is delivered again",
                ("AckWait", "wait", "visibility"),
            ),
            BrokerSetting(
                "backoff", "visibility/timeout", "", durations(SECOND_NS), _NATS_CONSUMERS,
                "times of the first, second and further deliveries instead of ack_wait", ("BackOff",), is_direct=False,
            ),
            BrokerSetting(
                "max_ack_pending", "queue/max-unacknowledged", "1000", count(1, ("-1",)), _NATS_SERVER,
                "messages without an acknowledgment, of all subscriptions together; -1: no limit",
                ("MaxAckPending", "ack_pending"),
            ),
            BrokerSetting(
                "max_deliver", "retry/max-deliveries", "-1", count(1, ("-1",)), _NATS_SERVER,
                "deliveries of a message; -1: no limit", ("MaxDeliver", "deliveries"),
            ),
            BrokerSetting(
                "PullMaxMessages", "consumer/prefetch", "500", count(1), _NATS_GO,
                "messages that a client has pulled and not acknowledged (Consume of nats.go)",
                ("batch", "prefetch", "max_batch"),
            ),
            BrokerSetting(
                "max_msgs", "limits/max-messages", "-1", count(1, ("-1", "0")), _NATS_STREAMS,
                "messages of the stream; -1: no limit",
            ),
            BrokerSetting(
                "max_bytes", "limits/max-bytes", "-1", count(1, ("-1", "0")), _NATS_STREAMS,
                "bytes of the stream; -1: no limit",
            ),
            BrokerSetting(
                "max_age", "queue/time-to-live", "0", duration(SECOND_NS, "seconds", ("0",)), _NATS_STREAMS,
                "time for which the stream keeps a message; 0: no limit",
            ),
            BrokerSetting(
                "discard", "limits/overflow", "old", choice({"old": "drop-head", "new": "reject"}), _NATS_STREAMS,
                "which message goes when the stream is full", ("DiscardPolicy",),
            ),
        ),
        (
            FixedValue(
                "visibility/late", "accepted", "an acknowledgment after the time-out counts all the same",
                _NATS_CONSUMERS,
            ),
            FixedValue("retry/to", "head", "what is delivered again goes before what is new", _NATS_CONSUMERS),
            FixedValue("limits/counts", "all", "a stream holds a message until it is acknowledged", _NATS_STREAMS),
            FixedValue(
                "queue/connection-loss", "time-out", "a pull consumer's message comes back by ack_wait",
                _NATS_CONSUMERS,
            ),
        ),
        (
            "ack_wait, which runs while a message waits in the client's buffer, too; backoff; max_ack_pending; "
            "max_deliver; the stream's limits; negative acknowledgments",
            "the client pulls ahead as nats.go's Consume does: its buffer is filled again with every acknowledgment",
        ),
        (
            "streams that keep messages after their acknowledgment (limits retention): their limits are of the stream, "
            "not of what waits",
            "subjects and filters, replicas; in-progress acknowledgments, unless they are stated as the heartbeat",
            "a message beyond max_deliver stays in the stream; here it counts as dead",
        ),
        _jetstream,
    ),
    BrokerKind.IBM_MQ: Preset(
        "IBM MQ, local queue",
        (
            BrokerSetting(
                "MAXDEPTH", "limits/max-messages", "5000", count(0), _IBM_MQ_QLOCAL,
                "messages on the queue, uncommitted ones too", ("depth", "MaxQDepth"),
            ),
            BrokerSetting(
                "BOTHRESH", "retry/max-deliveries", "0", count(0, ("0",)), _IBM_MQ_QLOCAL,
                "times that a message is backed out before it goes to the backout queue; 0: never",
                ("backout", "BackoutThreshold", "deliveries"),
            ),
            BrokerSetting(
                "CAPEXPRY", "queue/time-to-live", _NO_LIMIT,
                duration(SECOND_NS // 10, "tenths of a second", ("NOLIMIT",)), _IBM_MQ_QLOCAL,
                "longest time for which a message is kept", ("expiry",),
            ),
        ),
        (
            FixedValue("limits/overflow", "reject", "a put to a full queue fails with MQRC_Q_FULL (2053)",
                       f"{_IBM_MQ}?topic=codes-2053-0805-rc2053-mqrc-q-full"),
            FixedValue(
                "limits/counts", "all", "messages got under syncpoint count until it is committed", _IBM_MQ_QLOCAL,
            ),
            FixedValue("queue/order", "priority", "MSGDLVSQ(PRIORITY): the highest priority first", _IBM_MQ_QLOCAL),
            FixedValue("queue/priorities", "10", "priorities 0 to 9 (MAXPRTY)", _IBM_MQ_QLOCAL),
            FixedValue("queue/expires", "head", "an expired message leaves when a get would have found it",
                       f"{_IBM_MQ}?topic=mqmd-expiry-mqlong"),
            FixedValue("retry/to", "head", "a message that is backed out returns to its place", _IBM_MQ_BACKOUT),
            FixedValue("queue/connection-loss", "return", "a unit of work is backed out when its connection ends",
                       _IBM_MQ_BACKOUT),
        ),
        (
            "the depth with refused puts, priorities, gets under syncpoint, backing out up to the threshold and the "
            "backout queue, expiry",
        ),
        (
            "channels, clusters, the log, read ahead, browsing, triggering",
            "that the application, not the queue manager, moves a message to the backout queue (JMS does)",
            "size of messages against the space of the queue file",
        ),
        _ibm_mq,
    ),
    BrokerKind.KAFKA_GROUP: Preset(
        "Apache Kafka, consumer group of a topic",
        (
            BrokerSetting(
                "partitions", "queue/partitions", "1", count(1), f"{_KAFKA}#brokerconfigs_num.partitions",
                "partitions of the topic (num.partitions)", ("num.partitions",),
            ),
            BrokerSetting(
                "rebalance", "queue/rebalance", "3000", MILLISECONDS,
                f"{_KAFKA}#brokerconfigs_group.initial.rebalance.delay.ms",
                "time for which nothing is delivered when a member comes or leaves; the delay of a new group",
                ("group.initial.rebalance.delay.ms",),
            ),
            BrokerSetting(
                "retention.ms", "queue/time-to-live", "604800000", MILLISECONDS,
                f"{_KAFKA}#brokerconfigs_log.retention.hours", "time for which the topic keeps a record",
                ("retention",),
            ),
            BrokerSetting(
                "keys", "publisher/keys", "1000", count(1), f"{_KAFKA}#intro_concepts_and_terms",
                "number of keys of the records; the preset's own assumption",
            ),
        ),
        (
            FixedValue("queue/order", "key", "a partition has one member, which reads it in order",
                       f"{_KAFKA}#intro_consumers"),
            FixedValue("retry/to", "head", "a member tries a record again in its place", f"{_KAFKA}#intro_consumers"),
            FixedValue(
                "consumer/prefetch", "unlimited", "a member fetches ahead (max.poll.records)",
                f"{_KAFKA}#consumerconfigs_max.poll.records",
            ),
            FixedValue(
                "consumer/round-trip", "0s", "so that a record costs no round trip",
                f"{_KAFKA}#consumerconfigs_fetch.min.bytes",
            ),
        ),
        (
            "partitions with one owner each, one record of a partition at a time, keys, the pause of a rebalance, and "
            "retention",
            "more members than partitions stand by",
        ),
        (
            "max.poll.interval.ms and session.timeout.ms: a slow member stays, one that is absent is gone at once",
            "commits of offsets at an interval: each record is committed when it is done, so that a member that is "
            "lost repeats one record a partition, not all since its last commit; exactly-once",
            "which partitions move in a rebalance (cooperative assignors), fetch sizes, brokers and replicas",
            "a consumer that works on several records of a partition at once",
        ),
    ),
    BrokerKind.CELERY: Preset(
        "Celery with Redis",
        (
            BrokerSetting(
                "worker_concurrency", "consumer/servers", "8", count(1), f"{_CELERY}#worker-concurrency",
                "processes of a worker; by default the number of processors, here 8", ("concurrency", "servers"),
            ),
            BrokerSetting(
                "worker_prefetch_multiplier", "consumer/prefetch", "4", count(0, ("0",)),
                f"{_CELERY}#worker-prefetch-multiplier",
                "messages that a worker reserves for each of its processes; 0: no limit",
                ("prefetch", "multiplier", "prefetch_multiplier"), is_direct=False,
            ),
            BrokerSetting(
                "task_acks_late", "visibility/heartbeat", "false", SWITCH, f"{_CELERY}#task-acks-late",
                "whether a task is acknowledged after it has run", ("acks_late",), is_direct=False,
            ),
            BrokerSetting(
                "visibility_timeout", "visibility/timeout", "3600", SECONDS, f"{_CELERY_REDIS}#visibility-timeout",
                "time after which a task without an acknowledgment is given to another worker",
                ("visibility", "timeout"),
            ),
            BrokerSetting(
                "max_retries", "retry/max-deliveries", "3", count(0, ("None",), shift=1),
                f"{_CELERY_TASKS}#Task.max_retries", "times that a failed task is tried again", ("retries",),
            ),
            BrokerSetting(
                "default_retry_delay", "retry/back-off", "180", SECONDS, f"{_CELERY_TASKS}#Task.default_retry_delay",
                "time before a failed task is tried again", ("countdown", "backoff"),
            ),
        ),
        (
            FixedValue("retry/to", "tail", "a task that is tried again is published anew", f"{_CELERY_TASKS}#retrying"),
            FixedValue("queue/connection-loss", "time-out", "Redis returns what a lost worker had by the time-out",
                       f"{_CELERY_REDIS}#visibility-timeout"),
            FixedValue(
                "visibility/late", "accepted", "a late acknowledgment ends the task", f"{_CELERY_REDIS}#caveats",
            ),
        ),
        (
            "workers with several processes, the prefetch multiplier, early and late acknowledgments, the visibility "
            "time-out that tasks wait out in a worker's reserve, retries of a task that calls retry with their delay",
        ),
        (
            "a task that fails without a retry is not tried again in Celery; set max_retries=0 for those",
            "a worker that is lost loses a running task that was acknowledged early; here it comes back",
            "-O fast, by which a task is handed to a process that is busy; ETA and countdown of tasks, rate limits",
            "other brokers than Redis: with RabbitMQ there is no visibility time-out, but consumer_timeout",
        ),
        _celery,
    ),
}  # fmt: skip


def preset_of(kind: BrokerKind) -> Preset:
    """Return the preset of a broker."""
    return PRESETS[kind]
