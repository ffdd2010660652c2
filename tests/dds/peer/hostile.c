/* A peer that sends what no peer of ours would:
   hostile DOMAIN frames TOPIC COUNT: frames that are no frames;
   hostile DOMAIN names TOPIC: a writer whose partition, user data and property are not UTF-8.
   Prints "ready" once it is matched or announced, and leaves when its standard input ends. */
#include "hostile.h"
#include <dds/dds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dds_entity_t checked(const char *what, dds_entity_t entity)
{
  if (entity < 0) {
    fprintf(stderr, "%s: %s\n", what, dds_strretcode(-entity));
    exit(1);
  }
  return entity;
}

int main(int argc, char **argv)
{
  if (argc < 4)
    return 1;
  const int names = !strcmp(argv[2], "names");
  dds_qos_t *member = dds_create_qos();
  if (names) {
    dds_qset_entity_name(member, "\xff");
    dds_qset_prop(member, "name", "\xff");
    dds_qset_userdata(member, "qsctl service;\xff;\xff", 17);
  }
  dds_entity_t participant = checked("participant",
    dds_create_participant((dds_domainid_t) atoi(argv[1]), member, NULL));
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  const dds_data_representation_id_t standard = DDS_DATA_REPRESENTATION_XCDR1;
  dds_qset_data_representation(qos, 1, &standard);
  dds_entity_t topic = checked("topic",
    dds_create_topic(participant, &RTI_QueuingService_SampleFrame_desc, argv[3], qos, NULL));
  dds_qos_t *group = dds_create_qos();
  if (names) {
    const char *partition = "\xff\xfe";
    dds_qset_partition(group, 1, &partition);
    dds_qset_userdata(qos, "qsctl;role=\xff", 12);
    dds_qset_prop(qos, "dds.data_reader.shared_subscriber_name", "\xc3\x28");
  }
  dds_entity_t publisher = checked("publisher", dds_create_publisher(participant, group, NULL));
  dds_entity_t writer = checked("writer", dds_create_writer(publisher, topic, qos, NULL));
  if (!names) {
    dds_publication_matched_status_t matched = {0};
    for (int turn = 0; turn < 3000 && !matched.current_count; turn++) {
      dds_sleepfor(DDS_MSECS(10));
      dds_get_publication_matched_status(writer, &matched);
    }
    RTI_QueuingService_SampleFrame frame;
    memset(&frame, 0, sizeof frame);
    for (int count = argc > 4 ? atoi(argv[4]) : 1; count > 0; count--) {
      frame.raw[0] = (uint8_t) (1 + count % 250);
      int code = dds_write(writer, &frame);
      if (code < 0)
        checked("write", code);
    }
    dds_wait_for_acks(writer, DDS_SECS(10));
  }
  printf("ready\n");
  fflush(stdout);
  while (getchar() != EOF)
    ;
  dds_delete(participant);
  return 0;
}
