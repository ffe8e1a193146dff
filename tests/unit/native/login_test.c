/* Logging in on a broker with users, and the stored password hashes (native-protocol.md 6.3). */
#include "unit/native/front_end.h"

#include "native/password.h"

/* The hash shipped with the first implementation, of "admin". */
#define ADMIN_HASH                                          \
    "pbkdf2-sha256$10000$6096aa2583c3e3dcf3191840323cb4ca$" \
    "0e6637445858964846bf82f04eba39ec72747cc61b566fb1f48a831fbecc4008"

/* Of "pencil", with the salt and iterations of RFC 7677. */
#define PENCIL_HASH                                                     \
    "scram-sha-256$4096$5b6d99689d12358eeca04b141236fa81$"              \
    "586e5df283e6dceb5c3e791d8b8528ec191e664045ce971792e2e6b5bb13e2a6$" \
    "c1f3cbc1c13a9d35a14c0990eed97629ea225863e566a4314ab99f3f00e5d9d5"

static struct front_end front;
static struct client client;

static int start(void **state)
{
    (void)state;
    static const struct native_user users[] = {
        {.name = "admin", .password_hash = ADMIN_HASH},
        {.name = "plain", .password = "secret"},
    };
    struct native_settings settings;
    native_settings_default(&settings);
    front_end_start_with(&front, &settings, users, 2);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    front_end_stop(&front);
    return 0;
}

static int greet(void **state)
{
    (void)state;
    client_open(&client, &front);
    client_greet(&client);
    return 0;
}

static int leave(void **state)
{
    (void)state;
    client_free(&client);
    return 0;
}

static uint64_t ask_login(const char *user, const char *password)
{
    struct wire_auth auth = {wire_text(user), wire_text(password)};
    return client_ask(&client, WIRE_AUTH, &auth);
}

static void right_password_opens_the_door(void **state)
{
    (void)state;
    client_expect(&client, ask_login("admin", "admin"), WIRE_AUTH_OK);
    client_expect(&client, client_ask(&client, WIRE_LIST_TOPICS, NULL), WIRE_TOPIC_LIST);
    assert_int_equal(native_stats(front.native)->auth_success, 1);
}

static void plain_password_works_as_well(void **state)
{
    (void)state;
    client_expect(&client, ask_login("plain", "secret"), WIRE_AUTH_OK);
}

static void assert_refused(const char *user, const char *password)
{
    client_expect_error(&client, ask_login(user, password), WIRE_CODE_AUTH_FAILED);
    assert_true(client.closed);
    assert_int_equal(client.reason, NATIVE_CLOSE_AUTH_FAILED);
}

static void wrong_password_closes(void **state)
{
    (void)state;
    assert_refused("admin", "Admin");
}

static void wrong_plain_password_closes(void **state)
{
    (void)state;
    assert_refused("plain", "secret2");
}

static void unknown_user_closes(void **state)
{
    (void)state;
    assert_refused("nobody", "admin");
}

static void nothing_is_served_before_logging_in(void **state)
{
    (void)state;
    client_expect_error(&client, client_ask(&client, WIRE_LIST_TOPICS, NULL), WIRE_CODE_BAD_FRAME);
    client_expect(&client, ask_login("plain", "secret"), WIRE_AUTH_OK);
}

static void client_that_leaves_during_the_check_is_forgotten(void **state)
{
    (void)state;
    ask_login("admin", "admin");
    client_free(&client);
    client_open(&client, &front);
    client_greet(&client);
    client_expect(&client, ask_login("admin", "admin"), WIRE_AUTH_OK);
    assert_int_equal(native_stats(front.native)->requests_in_flight, 0);
}

/* ---- hashes ---- */

static bool check(const char *hash, const char *password)
{
    struct native_login login;
    struct native_user user = {.name = "u", .password_hash = hash};
    assert_int_equal(native_login_init(&login, &user, NULL), STATUS_OK);
    bool matches = native_login_check(&login, wire_text(password));
    native_login_deinit(&login);
    return matches;
}

static void pbkdf2_hash_matches_its_password_only(void **state)
{
    (void)state;
    assert_true(check(ADMIN_HASH, "admin"));
    assert_false(check(ADMIN_HASH, "admin "));
    assert_false(check(ADMIN_HASH, ""));
}

/* The example of RFC 7677: its salt and iterations; with these keys its signatures come out. */
static void scram_hash_matches_its_password_only(void **state)
{
    (void)state;
    assert_true(check(PENCIL_HASH, "pencil"));
    assert_false(check(PENCIL_HASH, "pencil2"));
}

static void malformed_hashes_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "admin",
        "pbkdf2-sha256$0$00$00",
        "pbkdf2-sha256$99999999$00$00",
        "pbkdf2-sha256$1000$0$00",
        "pbkdf2-sha256$1000$00",
        "pbkdf2-sha256$1000$00$00$00",
        "pbkdf2-sha256$1x$00$00",
        "scram-sha-256$4096$00$00$00",
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct native_login login;
        struct native_user user = {.name = "u", .password_hash = bad[i]};
        struct error error;
        if (native_login_init(&login, &user, &error) != STATUS_INVALID) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
}

