/* sequence_search.c: see sequence_search.h. */
#include "broker/sequence_search.h"

#include "broker/partition_state.h"

#define SEQUENCE_MASK 0x7fffffffu
#define READ_BYTES    262144
/* Records of others between those of the producer; the next stretch is longer. */
#define STEP_OFFSETS     1024
#define STEP_OFFSETS_MAX 1048576
#define STEP_GROWTH      4

/* The topic may go while a read is under way. */
static struct partition *partition_of(const struct sequence_search *search)
{
    const struct topic *topic = catalog_find_uid(search->broker, &search->topic);
    return topic != NULL ? topic_partition(topic, search->partition) : NULL;
}

static void look_at(struct sequence_search *search, const struct batch_header *header)
{
    if (header->producer_id != search->producer_id ||
        header->producer_epoch != search->producer_epoch || header->base_sequence < 0) {
        return;
    }
    uint32_t first = (uint32_t)header->base_sequence;
    uint32_t ahead = (search->sequence - first) & SEQUENCE_MASK;
    if (ahead <= SEQUENCE_MASK / 2) search->reached = true;
    search->found(search->context, first, (uint32_t)header->last_offset_delta, header->base_offset);
}

/* False: it cannot go on. */
static bool take_read(struct sequence_search *search, enum status status)
{
    for (uint32_t i = 0; status == STATUS_OK && i < search->read.piece_count; i++) {
        const struct log_piece *piece = &search->read.pieces[i];
        for (uint32_t at = 0; status == STATUS_OK && at < piece->bytes;) {
            struct batch_header header;
            status = batch_parse(piece->shared->data + piece->at + at, piece->bytes - at, true,
                                 &header, NULL);
            if (status != STATUS_OK) break;
            look_at(search, &header);
            at += header.batch_bytes;
        }
    }
    /* Nothing given: the stretch ends inside a batch, which the one behind it began with. */
    bool moved = search->read.next_offset > search->read.offset;
    search->bytes_left -= search->read.bytes;
    log_read_release(&search->read);
    search->read.offset = moved ? search->read.next_offset : search->to;
    return status == STATUS_OK && search->bytes_left > 0;
}

/* The stretch before the last one; false: there is none, or no need for it. */
static bool next_stretch(struct sequence_search *search, const struct partition *partition)
{
    int64_t start = partition_log_start(partition);
    if (search->reached || search->from <= start) return false;
    search->to = search->from;
    search->from = search->to - search->step > start ? search->to - search->step : start;
    search->step *= STEP_GROWTH;
    if (search->step > STEP_OFFSETS_MAX) search->step = STEP_OFFSETS_MAX;
    search->read.offset = search->from;
    return true;
}

static bool search_on(struct sequence_search *search);

static void read_done(void *context, struct log_read *read)
{
    struct sequence_search *search = context;
    if (take_read(search, read->status) && !search_on(search)) return;
    search->done(search->context, search);
}

/* True: it is over. */
static bool search_on(struct sequence_search *search)
{
    for (;;) {
        struct partition *partition = partition_of(search);
        if (partition == NULL) return true;
        bool whole = search->read.offset >= search->to;
        if (whole && !next_stretch(search, partition)) return true;
        search->read = (struct log_read){.offset = search->read.offset,
                                         .limit_offset = search->to,
                                         .bytes_max = READ_BYTES,
                                         .at_least_one = true,
                                         .done = read_done,
                                         .context = search};
        enum status status = partition_log_read(partition->log, &search->read);
        if (status == STATUS_AGAIN) return false;
        if (!take_read(search, status)) return true;
    }
}

bool broker_search_sequences(struct broker *broker, struct sequence_search *search)
{
    search->broker = broker;
    search->reached = false;
    const struct partition *partition = search->bytes_left > 0 ? partition_of(search) : NULL;
    const struct producer_state *state =
        partition != NULL ? producer_table_find(partition->producers, search->producer_id) : NULL;
    if (state == NULL || state->epoch != search->producer_epoch || state->batch_count == 0) {
        return true;
    }
    const struct producer_batch *oldest = &state->batches[0];
    uint32_t records = ((uint32_t)oldest->first_sequence - search->sequence) & SEQUENCE_MASK;
    search->step = STEP_OFFSETS + (records < STEP_OFFSETS_MAX ? records : STEP_OFFSETS_MAX);
    search->from = search->to = search->read.offset = oldest->base_offset;
    return search_on(search);
}
