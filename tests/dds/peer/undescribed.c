/* Writes samples of a type that it does not describe: peer DOMAIN TYPE TOPIC FIRST COUNT; it leaves at a line of input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dds/dds.h"
#include "undescribed.h"

int main(int argc, char **argv)
{
  unsigned char octets[3] = { 1, 2, 3 };
  if (argc != 6) return 2;
  const char *type = argv[2];
  const dds_topic_descriptor_t *descriptor = strcmp(type, "Plain") == 0   ? &shop_Plain_desc
                                             : strcmp(type, "Loose") == 0 ? &shop_Loose_desc
                                                                          : &shop_Keyed_desc;
  dds_entity_t participant = dds_create_participant((dds_domainid_t) atoi(argv[1]), NULL, NULL);
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  dds_entity_t topic = dds_create_topic(participant, descriptor, argv[3], NULL, NULL);
  dds_entity_t writer = dds_create_writer(participant, topic, qos, NULL);
  if (writer < 0) return 1;
  dds_publication_matched_status_t status = { 0 };
  while (status.current_count == 0) {
    dds_sleepfor(DDS_MSECS(20));
    dds_get_publication_matched_status(writer, &status);
  }
  for (int i = 0; i < atoi(argv[5]); i++) { /* the three types are of one layout in C */
    shop_Plain sample = { .number = (uint32_t) (atoi(argv[4]) + i) };
    sample.payload._buffer = octets;
    sample.payload._length = sizeof octets;
    if (dds_write(writer, &sample) < 0) return 1;
  }
  if (dds_wait_for_acks(writer, DDS_SECS(60)) < 0) return 1;
  puts("written");
  fflush(stdout);
  return getchar() == 0;
}
