/* cmd_hash.c: `moonmq hash`: a password as the configuration's PasswordHash
 * (native-protocol.md 6.3). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "base/hex.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"

#define ITERATIONS_DEFAULT 600000
#define SALT_BYTES         16
#define KEY_BYTES          32
#define PASSWORD_BYTES_MAX 1024

struct hash_arguments {
    int iterations;
    enum cli_format format;
};

static error_t parse_argument(int key, char *argument, struct argp_state *state)
{
    struct hash_arguments *arguments = state->input;
    switch (key) {
    case 'i':
        arguments->iterations = (int)cli_parse_number("--iterations", argument, 1, 10000000);
        return 0;
    case ARGP_KEY_ARG:
        cli_usage_error("the password is read from the terminal or standard input: as an "
                        "argument others could see it");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* One line, not shown on a terminal. False: none, or too long. */
static bool read_password(char password[PASSWORD_BYTES_MAX + 2])
{
    struct termios before, silent;
    bool is_terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    if (is_terminal) {
        silent = before;
        silent.c_lflag &= ~(tcflag_t)ECHO;
        fputs("password: ", stderr);
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    }
    bool read = fgets(password, PASSWORD_BYTES_MAX + 2, stdin) != NULL;
    if (is_terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        fputc('\n', stderr);
    }
    if (!read) return false;
    size_t bytes = strcspn(password, "\n");
    password[bytes] = '\0';
    return bytes >= 1 && bytes <= PASSWORD_BYTES_MAX;
}

static int print_hash(const char *password, int iterations, enum cli_format format)
{
    uint8_t salt[SALT_BYTES], key[KEY_BYTES];
    char salt_text[SALT_BYTES * 2 + 1], key_text[KEY_BYTES * 2 + 1];
    struct random random;
    random_seed_from_system(&random);
    random_bytes(&random, salt, sizeof(salt));
    if (PKCS5_PBKDF2_HMAC(password, (int)strlen(password), salt, sizeof(salt), iterations,
                          EVP_sha256(), sizeof(key), key) != 1) {
        return cli_fail_text("the hash cannot be computed");
    }
    char text[sizeof(salt_text) + sizeof(key_text) + 32];
    snprintf(text, sizeof(text), "pbkdf2-sha256$%d$%s$%s", iterations,
             hex_encode(salt, sizeof(salt), salt_text), hex_encode(key, sizeof(key), key_text));
    if (format == CLI_FORMAT_JSON) {
        output_json(json_pack("{s:s}", "password_hash", text));
    } else {
        puts(text);
    }
    return CLI_OK;
}

static int hash(const struct command *command, int argc, char **argv)
{
    struct hash_arguments arguments = {.iterations = ITERATIONS_DEFAULT};
    cli_parse(command, parse_argument, argc, argv, &arguments, &arguments.format);
    char password[PASSWORD_BYTES_MAX + 2];
    if (!read_password(password)) {
        return cli_fail_text("a password of 1 to %d bytes is needed", PASSWORD_BYTES_MAX);
    }
    int exit_code = print_hash(password, arguments.iterations, arguments.format);
    explicit_bzero(password, sizeof(password));
    return exit_code;
}

static const struct argp_option hash_options[] = {
    {"iterations", 'i', "N", 0, "How costly a login is (default 600000)", 0},
    {0},
};
const struct command command_hash = {
    .name = "hash",
    .summary = "hash a password for the configuration",
    .run = hash,
    .options = hash_options,
    .option_set = COMMAND_OPTIONS_FORMAT,
    .about = "Read a password from the terminal or from standard input, and print its hash for "
             "Auth.PasswordHash in appsettings.json.",
    .examples = "moonmq hash\n"
                "moonmq hash <password.txt\n",
    .json = "{\"password_hash\":\"pbkdf2-sha256$600000$…$…\"}",
};
