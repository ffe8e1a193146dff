/* synced_positions_test.c: the slots of synced-positions: round trip, tears, damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "lib/memory_disk.h"
#include "log/synced_positions.h"

#define PATH "/d/synced-positions"

struct seen {
    uint32_t used, free;
    struct position_slot slots[300];
    bool present[300];
};

static void see(void *context, uint32_t slot, const struct position_slot *content)
{
    struct seen *seen = context;
    if (content->generation == 0) {
        seen->free++;
        return;
    }
    assert_in_range(slot, 0, 299);
    seen->used++;
    seen->slots[slot] = *content;
    seen->present[slot] = true;
}

static void quiet(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static struct position_update update(uint32_t slot, uint64_t generation, int64_t position)
{
    return (struct position_update){.slot = slot,
                                    .content = {.uid = {{(uint8_t)slot, 1}},
                                                .partition = (int32_t)slot,
                                                .generation = generation,
                                                .synced = {.floor = 1,
                                                           .segment_base = 2,
                                                           .position = position,
                                                           .end_offset = position + 2}}};
}

static void open_disk(struct memory_disk *disk)
{
    log_set_sink(quiet, NULL);
    memory_disk_init(disk);
    assert_int_equal(file_make_directory(&disk->fs, "/d", NULL), STATUS_OK);
    memory_disk_settle(disk);
}

static bool reopen(struct memory_disk *disk, struct synced_positions *positions, struct seen *seen)
{
    uint32_t count;
    bool complete;
    memset(seen, 0, sizeof(*seen));
    assert_int_equal(
        synced_positions_open(positions, &disk->fs, PATH, see, seen, &count, &complete, NULL),
        STATUS_OK);
    return complete;
}

static void slots_come_back_as_written_and_the_newer_copy_wins(void **state)
{
    struct memory_disk disk;
    struct synced_positions positions;
    struct seen seen;
    (void)state;
    open_disk(&disk);
    assert_false(reopen(&disk, &positions, &seen));
    for (uint64_t generation = 1; generation <= 5; generation++) {
        for (uint32_t slot = 0; slot < 100; slot += 3) {
            struct position_update one = update(slot, generation, (int64_t)generation * 10 + slot);
            assert_int_equal(synced_positions_write(&positions, &one, 1, NULL), STATUS_OK);
        }
    }
    assert_int_equal(synced_positions_publish(&positions, NULL), STATUS_OK);
    synced_positions_close(&positions);
    memory_disk_power_cut(&disk);
    assert_true(reopen(&disk, &positions, &seen));
    assert_int_equal(seen.used, 34);
    assert_int_equal(seen.slots[99].synced.position, 50 + 99);
    assert_int_equal(seen.slots[99].generation, 5);
    struct position_update gone = {.slot = 99};
    assert_int_equal(synced_positions_write(&positions, &gone, 1, NULL), STATUS_OK);
    synced_positions_close(&positions);
    assert_true(reopen(&disk, &positions, &seen));
    assert_int_equal(seen.used, 33);
    assert_false(seen.present[99]);
    synced_positions_close(&positions);
    memory_disk_deinit(&disk);
}

static void a_torn_write_never_takes_both_copies(void **state)
{
    struct memory_disk disk;
    struct synced_positions positions;
    struct seen seen;
    (void)state;
    open_disk(&disk);
    reopen(&disk, &positions, &seen);
    struct position_update first = update(7, 1, 100), second = update(7, 2, 200);
    assert_int_equal(synced_positions_write(&positions, &first, 1, NULL), STATUS_OK);
    assert_int_equal(synced_positions_write(&positions, &second, 1, NULL), STATUS_OK);
    assert_int_equal(synced_positions_publish(&positions, NULL), STATUS_OK);
    synced_positions_close(&positions);
    struct memory_node *node = memory_disk_file(&disk, PATH);
    size_t at = (size_t)position_slot_at(7, 2);
    for (size_t i = 0; i < POSITION_SLOT_BYTES; i++) {
        for (int bit = 0; bit < 8; bit++) {
            node->data[at + i] ^= (uint8_t)(1 << bit);
            assert_true(reopen(&disk, &positions, &seen));
            assert_int_equal(seen.slots[7].synced.position, 100);
            synced_positions_close(&positions);
            node->data[at + i] ^= (uint8_t)(1 << bit);
        }
    }
    /* Both gone: the record of somebody is lost, and that is known. */
    node->data[at] ^= 1;
    node->data[(size_t)position_slot_at(7, 1)] ^= 1;
    assert_false(reopen(&disk, &positions, &seen));
    assert_int_equal(seen.used, 0);
    synced_positions_close(&positions);
    memory_disk_deinit(&disk);
}

