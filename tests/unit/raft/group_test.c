/* group_test.c: whole groups of cores, run fairly with planted faults. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "unit/raft/raft_net.h"

static void fresh_members_found_a_group(void **state)
{
    (void)state;
    struct net *net = net_new(3, 1);
    for (int i = 0; i < 3; i++)
        net_start(net, i);
    net_run(net, 3 * NET_T);
    assert_string_equal(net->violation, "");
    int leader = net_leader(net);
    assert_true(leader >= 0);
    for (int i = 0; i < 3; i++) {
        assert_true(net_info(net, i).bound);
        assert_int_equal(net_info(net, i).leader, net_id(leader));
        assert_int_equal(raft_known(net->nodes[i].raft)->isr.count, 3);
    }
    net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_members_found_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
