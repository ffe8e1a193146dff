/* wire_fetch.c: see wire_fetch.h. Layouts are written out field by field in the order of the spec's
 * tables. */
#include "replication/wire_fetch.h"

#include <string.h>

#include "base/crc32c.h"

#define REQUEST_MAGIC 0x4d4d5146u /* MMQF */
#define ANSWER_MAGIC  0x4d4d5152u /* MMQR */
#define CRC_BYTES     4

static const uint16_t request_flags_known = WIRE_OPEN | WIRE_CLOSE;
static const uint16_t answer_flags_known =
    WIRE_OPENED | WIRE_LEARNER | WIRE_IN_ISR | WIRE_HANDING_OVER;
static const uint8_t entry_flags_known =
    WIRE_DEFINE | WIRE_REMOVE | WIRE_REWOUND | WIRE_CONFLICT | WIRE_FAILED | WIRE_DROPPED;

static void put_uuid(struct buffer *buffer, const struct uuid *uuid)
{
    buffer_put(buffer, uuid->bytes, UUID_BYTES);
}

static struct uuid get_uuid(struct reader *reader)
{
    struct uuid uuid = {{0}};
    struct slice bytes = reader_bytes(reader, UUID_BYTES);
    if (bytes.bytes == UUID_BYTES) memcpy(uuid.bytes, bytes.data, UUID_BYTES);
    return uuid;
}

static void put_version(struct buffer *buffer, struct manifest_version version)
{
    buffer_put_i32(buffer, version.epoch);
    buffer_put_i64(buffer, version.n);
}

static struct manifest_version get_version(struct reader *reader)
{
    struct manifest_version version;
    version.epoch = reader_i32(reader);
    version.n = reader_i64(reader);
    return version;
}

static void get_members(struct reader *reader, uint8_t members[8])
{
    struct slice bytes = reader_bytes(reader, 8);
    if (bytes.bytes == 8) memcpy(members, bytes.data, 8);
}

void wire_put_request_header(struct buffer *buffer, const struct wire_request_header *header)
{
    buffer_put_u32(buffer, REQUEST_MAGIC);
    buffer_put_u8(buffer, WIRE_VERSION);
    buffer_put_u8(buffer, (uint8_t)header->kind);
    buffer_put_u16(buffer, header->flags);
    buffer_put_i32(buffer, header->from);
    buffer_put_i32(buffer, header->to);
    buffer_put_i32(buffer, header->epoch);
    buffer_put_u32(buffer, header->entry_count);
    buffer_put_u64(buffer, header->session);
    buffer_put_u64(buffer, header->seq);
    put_uuid(buffer, &header->group);
    put_uuid(buffer, &header->from_incarnation);
    put_uuid(buffer, &header->to_incarnation);
    buffer_put(buffer, header->members, 8);
    put_version(buffer, header->applied);
    buffer_put_u32(buffer, header->max_wait_ms);
    buffer_put_u32(buffer, header->max_bytes);
}

void wire_put_request_entry(struct buffer *buffer, const struct wire_request_entry *entry)
{
    buffer_put_u32(buffer, entry->slot);
    buffer_put_u8(buffer, entry->flags);
    buffer_put_u8(buffer, entry->reason);
    buffer_put_u16(buffer, 0);
    buffer_put_i64(buffer, entry->fetch_offset);
    buffer_put_i64(buffer, entry->durable_offset);
    buffer_put_i64(buffer, entry->log_start);
    buffer_put_i32(buffer, entry->last_epoch);
    if (entry->flags & WIRE_DEFINE) {
        put_uuid(buffer, &entry->uid);
        buffer_put_u32(buffer, entry->partition);
    }
    if (entry->flags & WIRE_DROPPED) buffer_put_i64(buffer, entry->dropped_to);
}

void wire_put_answer_header(struct buffer *buffer, const struct wire_answer_header *header)
{
    buffer_put_u32(buffer, ANSWER_MAGIC);
    buffer_put_u8(buffer, WIRE_VERSION);
    buffer_put_u8(buffer, (uint8_t)header->kind);
    buffer_put_u16(buffer, header->flags);
    buffer_put_i32(buffer, header->from);
    buffer_put_i32(buffer, header->to);
    buffer_put_i32(buffer, header->epoch);
    buffer_put_u32(buffer, header->entry_count);
    buffer_put_u64(buffer, header->session);
    buffer_put_u64(buffer, header->seq);
    put_uuid(buffer, &header->group);
    put_uuid(buffer, &header->from_incarnation);
    put_uuid(buffer, &header->to_incarnation);
    put_version(buffer, header->version);
    put_version(buffer, header->committed);
    buffer_put_u32(buffer, header->min_insync);
    buffer_put_u32(buffer, header->data_bytes);
}

