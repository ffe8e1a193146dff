#include "sim/history_keyed.h"

#include <string.h>

#define KEY_BYTES    2
#define HEADER_BYTES 11 /* 1 byte of name, 8 of value, their lengths */

static const uint8_t header_start[] = {2, 'i', 16}; /* lengths are zigzag */

static struct history_writer *writer_of(struct history *history, uint32_t number)
{
    return &history->writers[number - 1];
}

static history_id id_of(uint32_t writer, uint32_t counter)
{
    return (history_id)writer << 40 | counter;
}

static uint32_t counter_of(history_id id)
{
    return (uint32_t)id;
}

history_id history_new_keyed_record(struct history *history, uint32_t writer, uint16_t key,
                                    uint16_t value_bytes)
{
    history_id id = history_new_record(history, writer, value_bytes);
    struct history_record *record = history_record(history, id);
    record->key = key;
    record->tombstone = value_bytes == 0;
    return id;
}

static const struct history_record *sent_record(const struct history *history, history_id id)
{
    return &history->writers[(id >> 40) - 1].records[counter_of(id)];
}

bool history_is_tombstone(const struct history *history, history_id id)
{
    return sent_record(history, id)->tombstone;
}

void history_write_key(const struct history *history, history_id id, struct buffer *out)
{
    buffer_put_u16(out, sent_record(history, id)->key);
}

void history_write_header(history_id id, struct buffer *out)
{
    buffer_put(out, header_start, sizeof(header_start));
    buffer_put_u64(out, id);
}

/* HISTORY_NOTHING: nobody sent this record to this log, as it stands. */
static history_id parse_record(struct history *history, const struct history_map *map,
                               const struct record *found)
{
    if (found->header_count != 1 || found->headers.bytes != HEADER_BYTES ||
        memcmp(found->headers.data, header_start, sizeof(header_start)) != 0 || !found->has_key ||
        found->key.bytes != KEY_BYTES)
        return HISTORY_NOTHING;
    history_id id = load_u64(found->headers.data + sizeof(header_start));
    const struct history_writer *writer = writer_of(history, map->writer);
    if (id >> 40 != map->writer || counter_of(id) >= writer->count) return HISTORY_NOTHING;
    const struct history_record *record = &writer->records[counter_of(id)];
    if (record->log != map->log || record->key != load_u16(found->key.data) ||
        record->tombstone == found->has_value)
        return HISTORY_NOTHING;
    if (record->tombstone) return id;
    struct buffer value;
    buffer_init(&value, 0);
    history_write_value(history, id, &value);
    bool same = value.bytes == found->value.bytes &&
                memcmp(value.data, found->value.data, value.bytes) == 0;
    buffer_deinit(&value);
    return same ? id : HISTORY_NOTHING;
}

void history_map_begin(struct history *history, struct history_map *map, uint32_t log,
                       uint32_t writer_number, uint16_t key_count)
{
    const struct history_writer *writer = writer_of(history, writer_number);
    *map = (struct history_map){.log = log, .writer = writer_number, .key_count = key_count};
    map->last = sim_alloc((key_count + 1u) * sizeof(map->last[0]));
    map->newest = sim_alloc((key_count + 1u) * sizeof(map->newest[0]));
    for (uint32_t i = 0; i < writer->count; i++) {
        const struct history_record *record = &writer->records[i];
        if (record->log == log && record->key != 0 && record->outcome == HISTORY_OK)
            map->newest[record->key] = id_of(writer_number, i);
    }
}

void history_map_drop(struct history_map *map)
{
    sim_release(map->last);
    sim_release(map->newest);
    map->last = map->newest = NULL;
}

void history_map_record(struct history *history, struct history_map *map,
                        const struct record *found)
{
    const struct history_log *log = &history->logs[map->log];
    if (found->offset < map->next)
        sim_verdict_fail(history->verdict, "I4", "%s/%d: offset %lld was read after %lld",
                         log->topic, log->partition, (long long)found->offset,
                         (long long)map->next - 1);
    map->next = found->offset + 1;
    history_id id = parse_record(history, map, found);
    if (id == HISTORY_NOTHING) {
        sim_verdict_fail(history->verdict, "I1", "%s/%d offset %lld: a record that nobody sent",
                         log->topic, log->partition, (long long)found->offset);
        return;
    }
    const struct history_record *record = history_record(history, id);
    if (record->outcome == HISTORY_NO)
        sim_verdict_fail(history->verdict, "I7", "%s/%d offset %lld: %u:%u had been refused",
                         log->topic, log->partition, (long long)found->offset, map->writer,
                         counter_of(id));
    history_id *last = &map->last[record->key];
    if (*last != HISTORY_NOTHING && *last >= id)
        sim_verdict_fail(history->verdict, "I19",
                         "%s/%d offset %lld: record %u of key %u after its record %u", log->topic,
                         log->partition, (long long)found->offset, counter_of(id), record->key,
                         counter_of(*last));
    *last = id;
    history_observe(history, map->log, found->offset, id, "read");
}

/* May the key be gone? If the newest that must count, or one after it that may, is a tombstone. */
static bool may_be_gone(struct history *history, const struct history_map *map, uint16_t key)
{
    const struct history_writer *writer = writer_of(history, map->writer);
    for (uint32_t i = counter_of(map->newest[key]); i < writer->count; i++) {
        const struct history_record *record = &writer->records[i];
        if (record->key == key && record->log == map->log && record->tombstone &&
            record->outcome != HISTORY_NO)
            return true;
    }
    return false;
}

void history_map_end(struct history *history, struct history_map *map)
{
    const struct history_log *log = &history->logs[map->log];
    for (uint16_t key = 1; key <= map->key_count; key++) {
        history_id newest = map->newest[key], last = map->last[key];
        if (newest == HISTORY_NOTHING || last >= newest) continue;
        if (last == HISTORY_NOTHING && may_be_gone(history, map, key)) continue;
        sim_verdict_fail(history->verdict, "I19",
                         "%s/%d: the newest record of key %u, acknowledged, is %u; a reading to "
                         "the end gives %s%u",
                         log->topic, log->partition, key, counter_of(newest),
                         last == HISTORY_NOTHING ? "none, not " : "", counter_of(last));
    }
    history_map_drop(map);
}
