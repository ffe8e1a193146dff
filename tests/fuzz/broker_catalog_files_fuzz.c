/* topic.json and replication-manifest.json, from bytes: as they are, and sealed around them. */
#include "base/json.h"
#include "broker/catalog_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void decode(struct slice text)
{
    struct topic_record topic;
    struct manifest_record manifest;
    struct error error;
    if (topic_file_decode(text, &topic, &error) == STATUS_OK) topic_record_deinit(&topic);
    if (manifest_file_decode(text, &manifest, &error) == STATUS_OK) {
        manifest_record_deinit(&manifest);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *object;
    struct error error;
    decode((struct slice){data, bytes});
    if (json_parse(data, bytes, &object, &error) != STATUS_OK) return 0;
    if (json_is_object(object)) {
        struct buffer sealed;
        buffer_init(&sealed, 0);
        json_seal(&sealed, object);
        decode(buffer_slice(&sealed));
        buffer_deinit(&sealed);
    }
    json_decref(object);
    return 0;
}
