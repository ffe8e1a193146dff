/* replication-identity.json: round trip, and every damage is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "replication/identity.h"

static struct identity identity_of_a_member(void)
{
    struct identity identity = {.replica_id = 3, .was_cut = true};
    memset(identity.group.bytes, 0xab, sizeof(identity.group.bytes));
    memset(identity.incarnation.bytes, 0xcd, sizeof(identity.incarnation.bytes));
    return identity;
}

static void assert_round_trip(const struct identity *identity)
{
    struct buffer file;
    struct identity read;
    struct error error;
    buffer_init(&file, 0);
    identity_encode(identity, &file);
    assert_int_equal(identity_decode(buffer_slice(&file), &read, &error), STATUS_OK);
    assert_int_equal(read.replica_id, identity->replica_id);
    assert_int_equal(read.solo_epoch, identity->solo_epoch);
    assert_int_equal(read.was_cut, identity->was_cut);
    assert_true(uuid_equal(&read.group, &identity->group));
    assert_true(uuid_equal(&read.incarnation, &identity->incarnation));
    buffer_deinit(&file);
}

static void what_is_written_is_read(void **state)
{
    struct identity identity = identity_of_a_member();
    (void)state;
    assert_round_trip(&identity);
    memset(&identity.group, 0, sizeof(identity.group)); /* not bound yet */
    identity.was_cut = false;
    assert_round_trip(&identity);
    identity.solo_epoch = 12;
    assert_round_trip(&identity);
}

/* Group, id and incarnation are bound together: no byte can change and pass (F34, F39). */
static void every_flip_and_truncation_is_noticed(void **state)
{
    struct identity identity = identity_of_a_member(), read;
    struct buffer file;
    struct error error;
    (void)state;
    buffer_init(&file, 0);
    identity_encode(&identity, &file);
    /* The last byte is a line end, which says nothing. */
    for (size_t i = 0; i + 1 < file.bytes; i++) {
        uint8_t *copy = malloc(i + 1);
        memcpy(copy, file.data, i);
        assert_int_equal(identity_decode((struct slice){copy, i}, &read, &error), STATUS_CORRUPT);
        free(copy);
    }
    for (size_t i = 0; i < file.bytes * 8; i++) {
        file.data[i / 8] ^= (uint8_t)(1 << i % 8);
        enum status status = identity_decode(buffer_slice(&file), &read, &error);
        bool same = status == STATUS_OK && read.replica_id == identity.replica_id &&
                    uuid_equal(&read.group, &identity.group) &&
                    uuid_equal(&read.incarnation, &identity.incarnation);
        assert_true(status == STATUS_CORRUPT || same); /* the checksum's own letter case */
        file.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    buffer_deinit(&file);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_written_is_read),
    cmocka_unit_test(every_flip_and_truncation_is_noticed),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
