/* identity.c: see identity.h. */
#include "replication/identity.h"

#include <string.h>

#include "base/assert.h"
#include "base/json.h"

void identity_encode(const struct identity *identity, struct buffer *out)
{
    char group[UUID_TEXT_BYTES], incarnation[UUID_TEXT_BYTES];
    json_t *object = json_pack("{s:i,s:o,s:s,s:i,s:b}", "replica_id", identity->replica_id, "group",
                               uuid_is_none(&identity->group)
                                   ? json_null()
                                   : json_string(uuid_format(&identity->group, group)),
                               "incarnation", uuid_format(&identity->incarnation, incarnation),
                               "solo_epoch", identity->solo_epoch, "was_cut", identity->was_cut);
    ASSERT(object != NULL);
    json_seal(out, object);
    json_decref(object);
}

enum status identity_decode(struct slice file, struct identity *identity, struct error *error)
{
    json_t *object = NULL;
    int64_t replica_id, solo_epoch;
    memset(identity, 0, sizeof(*identity));
    enum status status = json_open_sealed(file.data, file.bytes, &object, error);
    if (status == STATUS_OK) {
        status = json_get_int(object, "replica_id", 0, INT32_MAX, &replica_id, error);
    }
    if (status == STATUS_OK) {
        status = json_get_uuid(object, "group", true, &identity->group, error);
    }
    if (status == STATUS_OK) {
        status = json_get_uuid(object, "incarnation", false, &identity->incarnation, error);
    }
    if (status == STATUS_OK) {
        status = json_get_int_or(object, "solo_epoch", 0, INT32_MAX, 0, &solo_epoch, error);
    }
    if (status == STATUS_OK) {
        status = json_get_bool_or(object, "was_cut", false, &identity->was_cut, error);
    }
    if (status == STATUS_OK) {
        identity->replica_id = (int32_t)replica_id;
        identity->solo_epoch = (int32_t)solo_epoch;
    }
    json_decref(object);
    if (status != STATUS_OK) error_prefix(error, IDENTITY_FILE);
    return status == STATUS_OK ? STATUS_OK : STATUS_CORRUPT;
}
