/* login.c: HELLO, IDENTIFY_CLIENT, AUTH, GOODBYE (native-protocol.md 1.5). */
#include <stdlib.h>
#include <string.h>

#include "native/native_state.h"
#include "native/operations.h"

/* Logins that wait for a worker; each holds it for as long as the hash asks. */
#define HASHES_MAX 64

/* ---- HELLO ---- */

struct hello_wait {
    struct leader_wait *wait;
};

static void greet(struct native_request *request)
{
    struct wire_welcome welcome = {.version = WIRE_PROTOCOL_VERSION};
    native_connection_set_state(request->connection, NATIVE_GREETED);
    native_answer(request, WIRE_WELCOME, &welcome);
}

static void greet_if_serving(struct native_request *request)
{
    enum status status = broker_check_serving(native_broker(request));
    if (!native_request_wanted(request)) {
        native_finish(request);
    } else if (status == STATUS_OK) {
        greet(request);
    } else {
        native_fail_status(request, status, NULL);
    }
}

static void leader_known(void *context, enum status status)
{
    struct native_request *request = context;
    struct hello_wait *hello = request->work;
    (void)status;
    hello->wait = NULL;
    greet_if_serving(request);
}

static bool abandon_hello(struct native_request *request)
{
    struct hello_wait *hello = request->work;
    if (hello->wait != NULL) broker_wait_leader_cancel(native_broker(request), hello->wait);
    return true;
}

static void free_hello(struct native_request *request)
{
    free(request->work);
}

/* A client that comes during an election waits for its end, instead of being sent away to ask
 * everybody in vain (decisions 16). */
static void wait_for_leader(struct native_request *request)
{
    struct hello_wait *hello = calloc(1, sizeof(*hello));
    if (hello == NULL) {
        native_fail_status(request, STATUS_NO_LEADER, NULL);
        return;
    }
    request->work = hello;
    request->free_work = free_hello;
    request->abandon = abandon_hello;
    struct leader_wait *wait = broker_wait_leader(
        native_broker(request), request->native->settings.leader_wait_us, leader_known, request);
    /* NULL: it was called, and the request may be gone. */
    if (wait != NULL) hello->wait = wait;
}

void native_hello(struct native_request *request, const union wire_message *message)
{
    const struct wire_hello *hello = &message->hello;
    if (hello->version != WIRE_PROTOCOL_VERSION) {
        native_fail_and_close(request, WIRE_CODE_BAD_PROTOCOL, NATIVE_CLOSE_BAD_PROTOCOL,
                              "protocol version %u: this broker speaks %u", hello->version,
                              WIRE_PROTOCOL_VERSION);
        return;
    }
    if (hello->has_purpose && hello->purpose == WIRE_PURPOSE_OPERATOR) {
        request->connection->is_operator = true;
        greet(request);
        return;
    }
    wait_for_leader(request);
}

/* ---- IDENTIFY_CLIENT, GOODBYE ---- */

void native_identify_client(struct native_request *request, const union wire_message *message)
{
    (void)message;
    struct wire_identify ack = {wire_text("MoonMQ"), wire_text("v" MOONMQ_VERSION)};
    native_answer(request, WIRE_IDENTIFY_ACK, &ack);
}

void native_goodbye(struct native_request *request, const union wire_message *message)
{
    (void)message;
    native_finish_and_close(request, NATIVE_CLOSE_CLIENT_GOODBYE);
}

/* ---- AUTH ---- */

void native_log_in(struct native_request *request, const struct wire_auth_ok *answer)
{
    request->native->stats.auth_success++;
    native_connection_set_state(request->connection, NATIVE_AUTHENTICATED);
    native_answer(request, WIRE_AUTH_OK, answer);
}

void native_refuse_login(struct native_request *request, const char *why)
{
    request->native->stats.auth_failures++;
    native_fail_and_close(request, WIRE_CODE_AUTH_FAILED, NATIVE_CLOSE_AUTH_FAILED, "%s", why);
}

const struct native_login *native_find_login(const struct native *native, struct slice user)
{
    for (size_t i = 0; i < native->user_count; i++) {
        const struct native_login *login = &native->users[i];
        if (strlen(login->user) == user.bytes && memcmp(login->user, user.data, user.bytes) == 0) {
            return login;
        }
    }
    return NULL;
}

/* A check on a worker; it borrows nothing from the request but its place. */
struct hash_job {
    struct job job;
    struct native_request *request;
    const struct native_login *login;
    bool known; /* false: a decoy, so that unknown users take as long */
    bool matches;
    size_t password_bytes;
    uint8_t password[];
};

static void run_hash(struct job *job)
{
    struct hash_job *hash = (struct hash_job *)job;
    hash->matches =
        native_login_check(hash->login, (struct slice){hash->password, hash->password_bytes});
}

static void finish_hash(struct job *job)
{
    struct hash_job *hash = (struct hash_job *)job;
    struct native_request *request = hash->request;
    request->native->hashes_running--;
    bool matches = hash->matches && hash->known;
    explicit_bzero(hash->password, hash->password_bytes);
    free(hash);
    if (!native_request_wanted(request)) {
        native_finish(request);
    } else if (matches) {
        native_log_in(request, NULL);
    } else {
        native_refuse_login(request, "wrong user or password");
    }
}

static void check_on_worker(struct native_request *request, const struct native_login *login,
                            bool known, struct slice password)
{
    struct native *native = request->native;
    struct hash_job *hash = NULL;
    if (native->hashes_running < HASHES_MAX) hash = calloc(1, sizeof(*hash) + password.bytes);
    if (hash == NULL) {
        native_refuse_login(request, "too many logins at once; try again");
        return;
    }
    *hash = (struct hash_job){
        .job = {.run = run_hash, .done = finish_hash},
        .request = request,
        .login = login,
        .known = known,
        .password_bytes = password.bytes,
    };
    memcpy(hash->password, password.data, password.bytes);
    native->hashes_running++;
    executor_submit(broker_executor(native->broker), EXECUTOR_LANE_BACKGROUND, &hash->job);
}

void native_auth(struct native_request *request, const union wire_message *message)
{
    const struct wire_auth *auth = &message->auth;
    struct native *native = request->native;
    if (native_is_open(native)) {
        native_log_in(request, NULL);
        return;
    }
    const struct native_login *login = native_find_login(native, auth->user);
    bool known = login != NULL;
    if (!known) login = &native->users[0];
    if (native_login_is_slow(login)) {
        check_on_worker(request, login, known, auth->password);
    } else if (native_login_check(login, auth->password) && known) {
        native_log_in(request, NULL);
    } else {
        native_refuse_login(request, "wrong user or password");
    }
}
