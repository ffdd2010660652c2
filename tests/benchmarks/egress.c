/* The egress model's algorithm in C, for comparison: plain clients only (no loss, pauses, endpoints, eliding).
 *
 * usage: egress ARRIVALS COUNT CLIENTS DEPTH BURST WINDOW TCP_LIMIT DELAY_NS NUM DEN HORIZON_NS
 * ARRIVALS holds COUNT rows of struct arrival. Prints: seconds delivered discarded wait_sum high_water_sum buckets.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int64_t i64;
typedef int32_t i32;
typedef int16_t i16;

#define FOREVER ((i64)1 << 62)
#define SIZE_BITS 28
#define SIZE_MASK ((1 << SIZE_BITS) - 1)

struct arrival { i64 time; i32 client, size, topic, tag; };
struct node { i64 time; i32 tag, next; };
struct client {
    i64 next_ack, delay, tcp_bytes, tcp_limit;
    i32 inflight, window, window_max, unsent, head, tail;
    i16 port, traits;
    uint8_t mask, queued, blocked, admission;
} __attribute__((aligned(64)));
struct queue {
    i32 head, tail, length, pending, max_depth, burst;
    i64 work, high_water, arrived, delivered, delivered_bytes;
} __attribute__((aligned(64)));
struct tally { i64 wait_sum, wait_max, discarded, first_discard, indications, elided, not_connected, weight; }
    __attribute__((aligned(64)));
struct entry { i64 time, client; };

static struct node *nodes;
static struct client *clients;
static struct queue *queues;
static struct tally *tallies;
static struct entry *heap;
static i32 (*octaves)[64];
static i64 (*blocks)[128];
static i64 blocks_used, heap_count, port_free, num, den;
static i32 free_node;

/* As in the kernel: waits are counted a few waits later, when their counters have come to the cache. */
#define RECENT 16
#define AHEAD 8
static i64 nobody, *recent[RECENT];
static unsigned turn;

static inline i64 work_units(i64 size) { return (size + 2047) >> 11; }

static inline void count_wait(i64 queue, i64 wait)
{
    int shift = 64 - __builtin_clzll((uint64_t)wait) - 8;
    i64 bucket = shift <= 0 ? wait : ((i64)shift << 7) + (wait >> shift);
    i64 octave = bucket >> 7;
    i32 block = octaves[queue][octave];
    if (block < 0) octaves[queue][octave] = block = (i32)blocks_used++;
    i64 *now = &blocks[block][bucket & 127];
    __builtin_prefetch(now, 1);
    ++*recent[turn];
    recent[turn] = now;
    turn = (turn + 1) % RECENT;
}

static inline int before(i64 t, i64 c, const struct entry *e) { return t < e->time || (t == e->time && c <= e->client); }

static void push(i64 time, i64 client)
{
    i64 i = heap_count++;
    while (i > 0) {
        i64 parent = (i - 1) >> 1;
        if (!before(time, client, &heap[parent]) || (time == heap[parent].time && client == heap[parent].client)) break;
        heap[i] = heap[parent];
        i = parent;
    }
    heap[i].time = time;
    heap[i].client = client;
}

static void replace_top(i64 count, i64 time, i64 client)
{
    i64 i = 0;
    for (;;) {
        i64 child = 2 * i + 1;
        if (child >= count) break;
        if (child + 1 < count && !before(heap[child].time, heap[child].client, &heap[child + 1])) child++;
        if (before(time, client, &heap[child])) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i].time = time;
    heap[i].client = client;
}

static inline i64 transmit(struct client *client, i64 t, i64 size)
{
    i64 depart = t > port_free ? t : port_free;
    depart += den == 1 ? size * num : (size * num + den - 1) / den;
    port_free = depart;
    return depart + client->delay;
}

static inline i32 unlink_head(struct client *client, struct queue *queue, int q)
{
    i32 node = queue->head;
    queue->head = nodes[node].next;
    __builtin_prefetch(&nodes[queue->head]);
    queue->length--;
    queue->work -= work_units(nodes[node].tag & SIZE_MASK);
    if (queue->length == 0) {
        queue->tail = -1;
        client->mask &= ~(1 << q);
    }
    return node;
}

