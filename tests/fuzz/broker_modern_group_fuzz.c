/* Records of consumer groups (types 3, 5 to 8): first byte the key's length, then key and value. */
#include "broker/modern_group_records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct modern_record record;
    if (bytes == 0) return 0;
    size_t key_bytes = data[0] < bytes ? data[0] : bytes - 1;
    struct slice key = {data + 1, key_bytes};
    struct slice value = {data + 1 + key_bytes, bytes - 1 - key_bytes};
    if (modern_record_decode(key, value, &record) == STATUS_OK) modern_record_deinit(&record);
    return 0;
}
