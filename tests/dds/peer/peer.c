/* A queuing service administered from C: peer DOMAIN ACTION RESOURCE BODY prints "retcode text octets-in-hex";
   with the action MONITOR it prints "received-count queue-name period-of-statistics-in-hex" of the first status whose
   queue is RESOURCE. */
#include "qsctl_monitoring.h"
#include "service_admin.h"
#include <dds/dds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST RTI_Service_Admin_CommandRequest
#define REPLY RTI_Service_Admin_CommandReply
/* Of 10 ms each: as long as on a busy machine it may take. */
#define PATIENCE_TURNS 15000

static void fail(const char *what, int code)
{
  fprintf(stderr, "%s: %s\n", what, dds_strretcode(-code));
  exit(1);
}

static dds_entity_t checked(const char *what, dds_entity_t entity)
{
  if (entity < 0)
    fail(what, entity);
  return entity;
}

static const struct { const char *name; RTI_Service_Admin_CommandActionKind kind; } actions[] = {
  {"CREATE", RTI_Service_Admin_RTI_SERVICE_COMMAND_ACTION_CREATE},
  {"DELETE", RTI_Service_Admin_RTI_SERVICE_COMMAND_ACTION_DELETE},
  {"GET", RTI_Service_Admin_RTI_SERVICE_COMMAND_ACTION_GET},
  {"SHUTDOWN", RTI_Service_Admin_RTI_SERVICE_COMMAND_ACTION_SHUTDOWN},
};

static int monitor(dds_entity_t participant, const char *queue)
{
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
  dds_entity_t topic = checked("monitoring topic", dds_create_topic(participant,
    &RTI_QueuingService_Monitoring_SharedReaderQueueStatus_desc, "rti/queuing_service/monitoring/shared_reader_queue",
    qos, NULL));
  dds_entity_t reader = checked("monitoring reader", dds_create_reader(participant, topic, qos, NULL));
  dds_delete_qos(qos);
  for (int turn = 0; turn < PATIENCE_TURNS; turn++) {
    void *samples[1] = {NULL};
    dds_sample_info_t info[1];
    if (dds_take(reader, samples, info, 1, 1) > 0) {
      const RTI_QueuingService_Monitoring_SharedReaderQueueStatus *status = samples[0];
      if (info[0].valid_data && !strcmp(status->queue_name, queue)) {
        printf("%llu\t%s\t%08x\n", (unsigned long long) status->received_message_count, status->queue_name,
          (unsigned) status->enqueue_throughput.publication_period_metrics.period_ms);
        return 0;
      }
      dds_return_loan(reader, samples, 1);
    } else
      dds_sleepfor(DDS_MSECS(10));
  }
  fail("no status", DDS_RETCODE_TIMEOUT);
  return 1;
}

int main(int argc, char **argv)
{
  if (argc != 5)
    fail("usage: peer DOMAIN ACTION RESOURCE BODY", DDS_RETCODE_BAD_PARAMETER);
  dds_entity_t participant = checked("participant", dds_create_participant((dds_domainid_t) atoi(argv[1]), NULL, NULL));
  if (!strcmp(argv[2], "MONITOR"))
    return monitor(participant, argv[3]);
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  dds_entity_t requests = checked("request topic",
    dds_create_topic(participant, &RTI_Service_Admin_CommandRequest_desc, "rti/service/admin/command_request", qos, NULL));
  dds_entity_t replies = checked("reply topic",
    dds_create_topic(participant, &RTI_Service_Admin_CommandReply_desc, "rti/service/admin/command_reply", qos, NULL));
  dds_entity_t writer = checked("writer", dds_create_writer(participant, requests, qos, NULL));
  dds_entity_t reader = checked("reader", dds_create_reader(participant, replies, qos, NULL));
  dds_delete_qos(qos);

  dds_publication_matched_status_t sending = {0};
  dds_subscription_matched_status_t receiving = {0};
  for (int turn = 0; turn < PATIENCE_TURNS && !(sending.current_count && receiving.current_count); turn++) {
    dds_sleepfor(DDS_MSECS(10));
    dds_get_publication_matched_status(writer, &sending);
    dds_get_subscription_matched_status(reader, &receiving);
  }
  if (!sending.current_count || !receiving.current_count)
    fail("no service", DDS_RETCODE_TIMEOUT);

  REQUEST request;
  memset(&request, 0, sizeof request);
  request.service_name[0] = '*';
  request.service = RTI_Service_Admin_RTI_SERVICE_QUEUING_SERVICE;
  for (size_t at = 0; at < sizeof actions / sizeof *actions; at++)
    if (!strcmp(argv[2], actions[at].name))
      request.action = actions[at].kind;
  snprintf(request.resource_identifier, sizeof request.resource_identifier, "%s", argv[3]);
  request.string_body = argv[4];
  int code = dds_write(writer, &request);
  if (code < 0)
    fail("write", code);

  for (int turn = 0; turn < PATIENCE_TURNS; turn++) {
    void *samples[1] = {NULL};
    dds_sample_info_t info[1];
    if (dds_take(reader, samples, info, 1, 1) > 0 && info[0].valid_data) {
      const REPLY *reply = samples[0];
      printf("%d\t%s\t", (int) reply->retcode, reply->string_body);
      for (uint32_t at = 0; at < reply->octet_body._length; at++)
        printf("%02x", reply->octet_body._buffer[at]);
      printf("\n");
      dds_return_loan(reader, samples, 1);
      dds_delete(participant);
      return 0;
    }
    dds_sleepfor(DDS_MSECS(10));
  }
  fail("no reply", DDS_RETCODE_TIMEOUT);
  return 1;
}
