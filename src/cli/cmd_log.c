/* cmd_log.c: `moonmq log dump|verify`: segment files on disk, of a stopped broker or a copy. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "log/inspect.h"

#define DECOMPRESSED_MAX (100u << 20)

struct log_options {
    const char *path;
    bool records; /* dump: each record */
    enum cli_format format;
    uint64_t unreadable; /* dump: batches whose records are */
    /* verify: how far it is. */
    int64_t bytes, total_bytes;
    uint64_t batches;
    struct progress progress;
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
    struct log_options *options = state->input;
    switch (key) {
    case 'r': options->records = true; return 0;
    case ARGP_KEY_ARG:
        if (options->path != NULL) cli_usage_error("one path at a time");
        options->path = argument;
        return 0;
    case ARGP_KEY_END:
        if (options->path == NULL) cli_usage_error("name a segment file or a directory");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

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

static void print_records(struct log_options *options, const struct log_inspect_batch *batch)
{
    struct record_iterator iterator;
    struct record record;
    struct error error;
    enum status status = record_iterator_init(&iterator, batch->data, batch->header.batch_bytes,
                                              DECOMPRESSED_MAX, &error);
    bool opened = status == STATUS_OK;
    while (status == STATUS_OK &&
           (status = record_iterator_next(&iterator, &record, &error)) == STATUS_OK) {
        if (options->format == CLI_FORMAT_JSON) {
            print_record_json(&record, batch->header.leader_epoch);
        } else {
            print_record_text(&record, batch->header.leader_epoch);
        }
    }
    if (opened) record_iterator_deinit(&iterator);
    if (status == STATUS_NOT_FOUND) return;
    options->unreadable++;
    cli_fail_text("%s: position %lld: records that cannot be read: %s", batch->path,
                  (long long)batch->position, error.text);
}

static void print_batch_json(const struct log_inspect_batch *batch)
{
    const struct batch_header *header = &batch->header;
    output_json(
        json_pack("{s:I, s:I, s:I, s:i, s:I, s:i, s:i, s:I, s:i, s:i}", "position",
                  (json_int_t)batch->position, "base_offset", (json_int_t)header->base_offset,
                  "last_offset", (json_int_t)batch_last_offset(header), "epoch",
                  (int)header->leader_epoch, "bytes", (json_int_t)header->batch_bytes, "records",
                  (int)header->record_count, "codec", header->attributes & BATCH_CODEC_MASK,
                  "producer_id", (json_int_t)header->producer_id, "producer_epoch",
                  (int)header->producer_epoch, "base_sequence", (int)header->base_sequence));
}

static bool print_batch(void *context, const struct log_inspect_batch *batch)
{
    struct log_options *options = context;
    const struct batch_header *header = &batch->header;
    if (options->format == CLI_FORMAT_JSON && !options->records) {
        print_batch_json(batch);
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

static struct progress_view view_of(const struct log_options *options)
{
    double total = (double)options->total_bytes;
    return (struct progress_view){.unit = "batches",
                                  .done = (int64_t)options->batches,
                                  .total = -1,
                                  .bytes = options->bytes,
                                  .fraction = total > 0 ? (double)options->bytes / total : -1};
}

static bool count_batch(void *context, const struct log_inspect_batch *batch)
{
    struct log_options *options = context;
    options->batches++;
    options->bytes += batch->header.batch_bytes;
    progress_show(&options->progress, view_of(options));
    return true;
}

/* nftw() has no context. */
static int64_t found_bytes;
static int add_segment(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    size_t bytes = strlen(path);
    (void)where;
    if (kind == FTW_F && bytes > 4 && strcmp(path + bytes - 4, ".log") == 0) {
        found_bytes += facts->st_size;
    }
    return 0;
}

/* About what is to be read: the space kept for appends counts, too. */
static int64_t segment_bytes_below(const char *path)
{
    found_bytes = 0;
    (void)nftw(path, add_segment, 16, FTW_PHYS);
    return found_bytes;
}

static void print_fault(void *context, const struct log_inspect_fault *fault)
{
    (void)context;
    progress_interrupt();
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

static void print_result(const struct log_options *options, const struct log_inspect_result *result)
{
    if (options->format == CLI_FORMAT_JSON) {
        output_json(json_pack("{s:o, s:I, s:I, s:I, s:I, s:I}", "path", output_name(options->path),
                              "files", (json_int_t)result->files, "batches",
                              (json_int_t)result->batches, "records", (json_int_t)result->records,
                              "bytes", (json_int_t)result->bytes, "faults",
                              (json_int_t)result->faults));
        return;
    }
    output_line("%s: %llu files, %llu batches, %llu records, %lld bytes, %llu faults",
                options->path, (unsigned long long)result->files,
                (unsigned long long)result->batches, (unsigned long long)result->records,
                (long long)result->bytes, (unsigned long long)result->faults);
}

static int inspect(struct log_options *options, bool dump)
{
    struct log_inspect_handlers handlers = {dump ? print_batch : count_batch, print_fault, options};
    struct log_inspect_result result = LOG_INSPECT_RESULT_NONE;
    struct error error = {0};
    struct file_system *fs = file_system_posix();
    progress_start(&options->progress, !dump);
    if (options->progress.is_shown) options->total_bytes = segment_bytes_below(options->path);
    enum status status = is_file(options->path)
                             ? log_inspect_file(fs, options->path, &handlers, &result, &error)
                             : log_verify_directory(fs, options->path, &handlers, &result, &error);
    progress_end(&options->progress, view_of(options));
    if (status != STATUS_OK) return cli_fail_text("%s", error.text);
    if (result.files == 0 && !is_data_dir(options->path)) {
        return cli_fail_text(
            "%s: no segment (20 digits and .log) is here or below: name a DataDir, "
            "a directory in its topics/, or a segment file",
            options->path);
    }
    if (!dump) print_result(options, &result);
    return result.faults == 0 && options->unreadable == 0 ? CLI_OK : CLI_FAILED;
}

static int log_dump(const struct command *command, int argc, char **argv)
{
    struct log_options options = {0};
    cli_parse(command, parse, argc, argv, &options, &options.format);
    return inspect(&options, true);
}

static int log_verify(const struct command *command, int argc, char **argv)
{
    struct log_options options = {0};
    cli_parse(command, parse, argc, argv, &options, &options.format);
    return inspect(&options, false);
}

/* ---- the table ---- */

static const struct argp_option dump_options[] = {
    {"records", 'r', NULL, 0, "Each record's key and value, too", 0},
    {0},
};
static const struct command dump_command = {
    .name = "dump",
    .summary = "print batches and records",
    .run = log_dump,
    .words = "PATH",
    .options = dump_options,
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "Print the batches of a segment file, or of every segment below a directory: of a "
             "stopped broker, or a copy.\n\nAs JSON, with --records, the records instead of the "
             "batches; a key or a value that is no UTF-8 is \"key_base64url\" or "
             "\"value_base64url\".\n\nExit code 1 if something could not be read.",
    .examples = "moonmq log dump --records data/topics/orders/0/00000000000000000000.log\n",
    .json = "{\"position\":0,\"base_offset\":0,\"last_offset\":9,\"epoch\":1,\"bytes\":131,"
            "\"records\":10,\"codec\":0,\"producer_id\":-1,\"producer_epoch\":-1,"
            "\"base_sequence\":-1}\n"
            "{\"offset\":0,\"epoch\":1,\"timestamp\":1764500000000,\"key\":\"k\",\"value\":\"v\"}",
    .is_stream = true,
};

static const struct command verify_command = {
    .name = "verify",
    .summary = "check every byte",
    .run = log_verify,
    .words = "PATH",
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "Check every byte of a segment file, or of every segment below a directory: CRCs, "
             "offsets, epochs, digests. Each fault is a line on standard error.\n\nExit code 1 if "
             "a fault was found, or if there is nothing to check.",
    .examples = "moonmq log verify data\n",
    .json = "{\"path\":\"data\",\"files\":2,\"batches\":20,\"records\":200,\"bytes\":26200,"
            "\"faults\":0}",
};

const struct command command_log = {
    .name = "log",
    .summary = "look into log files on disk",
    .subcommands = (const struct command *const[]){&dump_command, &verify_command, NULL},
};