void wire_put_answer_entry(struct buffer *buffer, const struct wire_answer_entry *entry)
{
    buffer_put_u32(buffer, entry->slot);
    buffer_put_u8(buffer, entry->kind);
    buffer_put_u8(buffer, entry->code);
    buffer_put_u16(buffer, 0);
    buffer_put_i64(buffer, entry->high_watermark);
    buffer_put_i64(buffer, entry->log_start);
    buffer_put_i64(buffer, entry->offset);
    buffer_put_i32(buffer, entry->epoch);
    buffer_put_u32(buffer, entry->bytes);
}

void wire_put_crc(struct buffer *buffer, size_t start)
{
    buffer_put_u32(buffer, crc32c(buffer->data + start, buffer->bytes - start));
}

/* Magic, wire version and kind of either direction. */
static enum status open_common(struct reader *reader, uint32_t magic, enum wire_fetch_kind *kind,
                               struct error *error)
{
    uint32_t got = reader_u32(reader);
    uint8_t wire = reader_u8(reader);
    uint8_t code = reader_u8(reader);
    if (reader_failed(reader) || got != magic) {
        return error_set(error, STATUS_INVALID, "fetch body: wrong magic");
    }
    if (wire != WIRE_VERSION) {
        return error_set(error, STATUS_UNSUPPORTED, "fetch body: wire version %u, expected %u",
                         wire, WIRE_VERSION);
    }
    if (code != WIRE_FETCH && code != WIRE_PROGRESS) {
        return error_set(error, STATUS_INVALID, "fetch body: unknown kind %u", code);
    }
    *kind = (enum wire_fetch_kind)code;
    return STATUS_OK;
}

/* The CRC stands right behind the entries; *entries becomes the part between header and CRC. */
static enum status check_crc(struct slice body, size_t header_bytes, size_t entries_bytes,
                             struct reader *entries, struct error *error)
{
    size_t covered = header_bytes + entries_bytes;
    if (load_u32(body.data + covered) != crc32c(body.data, covered)) {
        return error_set(error, STATUS_INVALID, "fetch body: CRC does not match");
    }
    reader_init(entries, body.data + header_bytes, entries_bytes);
    return STATUS_OK;
}

enum status wire_open_request(struct slice body, struct wire_request_header *header,
                              struct reader *entries, struct error *error)
{
    struct reader reader;
    reader_init(&reader, body.data, body.bytes);
    enum status status = open_common(&reader, REQUEST_MAGIC, &header->kind, error);
    if (status != STATUS_OK) return status;
    header->flags = reader_u16(&reader);
    header->from = reader_i32(&reader);
    header->to = reader_i32(&reader);
    header->epoch = reader_i32(&reader);
    header->entry_count = reader_u32(&reader);
    header->session = reader_u64(&reader);
    header->seq = reader_u64(&reader);
    header->group = get_uuid(&reader);
    header->from_incarnation = get_uuid(&reader);
    header->to_incarnation = get_uuid(&reader);
    get_members(&reader, header->members);
    header->applied = get_version(&reader);
    header->max_wait_ms = reader_u32(&reader);
    header->max_bytes = reader_u32(&reader);
    if (reader_failed(&reader) || body.bytes < WIRE_REQUEST_HEADER_BYTES + CRC_BYTES) {
        return error_set(error, STATUS_INVALID, "fetch request: cut short");
    }
    if (header->flags & ~request_flags_known) {
        return error_set(error, STATUS_INVALID, "fetch request: unknown flags %#x", header->flags);
    }
    if (header->kind == WIRE_PROGRESS && header->flags != 0) {
        return error_set(error, STATUS_INVALID, "progress: OPEN and CLOSE ride on fetches only");
    }
    size_t entries_bytes = body.bytes - WIRE_REQUEST_HEADER_BYTES - CRC_BYTES;
    if (header->entry_count > entries_bytes / WIRE_REQUEST_ENTRY_BYTES) {
        return error_set(error, STATUS_INVALID, "fetch request: %u entries in %zu bytes",
                         header->entry_count, entries_bytes);
    }
    return check_crc(body, WIRE_REQUEST_HEADER_BYTES, entries_bytes, entries, error);
}

