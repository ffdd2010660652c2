/* Orders from one process to another with nothing between: bare_topic write|read DOMAIN COUNT. A line a sample. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dds/dds.h"
#include "order.h"

int main(int argc, char **argv)
{
  if (argc < 4) return 2;
  int count = atoi(argv[3]), writes = strcmp(argv[1], "write") == 0;
  dds_entity_t participant = dds_create_participant((dds_domainid_t) atoi(argv[2]), NULL, NULL);
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  dds_entity_t topic = dds_create_topic(participant, &Order_desc, "Bare", NULL, NULL);
  dds_publication_matched_status_t status = { 0 };
  if (writes) {
    dds_entity_t writer = dds_create_writer(participant, topic, qos, NULL);
    while (status.current_count == 0) {
      dds_sleepfor(DDS_MSECS(20));
      dds_get_publication_matched_status(writer, &status);
    }
    for (int i = 1; i <= count; i++) {
      Order order = { .number = i };
      snprintf(order.text, sizeof order.text, "order %d from C", i);
      if (dds_write(writer, &order) < 0) return 1;
    }
    return dds_wait_for_acks(writer, DDS_SECS(60)) < 0;
  }
  dds_qset_resource_limits(qos, 4096, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  dds_entity_t reader = dds_create_reader(participant, topic, qos, NULL);
  dds_entity_t waitset = dds_create_waitset(participant);
  dds_waitset_attach(waitset, dds_create_readcondition(reader, DDS_ANY_STATE), reader);
  fprintf(stderr, "ready\n");
  while (count > 0) {
    void *samples[64] = { NULL };
    dds_sample_info_t infos[64];
    dds_waitset_wait(waitset, NULL, 0, DDS_MSECS(200));
    int taken = dds_take(reader, samples, infos, 64, 64);
    for (int i = 0; i < taken; i++)
      if (infos[i].valid_data) printf("%d 1 0 1\n", ((Order *) samples[i])->number), count--;
    fflush(stdout);
    if (taken > 0) dds_return_loan(reader, samples, taken);
  }
  return 0;
}