static int pump(i64 c, i64 t)
{
    struct client *client = &clients[c];
    for (;;) {
        while (client->unsent != -1) {
            i32 node = client->unsent;
            i64 size = nodes[node].tag & SIZE_MASK;
            if (client->inflight > 0 && client->inflight + size > client->window) break;
            client->unsent = nodes[node].next;
            i64 time = transmit(client, t, size);
            nodes[node].time = time;
            client->inflight += size;
            if (client->next_ack == FOREVER) client->next_ack = time;
        }
        if (client->mask == 0) return client->unsent != -1;
        if (client->tcp_bytes >= client->tcp_limit) return 1;
        int q = 31 - __builtin_clz((unsigned)client->mask);
        struct queue *queue = &queues[c * 5 + q];
        i32 node = unlink_head(client, queue, q);
        i64 size = nodes[node].tag & SIZE_MASK, wait = t - nodes[node].time;
        queue->delivered++;
        queue->delivered_bytes += size;
        if (wait > 0) {
            struct tally *tally = &tallies[c * 5 + q];
            tally->wait_sum += wait;
            if (wait > tally->wait_max) tally->wait_max = wait;
            count_wait(c * 5 + q, wait);
        }
        if (queue->pending) { queue->pending = 0; tallies[c * 5 + q].indications++; }
        client->tcp_bytes += size;
        nodes[node].next = -1;
        if (client->head == -1) client->head = node; else nodes[client->tail].next = node;
        client->tail = node;
        if (client->unsent == -1) client->unsent = node;
    }
}

static inline void acknowledge(struct client *client)
{
    i32 node = client->head, after = nodes[node].next;
    i64 size = nodes[node].tag & SIZE_MASK;
    client->inflight -= size;
    client->tcp_bytes -= size;
    if (client->window < client->window_max) {
        client->window += size;
        if (client->window > client->window_max) client->window = client->window_max;
    }
    client->head = after;
    client->next_ack = FOREVER;
    if (after != -1 && after != client->unsent) {
        client->next_ack = nodes[after].time;
        __builtin_prefetch(&nodes[nodes[after].next]);
    }
    nodes[node].next = free_node;
    free_node = node;
}

static void arrive(const struct arrival *a)
{
    i64 c = a->client, t = a->time, size = a->size;
    int q = a->tag & 7;
    struct client *client = &clients[c];
    struct queue *queue = &queues[c * 5 + q];
    if (!client->queued) while (client->next_ack <= t) acknowledge(client);
    queue->arrived++;
    if (client->mask == 0 && client->unsent == -1 && client->tcp_bytes < client->tcp_limit
        && (client->inflight == 0 || client->inflight + size <= client->window)) {
        i32 node = free_node;
        free_node = nodes[node].next;
        queue->delivered++;
        queue->delivered_bytes += size;
        i64 w = work_units(size);
        if (w > queue->high_water) queue->high_water = w;
        if (queue->pending) { queue->pending = 0; tallies[c * 5 + q].indications++; }
        i64 time = transmit(client, t, size);
        nodes[node].time = time;
        nodes[node].tag = (i32)size | q << SIZE_BITS;
        nodes[node].next = -1;
        client->inflight += size;
        client->tcp_bytes += size;
        if (client->head == -1) { client->head = node; client->next_ack = time; } else nodes[client->tail].next = node;
        client->tail = node;
        return;
    }
    if (queue->length >= queue->burst) {
        i64 least = queue->burst > 1 ? queue->burst : 1;
        while (queue->length >= least && queue->work >= queue->max_depth) {
            i32 node = unlink_head(client, queue, q);
            queue->pending = 1;
            tallies[c * 5 + q].discarded++;
            if (tallies[c * 5 + q].first_discard < 0) tallies[c * 5 + q].first_discard = t;
            nodes[node].next = free_node;
            free_node = node;
        }
    }
    i32 node = free_node;
    free_node = nodes[node].next;
    nodes[node].time = t;
    nodes[node].tag = (i32)size | q << SIZE_BITS;
    nodes[node].next = -1;
    if (queue->length == 0) { queue->head = node; client->mask |= 1 << q; } else nodes[queue->tail].next = node;
    queue->tail = node;
    queue->length++;
    queue->work += work_units(size);
    if (queue->work > queue->high_water) queue->high_water = queue->work;
    if (client->queued && client->tcp_bytes >= client->tcp_limit) return;
    if (pump(c, t) && !client->queued) { client->queued = 1; push(client->next_ack, c); }
}

