"""What the tools of other brokers print, as the tests give it to the readers."""

from __future__ import annotations

import json

RABBITMQ_TEXT = """\
Timeout: 60.0 seconds ...
Listing queues for vhost / ...
name\ttype\tmessages_ready\tmessages_unacknowledged\tconsumers\targuments
orders\tclassic\t120\t30\t4\t[{"x-max-length",signedint,5000},{"x-overflow",longstr,"reject-publish"}]
billing\tquorum\t7\t0\t2\t[{"x-queue-type","quorum"},{"x-delivery-limit",5}]
audit\tstream\t9000\t0\t1\t[{"x-queue-type","stream"}]
"""
RABBITMQ_JSON = json.dumps(
    [
        {
            "name": "orders", "messages": 150, "messages_unacknowledged": 30, "consumers": 4, "message_bytes": 307_200,
            "arguments": {"x-max-length": 5000, "x-message-ttl": 60_000},
            "effective_policy_definition": {"max-length": 1000, "message-ttl": 90_000, "overflow": "reject-publish"},
            "message_stats": {"publish": 90_000, "publish_details": {"rate": 25.5}},
        },
        {"name": "billing", "type": "quorum", "messages": 0, "arguments": [["x-delivery-limit", "long", 7]]},
    ]
)  # fmt: skip
DEFINITIONS = json.dumps(
    {
        "rabbit_version": "4.1.0",
        "vhosts": [{"name": "/"}],
        "queues": [
            {"name": "eu.orders", "vhost": "/", "arguments": {"x-max-length": 9000, "x-queue-type": "quorum"}},
            {"name": "us.orders", "vhost": "/", "arguments": {}},
            {"name": "us.orders", "vhost": "other", "arguments": {}},
        ],
        "policies": [
            {"name": "all", "vhost": "/", "pattern": ".*", "apply-to": "queues", "priority": 0,
             "definition": {"max-length": 100}},
            {"name": "eu", "vhost": "/", "pattern": "^eu\\.", "apply-to": "quorum_queues", "priority": 9,
             "definition": {"delivery-limit": 3, "max-length": 8000, "dead-letter-exchange": "dead"}},
            {"name": "hard", "vhost": "/", "pattern": "^(a+)+$", "apply-to": "all", "priority": 99,
             "definition": {"max-length": 1}},
        ],
    }
)  # fmt: skip
CONSUMER = json.dumps(
    {
        "type": "io.nats.jetstream.api.v1.consumer_info_response",
        "stream_name": "ORDERS", "name": "billing", "created": "2026-03-01T10:00:00Z",
        "config": {
            "ack_policy": "explicit", "ack_wait": 30_000_000_000, "max_deliver": -1, "max_ack_pending": 1000,
            "backoff": [1_000_000_000, 5_000_000_000], "durable_name": "billing",
        },
        "delivered": {"consumer_seq": 500, "stream_seq": 500}, "num_ack_pending": 12, "num_pending": 340,
        "ts": "2026-03-01T12:00:00.5Z",
    }
)  # fmt: skip
STREAM = json.dumps(
    {
        "config": {"name": "ORDERS", "subjects": ["orders.>"], "retention": "workqueue", "max_msgs": 100_000,
                   "max_bytes": -1, "max_age": 86_400_000_000_000, "discard": "new"},
        "state": {"messages": 352, "bytes": 704_000, "first_seq": 7_001, "first_ts": "2026-03-01T10:00:00Z",
                  "last_seq": 7_361, "last_ts": "2026-03-01T10:02:00Z", "consumer_count": 1},
        "ts": "2026-03-01T12:00:00Z",
    }
)  # fmt: skip
SQS = json.dumps(
    {
        "Attributes": {
            "QueueArn": "arn:aws:sqs:eu-west-1:123456789012:orders", "VisibilityTimeout": "45",
            "MessageRetentionPeriod": "345600", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "20",
            "ApproximateNumberOfMessages": "200", "ApproximateNumberOfMessagesNotVisible": "14",
            "ApproximateNumberOfMessagesDelayed": "3",
            "RedrivePolicy": '{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:dead","maxReceiveCount":"4"}',
        }
    }
)  # fmt: skip
KAFKA = """\

Consumer group 'billing' has no active members.

GROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID   HOST         CLIENT-ID
billing  orders  0          100             160             60   c-1-aa        /10.0.0.1    c-1
billing  orders  1          90              90              0    c-1-aa        /10.0.0.1    c-1
billing  orders  2          -               40              -    c-2-bb        /10.0.0.2    c-2
billing  refunds 0          5               5               0    -             -            -
"""