enum status wire_next_request_entry(struct reader *entries, struct wire_request_entry *entry,
                                    struct error *error)
{
    memset(entry, 0, sizeof(*entry));
    entry->slot = reader_u32(entries);
    entry->flags = reader_u8(entries);
    entry->reason = reader_u8(entries);
    uint16_t zero = reader_u16(entries);
    entry->fetch_offset = reader_i64(entries);
    entry->durable_offset = reader_i64(entries);
    entry->log_start = reader_i64(entries);
    entry->last_epoch = reader_i32(entries);
    if (entry->flags & WIRE_DEFINE) {
        entry->uid = get_uuid(entries);
        entry->partition = reader_u32(entries);
    }
    if (entry->flags & WIRE_DROPPED) entry->dropped_to = reader_i64(entries);
    if (reader_failed(entries)) {
        return error_set(error, STATUS_INVALID, "fetch request: entry cut short");
    }
    if (entry->slot >= WIRE_SLOT_MAX) {
        return error_set(error, STATUS_INVALID, "slot %u: past %u", entry->slot, WIRE_SLOT_MAX);
    }
    if ((entry->flags & ~entry_flags_known) || zero != 0 ||
        entry->reason > WIRE_REASON_OUT_OF_ORDER) {
        return error_set(error, STATUS_INVALID, "slot %u: unknown flags or reason", entry->slot);
    }
    if ((entry->flags & WIRE_DEFINE) && (entry->flags & WIRE_REMOVE)) {
        return error_set(error, STATUS_INVALID, "slot %u: DEFINE with REMOVE", entry->slot);
    }
    if (entry->fetch_offset < 0 || entry->durable_offset < 0 || entry->log_start < 0 ||
        entry->last_epoch < -1 || entry->dropped_to < 0 ||
        (entry->durable_offset > entry->fetch_offset && !(entry->flags & WIRE_CONFLICT))) {
        return error_set(error, STATUS_INVALID, "slot %u: offsets out of range", entry->slot);
    }
    return STATUS_OK;
}

enum status wire_open_answer(struct slice body, struct wire_answer_header *header,
                             struct reader *entries, struct slice *records, struct error *error)
{
    struct reader reader;
    reader_init(&reader, body.data, body.bytes);
    enum status status = open_common(&reader, ANSWER_MAGIC, &header->kind, error);
    if (status != STATUS_OK) return status;
    header->flags = reader_u16(&reader);
    header->from = reader_i32(&reader);
    header->to = reader_i32(&reader);
    header->epoch = reader_i32(&reader);
    header->entry_count = reader_u32(&reader);
    header->session = reader_u64(&reader);
    header->seq = reader_u64(&reader);
    header->group = get_uuid(&reader);
    header->from_incarnation = get_uuid(&reader);
    header->to_incarnation = get_uuid(&reader);
    header->version = get_version(&reader);
    header->committed = get_version(&reader);
    header->min_insync = reader_u32(&reader);
    header->data_bytes = reader_u32(&reader);
    if (reader_failed(&reader)) {
        return error_set(error, STATUS_INVALID, "fetch answer: cut short");
    }
    if (header->flags & ~answer_flags_known) {
        return error_set(error, STATUS_INVALID, "fetch answer: unknown flags %#x", header->flags);
    }
    size_t after_header = body.bytes - WIRE_ANSWER_HEADER_BYTES;
    uint64_t needed =
        (uint64_t)header->entry_count * WIRE_ANSWER_ENTRY_BYTES + CRC_BYTES + header->data_bytes;
    if (needed != after_header) {
        return error_set(error, STATUS_INVALID, "fetch answer: %zu bytes, expected %llu",
                         after_header, (unsigned long long)needed);
    }
    size_t entries_bytes = (size_t)header->entry_count * WIRE_ANSWER_ENTRY_BYTES;
    status = check_crc(body, WIRE_ANSWER_HEADER_BYTES, entries_bytes, entries, error);
    if (status != STATUS_OK) return status;
    records->data = body.data + WIRE_ANSWER_HEADER_BYTES + entries_bytes + CRC_BYTES;
    records->bytes = header->data_bytes;
    return STATUS_OK;
}

enum status wire_next_answer_entry(struct reader *entries, struct wire_answer_entry *entry,
                                   struct error *error)
{
    entry->slot = reader_u32(entries);
    entry->kind = reader_u8(entries);
    entry->code = reader_u8(entries);
    uint16_t zero = reader_u16(entries);
    entry->high_watermark = reader_i64(entries);
    entry->log_start = reader_i64(entries);
    entry->offset = reader_i64(entries);
    entry->epoch = reader_i32(entries);
    entry->bytes = reader_u32(entries);
    if (reader_failed(entries)) {
        return error_set(error, STATUS_INVALID, "fetch answer: entry cut short");
    }
    if (entry->slot >= WIRE_SLOT_MAX || zero != 0 || entry->kind > WIRE_RENEW ||
        entry->code > WIRE_ERROR_NOT_READY || (entry->kind != WIRE_DATA && entry->bytes != 0)) {
        return error_set(error, STATUS_INVALID, "fetch answer: malformed entry of slot %u",
                         entry->slot);
    }
    return STATUS_OK;
}