static void *zeros(size_t bytes)
{
    void *memory = aligned_alloc(64, bytes);
    if (!memory) exit(1);
    return memset(memory, 0, bytes);
}

int main(int argc, char **argv)
{
    if (argc != 12) return 2;
    i64 count = atoll(argv[2]), n = atoll(argv[3]), slab = 1 << 22;
    struct arrival *arrivals = malloc(count * sizeof *arrivals);
    FILE *file = fopen(argv[1], "rb");
    if (!file || fread(arrivals, sizeof *arrivals, count, file) != (size_t)count) return 1;
    fclose(file);
    nodes = malloc(slab * sizeof *nodes);
    for (i64 i = 0; i < slab; i++) nodes[i].next = i + 1 < slab ? (i32)(i + 1) : -1;
    clients = zeros(n * sizeof *clients);
    queues = zeros(5 * n * sizeof *queues);
    tallies = zeros(5 * n * sizeof *tallies);
    heap = calloc(n + 1, sizeof *heap);
    octaves = malloc(5 * n * sizeof *octaves);
    memset(octaves, -1, 5 * n * sizeof *octaves);
    blocks = calloc(5 * n * 24 + 64, sizeof *blocks);
    num = atoll(argv[9]);
    den = atoll(argv[10]);
    i64 horizon = atoll(argv[11]);
    for (i64 c = 0; c < n; c++) {
        struct client *client = &clients[c];
        client->next_ack = FOREVER;
        client->unsent = client->head = client->tail = -1;
        client->window = client->window_max = atoll(argv[6]);
        client->tcp_limit = atoll(argv[7]);
        client->delay = atoll(argv[8]);
        for (int q = 0; q < 5; q++) {
            struct queue *queue = &queues[c * 5 + q];
            queue->head = queue->tail = -1;
            tallies[c * 5 + q].first_discard = -1;
            queue->max_depth = atoll(argv[4]);
            queue->burst = atoll(argv[5]);
        }
    }
    for (int i = 0; i < RECENT; i++) recent[i] = &nobody;
    struct timespec begin, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    i64 position = 0;
    for (;;) {
        i64 t = position < count ? arrivals[position].time : horizon - 1;
        if (heap_count && heap[0].time <= t) {
            i64 c = heap[0].client, now = heap[0].time;
            acknowledge(&clients[c]);
            if (pump(c, now)) {
                replace_top(heap_count, clients[c].next_ack, c);
            } else {
                clients[c].queued = 0;
                heap_count--;
                replace_top(heap_count, heap[heap_count].time, heap[heap_count].client);
            }
        } else if (position < count) {
            const struct arrival *coming = &arrivals[position + AHEAD < count ? position + AHEAD : count - 1];
            __builtin_prefetch(&clients[coming->client]);
            __builtin_prefetch(&queues[coming->client * 5 + (coming->tag & 7)]);
            arrive(&arrivals[position++]);
        } else {
            break;
        }
    }
    for (int i = 0; i < RECENT; i++) ++*recent[i];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    i64 delivered = 0, discarded = 0, waits = 0, high = 0, filled = 0;
    for (i64 i = 0; i < 5 * n; i++) {
        delivered += queues[i].delivered;
        discarded += tallies[i].discarded;
        waits += tallies[i].wait_sum;
        high += queues[i].high_water;
    }
    for (i64 b = 0; b < blocks_used; b++)
        for (int i = 0; i < 128; i++) filled += blocks[b][i] != 0;
    printf("%.9f %lld %lld %lld %lld %lld\n", (end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec),
           (long long)delivered, (long long)discarded, (long long)waits, (long long)high, (long long)filled);
    return 0;
}
