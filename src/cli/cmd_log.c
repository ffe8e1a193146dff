/* cmd_log.c: `moonmq log dump|verify`: segment files on disk, of a stopped broker or a copy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "log/inspect.h"

#define DECOMPRESSED_MAX (100u << 20)

struct log_options {
    const char *path;
    bool records; /* dump: each record */
    enum cli_format format;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct log_options *options = state->input;
    switch (key) {
    case 'r': options->records = true; return 0;
    case 'f':
        if (strcmp(argument, "json") == 0)
            options->format = CLI_FORMAT_JSON;
        else if (strcmp(argument, "text") != 0)
            argp_error(state, "--format: text or json");
        return 0;
    case ARGP_KEY_ARG:
        if (options->path != NULL) argp_error(state, "one path at a time");
        options->path = argument;
        return 0;
    case ARGP_KEY_END:
        if (options->path == NULL) argp_error(state, "name a segment file or a directory");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option argp_options[] = {
    {"records", 'r', NULL, 0, "dump: each record's value too", 0},
    {"format", 'f', "text|json", 0, "dump: a line of text or a JSON object each", 0},
    {0}};

static void print_record_json(const struct record *record, int32_t leader_epoch)
{
    json_t *row = json_pack("{s:I, s:i, s:I}", "offset", (json_int_t)record->offset, "epoch",
                            leader_epoch, "timestamp", (json_int_t)record->timestamp_ms);
    output_set_bytes(row, "key", "key_base64url", record->key.data, record->key.bytes);
    output_set_bytes(row, "value", "value_base64url", record->value.data, record->value.bytes);
    output_json(row);
}

/* In quotes, so that a line stays a line and what is within them is not taken for their end. */
static void print_quoted(const char *title, struct slice text)
{
    printf(" %s=\"", title);
    for (size_t at = 0; at < text.bytes; at++) {
        size_t start = at;
        while (at < text.bytes && text.data[at] != '"' && text.data[at] != '\\')
            at++;
        char *plain = output_escaped(text.data + start, at - start);
        fputs(plain, stdout);
        free(plain);
        if (at < text.bytes) printf("\\%c", text.data[at]);
    }
    putchar('"');
}

static void print_record_text(const struct record *record, int32_t leader_epoch)
{
    printf("  offset=%lld epoch=%d timestamp=%lld", (long long)record->offset, leader_epoch,
           (long long)record->timestamp_ms);
    print_quoted("key", record->key);
    print_quoted("value", record->value);
    putchar('\n');
}

static void print_records(const struct log_options *options, const struct log_inspect_batch *batch)
{
    struct record_iterator iterator;
    struct record record;
    struct error error;
    if (record_iterator_init(&iterator, batch->data, batch->header.batch_bytes, DECOMPRESSED_MAX,
                             &error) != STATUS_OK) {
        printf("  unreadable: %s\n", error.text);
        return;
    }
    while (record_iterator_next(&iterator, &record, &error) == STATUS_OK) {
        if (options->format == CLI_FORMAT_JSON) {
            print_record_json(&record, batch->header.leader_epoch);
        } else {
            print_record_text(&record, batch->header.leader_epoch);
        }
    }
    record_iterator_deinit(&iterator);
}

static bool print_batch(void *context, const struct log_inspect_batch *batch)
{
    const struct log_options *options = context;
    const struct batch_header *header = &batch->header;
    if (options->format == CLI_FORMAT_JSON && !options->records) {
        printf("{\"position\":%lld,\"base_offset\":%lld,\"last_offset\":%lld,\"epoch\":%d,"
               "\"bytes\":%u,\"records\":%d,\"producer_id\":%lld,\"base_sequence\":%d}\n",
               (long long)batch->position, (long long)header->base_offset,
               (long long)batch_last_offset(header), header->leader_epoch, header->batch_bytes,
               header->record_count, (long long)header->producer_id, header->base_sequence);
    } else if (options->format == CLI_FORMAT_TEXT) {
        printf("position=%lld offsets=%lld..%lld epoch=%d bytes=%u records=%d codec=%d "
               "producer=%lld/%d sequence=%d\n",
               (long long)batch->position, (long long)header->base_offset,
               (long long)batch_last_offset(header), header->leader_epoch, header->batch_bytes,
               header->record_count, header->attributes & BATCH_CODEC_MASK,
               (long long)header->producer_id, header->producer_epoch, header->base_sequence);
    }
    if (options->records) print_records(options, batch);
    return true;
}

static void print_fault(void *context, const struct log_inspect_fault *fault)
{
    (void)context;
    fprintf(stderr, "%s: position %lld, offset %lld: %s\n", fault->path, (long long)fault->position,
            (long long)fault->offset, fault->text);
}

static bool is_file(const char *path)
{
    enum file_kind kind;
    return file_kind(file_system_posix(), path, &kind, NULL) == STATUS_OK &&
           kind == FILE_KIND_REGULAR;
}

/* A DataDir may hold no records yet. */
static bool is_data_dir(const char *path)
{
    char topics[4096];
    enum file_kind kind;
    int length = snprintf(topics, sizeof(topics), "%s/topics", path);
    return length < (int)sizeof(topics) &&
           file_kind(file_system_posix(), topics, &kind, NULL) == STATUS_OK &&
           kind == FILE_KIND_DIRECTORY;
}

static int inspect(struct log_options *options, bool dump)
{
    struct log_inspect_handlers handlers = {dump ? print_batch : NULL, print_fault, options};
    struct log_inspect_result result = LOG_INSPECT_RESULT_NONE;
    struct error error = {0};
    struct file_system *fs = file_system_posix();
    enum status status = is_file(options->path)
                             ? log_inspect_file(fs, options->path, &handlers, &result, &error)
                             : log_verify_directory(fs, options->path, &handlers, &result, &error);
    if (status != STATUS_OK) return cli_fail_text("%s", error.text);
    if (result.files == 0 && !is_data_dir(options->path)) {
        return cli_fail_text(
            "%s: no segment (20 digits and .log) is here or below: name a DataDir, "
            "a directory in its topics/, or a segment file",
            options->path);
    }
    if (!dump) {
        printf("%s: %llu files, %llu batches, %llu records, %lld bytes, %llu faults\n",
               options->path, (unsigned long long)result.files, (unsigned long long)result.batches,
               (unsigned long long)result.records, (long long)result.bytes,
               (unsigned long long)result.faults);
    }
    return result.faults == 0 ? CLI_OK : CLI_FAILED;
}

static int log_dump(int argc, char **argv)
{
    static const struct argp argp = {
        .options = argp_options,
        .parser = parse,
        .args_doc = "PATH",
        .doc = "Prints the batches of a segment file, or of every segment below a directory.\v"
               "example: moonmq log dump --records data/topics/orders/0/00000000000000000000.log"};
    struct log_options options = {0};
    cli_parse(&argp, argc, argv, &options);
    return inspect(&options, true);
}

static int log_verify(int argc, char **argv)
{
    static const struct argp argp = {
        .parser = parse,
        .args_doc = "PATH",
        .doc = "Checks every byte of a segment file, or of every segment below a directory: CRCs, "
               "offsets, epochs, digests.\vExit code 1 if a fault was found, or if there is "
               "nothing to check.\n\n"
               "example: moonmq log verify data"};
    struct log_options options = {0};
    cli_parse(&argp, argc, argv, &options);
    return inspect(&options, false);
}

int cmd_log(int argc, char **argv)
{
    static const struct command commands[] = {
        {"dump", log_dump, "print batches and records"},
        {"verify", log_verify, "check every byte"},
        {NULL, NULL, NULL},
    };
    return commands_run(commands, argc, argv, "Looks into log files on disk.");
}