static void user_needs_a_name_and_one_secret(void **state)
{
    (void)state;
    static const struct native_user bad[] = {
        {.name = "", .password = "x"},
        {.name = "u"},
        {.name = "u", .password = "x", .password_hash = ADMIN_HASH},
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct native_login login;
        assert_int_equal(native_login_init(&login, &bad[i], NULL), STATUS_INVALID);
    }
}

/* ---- SCRAM ---- */

static void put_text(struct buffer *out, const char *text)
{
    buffer_put(out, text, strlen(text));
}

/* The exchange of RFC 7677, whose server nonce is none of ours, up to the client's last message. */
static enum status finish_example(const char *client_final, struct buffer *out)
{
    struct scram scram;
    struct native_login login;
    struct scram_secret secret;
    struct native_user user = {.name = "user", .password_hash = PENCIL_HASH};
    assert_int_equal(native_login_init(&login, &user, NULL), STATUS_OK);
    assert_true(native_login_secret(&login, &secret));
    scram_init(&scram);
    assert_int_equal(scram_begin(&scram, wire_text("n,,n=user,r=rOprNGfwEbeRWgbNEkqO"), NULL),
                     STATUS_OK);
    assert_string_equal(scram.user, "user");
    put_text(&scram.nonce, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
    put_text(&scram.first, ",r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                           "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
    enum status status = scram_finish(&scram, &secret, wire_text(client_final), out, NULL);
    scram_deinit(&scram);
    native_login_deinit(&login);
    return status;
}

#define EXAMPLE_NONCE "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
#define EXAMPLE_PROOF "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="

static void scram_is_the_example_of_its_rfc(void **state)
{
    (void)state;
    struct buffer out;
    buffer_init(&out, 0);
    assert_int_equal(finish_example("c=biws," EXAMPLE_NONCE "," EXAMPLE_PROOF, &out), STATUS_OK);
    static const char expected[] = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
    assert_int_equal(out.bytes, sizeof(expected) - 1);
    assert_memory_equal(out.data, expected, out.bytes);
    buffer_deinit(&out);
}

static void scram_proof_of_something_else_is_denied(void **state)
{
    (void)state;
    static const char *const denied[] = {
        "c=eSws," EXAMPLE_NONCE "," EXAMPLE_PROOF,
        "c=biws," EXAMPLE_NONCE "0," EXAMPLE_PROOF,
        "c=biws," EXAMPLE_NONCE ",x=y," EXAMPLE_PROOF,
        "c=biws," EXAMPLE_NONCE ",p=eHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    };
    static const char *const invalid[] = {
        "",
        "c=biws",
        "c=biws," EXAMPLE_NONCE,
        "c=biws," EXAMPLE_NONCE ",p=",
        "c=biws," EXAMPLE_NONCE ",p=AAAA",
        "c=biws," EXAMPLE_NONCE "," EXAMPLE_PROOF ",more",
        EXAMPLE_NONCE ",c=biws," EXAMPLE_PROOF,
        "c=biws," EXAMPLE_NONCE ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVR=",
    };
    struct buffer out;
    buffer_init(&out, 0);
    for (size_t i = 0; i < ARRAY_COUNT(denied); i++)
        assert_int_equal(finish_example(denied[i], &out), STATUS_DENIED);
    for (size_t i = 0; i < ARRAY_COUNT(invalid); i++)
        assert_int_equal(finish_example(invalid[i], &out), STATUS_INVALID);
    assert_int_equal(out.bytes, 0);
    buffer_deinit(&out);
}

static void scram_first_message_is_read_with_care(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "n",
        "n,,",
        "n,,n=,r=x",
        "n,,n=u",
        "n,,n=u,r=",
        "x,,n=u,r=x",
        "n,a=b,n=u,r=x",
        "n,,m=1,n=u,r=x",
        "n,,n=a=b,r=x",
        "n,,n=a=2,r=x",
        "p=tls-exporter,,n=u,r=x",
        "n,,r=x,n=u",
    };
    struct scram scram;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        scram_init(&scram);
        if (scram_begin(&scram, wire_text(bad[i]), NULL) != STATUS_INVALID)
            fail_msg("\"%s\" was taken", bad[i]);
        scram_deinit(&scram);
    }
    scram_init(&scram);
    assert_int_equal(scram_begin(&scram, wire_text("y,,n=a=2Cb=3Dc,r=x,later=1"), NULL), STATUS_OK);
    assert_string_equal(scram.user, "a,b=c");
    scram_deinit(&scram);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, greet, leave)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(right_password_opens_the_door),
        TEST(plain_password_works_as_well),
        TEST(wrong_password_closes),
        TEST(wrong_plain_password_closes),
        TEST(unknown_user_closes),
        TEST(nothing_is_served_before_logging_in),
        TEST(client_that_leaves_during_the_check_is_forgotten),
        cmocka_unit_test(pbkdf2_hash_matches_its_password_only),
        cmocka_unit_test(scram_hash_matches_its_password_only),
        cmocka_unit_test(scram_is_the_example_of_its_rfc),
        cmocka_unit_test(scram_proof_of_something_else_is_denied),
        cmocka_unit_test(scram_first_message_is_read_with_care),
        cmocka_unit_test(malformed_hashes_are_refused),
        cmocka_unit_test(user_needs_a_name_and_one_secret),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
