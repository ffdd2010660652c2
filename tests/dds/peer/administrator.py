"""A program that administers a service with the types of section 5.3 and cyclonedds alone: administrator.py DOMAIN.

It creates a queue twice, reads its status, hears of it by monitoring, deletes it and stops the service; it prints the
return codes, and the queue that monitoring named.
"""

import sys
import time
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlEnum, IdlStruct
from cyclonedds.idl.annotations import appendable, key, mutable
from cyclonedds.idl.types import bounded_str, byte, int32, sequence, uint64
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic


class ServiceKind(IdlEnum, typename="RTI.Service.Admin.ServiceKind", default="RTI_SERVICE_OTHER_SERVICE"):
    RTI_SERVICE_OTHER_SERVICE = 0
    RTI_SERVICE_ROUTING_SERVICE = 1
    RTI_SERVICE_QUEUING_SERVICE = 2


class CommandActionKind(
    IdlEnum, typename="RTI.Service.Admin.CommandActionKind", default="RTI_SERVICE_COMMAND_ACTION_GET"
):
    RTI_SERVICE_COMMAND_ACTION_LOAD = 1
    RTI_SERVICE_COMMAND_ACTION_UNLOAD = 2
    RTI_SERVICE_COMMAND_ACTION_INSERT = 3
    RTI_SERVICE_COMMAND_ACTION_UPDATE = 4
    RTI_SERVICE_COMMAND_ACTION_PAUSE = 5
    RTI_SERVICE_COMMAND_ACTION_RESUME = 6
    RTI_SERVICE_COMMAND_ACTION_ENABLE = 7
    RTI_SERVICE_COMMAND_ACTION_DISABLE = 8
    RTI_SERVICE_COMMAND_ACTION_ANNOUNCE = 9
    RTI_SERVICE_COMMAND_ACTION_CREATE = 10
    RTI_SERVICE_COMMAND_ACTION_DELETE = 11
    RTI_SERVICE_COMMAND_ACTION_SAVE = 12
    RTI_SERVICE_COMMAND_ACTION_GET = 13
    RTI_SERVICE_COMMAND_ACTION_ADD_PEER = 14
    RTI_SERVICE_COMMAND_ACTION_SHUTDOWN = 15


class CommandReplyRetcode(
    IdlEnum, typename="RTI.Service.Admin.CommandReplyRetcode", default="RTI_SERVICE_COMMAND_REPLY_OK"
):
    RTI_SERVICE_COMMAND_REPLY_OK = 0
    RTI_SERVICE_COMMAND_REPLY_ANNOUNCEMENT = 1
    RTI_SERVICE_COMMAND_REPLY_ERROR = 2
    RTI_SERVICE_COMMAND_REPLY_UNSUPPORTED = 3
    RTI_SERVICE_COMMAND_REPLY_ALREADY_EXISTS = 4
    RTI_SERVICE_COMMAND_REPLY_DUPLICATED = 5


@dataclass
@appendable
class CommandRequest(IdlStruct, typename="RTI.Service.Admin.CommandRequest"):
    service_name: bounded_str[255]
    service: ServiceKind
    action: CommandActionKind
    resource_identifier: bounded_str[2048]
    string_body: str
    octet_body: sequence[byte]


@dataclass
@appendable
class CommandReply(IdlStruct, typename="RTI.Service.Admin.CommandReply"):
    retcode: CommandReplyRetcode
    native_retcode: int32
    string_body: str
    octet_body: sequence[byte]


@dataclass
@mutable
class SharedReaderQueueStatus(IdlStruct, typename="RTI.QueuingService.Monitoring.SharedReaderQueueStatus"):
    queue_name: bounded_str[255]
    key("queue_name")
    received_message_count: uint64


PATIENCE_S = 60.0
SUBSCRIBER = "/domain_participant/P/shared_subscriber/S"
QUEUE = f"{SUBSCRIBER}/shared_reader_queue/New"
BODY = (
    'str://"<shared_reader_queue name="New" session="s"><topic_name>New</topic_name>'
    '<type_name>DDS::Octets</type_name></shared_reader_queue>"'
)
RELIABLE = Qos(Policy.Reliability.Reliable(1_000_000_000), Policy.History.KeepAll)
LAST_VALUE = Qos(Policy.Reliability.Reliable(1_000_000_000), Policy.Durability.TransientLocal)


def until(look):
    """Wait for the first answer that is not None."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := look()) is None:
        if time.monotonic() > deadline:
            sys.exit("nothing came in time")
        time.sleep(0.01)
    return found


def main():
    participant = DomainParticipant(int(sys.argv[1]))
    requests = DataWriter(
        participant, Topic(participant, "rti/service/admin/command_request", CommandRequest), qos=RELIABLE
    )
    replies = DataReader(participant, Topic(participant, "rti/service/admin/command_reply", CommandReply), qos=RELIABLE)
    statuses = DataReader(
        participant,
        Topic(participant, "rti/queuing_service/monitoring/shared_reader_queue", SharedReaderQueueStatus),
        qos=LAST_VALUE,
    )
    until(lambda: (requests.get_matched_subscriptions() and replies.get_matched_publications()) or None)

    def ask(action, resource, body=""):
        kind = CommandActionKind["RTI_SERVICE_COMMAND_ACTION_" + action]
        requests.write(CommandRequest("*", ServiceKind.RTI_SERVICE_QUEUING_SERVICE, kind, resource, body, []))
        reply = until(lambda: next((each for each in replies.take(1) if each.sample_info.valid_data), None))
        sys.stdout.write(reply.retcode.name.removeprefix("RTI_SERVICE_COMMAND_REPLY_") + "\n")

    ask("CREATE", SUBSCRIBER, BODY)
    ask("CREATE", SUBSCRIBER, BODY)
    ask("GET", QUEUE + "/status")
    status = until(
        lambda: next(
            (each for each in statuses.take(1) if each.sample_info.valid_data and each.queue_name == "P/S/New"), None
        )
    )
    sys.stdout.write(status.queue_name + "\n")
    ask("DELETE", QUEUE)
    ask("SHUTDOWN", "/")


main()