static void a_lowered_position_cannot_come_back_up(void **state)
{
    struct memory_disk disk;
    struct synced_positions positions;
    struct seen seen;
    (void)state;
    open_disk(&disk);
    reopen(&disk, &positions, &seen);
    struct position_update one = update(3, 1, 900);
    assert_int_equal(synced_positions_write(&positions, &one, 1, NULL), STATUS_OK);
    one = update(3, 2, 100);
    assert_int_equal(synced_positions_lower(&positions, &one, 1, NULL), STATUS_OK);
    assert_int_equal(one.content.generation, 3);
    assert_int_equal(synced_positions_publish(&positions, NULL), STATUS_OK);
    synced_positions_close(&positions);
    for (uint64_t copy = 2; copy < 4; copy++) {
        memory_disk_file(&disk, PATH)->data[(size_t)position_slot_at(3, copy) + 5] ^= 1;
        assert_true(reopen(&disk, &positions, &seen));
        assert_int_equal(seen.slots[3].synced.position, 100);
        synced_positions_close(&positions);
        memory_disk_file(&disk, PATH)->data[(size_t)position_slot_at(3, copy) + 5] ^= 1;
    }
    memory_disk_deinit(&disk);
}

static void a_new_file_takes_its_name_only_when_it_is_published(void **state)
{
    struct memory_disk disk;
    struct synced_positions positions;
    struct seen seen;
    (void)state;
    open_disk(&disk);
    reopen(&disk, &positions, &seen);
    struct position_update one = update(0, 1, 5);
    assert_int_equal(synced_positions_write(&positions, &one, 1, NULL), STATUS_OK);
    synced_positions_close(&positions);
    assert_false(reopen(&disk, &positions, &seen));
    assert_int_equal(seen.used, 0);
    synced_positions_close(&positions);
    memory_disk_deinit(&disk);
}

static void a_slot_encodes_as_documented(void **state)
{
    uint8_t bytes[POSITION_SLOT_BYTES];
    struct position_slot slot = update(9, 4, 0x1122).content, back;
    (void)state;
    position_slot_encode(bytes, &slot);
    assert_int_equal(bytes[0], 9);
    assert_int_equal(load_u32(bytes + 16), 9);
    assert_int_equal(load_u64(bytes + 36), 0x1122);
    assert_int_equal(load_u64(bytes + 52), 4);
    assert_true(position_slot_decode(bytes, &back));
    assert_memory_equal(&back.synced, &slot.synced, sizeof(back.synced));
    assert_int_equal(position_slot_at(0, 2), 4096);
    assert_int_equal(position_slot_at(0, 1), 8192);
    assert_int_equal(position_slot_at(65, 2), 4096 * 3 + 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_come_back_as_written_and_the_newer_copy_wins),
        cmocka_unit_test(a_torn_write_never_takes_both_copies),
        cmocka_unit_test(a_lowered_position_cannot_come_back_up),
        cmocka_unit_test(a_new_file_takes_its_name_only_when_it_is_published),
        cmocka_unit_test(a_slot_encodes_as_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
