/* cmd_completion.c: `moonmq completion bash|zsh`: a script for the shell, and `moonmq complete`,
 * which it asks at each tab: so what is offered is what this program takes, whatever its version.
 */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/options.h"

/* The shell breaks words at = and :, too; what stands together on the line is one word to us. Of a
 * candidate it wants what is behind the last of those. */
static const char bash_script[] =
    "# bash completion for moonmq: source it, or install it in bash-completion's directory.\n"
    "_moonmq() {\n"
    "    local rest=${COMP_LINE:0:COMP_POINT} words=() word i current lead line\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then\n"
    "            rest=${rest#\"${rest%%[![:space:]]*}\"}\n"
    "            ((i < COMP_CWORD)) || word=$rest\n"
    "            words+=(\"$word\")\n"
    "        else\n"
    "            ((i < COMP_CWORD)) || word=$rest\n"
    "            words[${#words[@]}-1]+=$word\n"
    "        fi\n"
    "        rest=${rest#\"$word\"}\n"
    "    done\n"
    "    current=${words[${#words[@]}-1]}\n"
    "    lead=\n"
    "    [[ $current == *[=:]* ]] && lead=${current%\"${current##*[=:]}\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS=$'\\t' read -r line _; do\n"
    "        case $line in\n"
    "        :files) compopt -o default ;;\n"
    "        :directories) compopt -o dirnames ;;\n"
    "        *) COMPREPLY+=(\"${line#\"$lead\"}\") ;;\n"
    "        esac\n"
    "    done < <(\"$1\" complete -- \"${words[@]:1}\" 2>/dev/null)\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
    "    return 0\n"
    "}\n"
    "complete -F _moonmq moonmq\n";

static const char zsh_script[] =
    "#compdef moonmq\n"
    "# zsh completion for moonmq: install it as _moonmq in a directory of $fpath, or source it.\n"
    "_moonmq() {\n"
    "    local line word about\n"
    "    local -a plain open shown open_shown\n"
    "    for line in \"${(@f)$(\"${words[1]}\" complete -- \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)}\"; "
    "do\n"
    "        word=${line%%$'\\t'*}\n"
    "        about=${line#*$'\\t'}\n"
    "        case $word in\n"
    "        '') ;;\n"
    "        :files) _files ;;\n"
    "        :directories) _files -/ ;;\n"
    "        *=) open+=(\"$word\"); open_shown+=(\"$word  $about\") ;;\n"
    "        *) plain+=(\"$word\"); shown+=(\"$word${about:+  -- $about}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (($#plain)) && compadd -l -d shown -- \"${plain[@]}\"\n"
    "    (($#open)) && compadd -l -S '' -d open_shown -- \"${open[@]}\"\n"
    "    return 0\n"
    "}\n"
    "if [[ ${funcstack[1]} == _moonmq ]]; then _moonmq \"$@\"; else compdef _moonmq moonmq; fi\n";

/* ---- completion ---- */

static error_t parse(int key, char *argument, struct argp_state *state)
{
    const char **shell = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (*shell != NULL) return cli_parse_nothing(key, argument, state);
        *shell = argument;
        return 0;
    case ARGP_KEY_END:
        if (*shell == NULL) cli_usage_error("which shell? bash or zsh");
        if (strcmp(*shell, "bash") != 0 && strcmp(*shell, "zsh") != 0) {
            cli_usage_error("there is a script for bash and for zsh, not for \"%s\"", *shell);
        }
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int completion(const struct command *command, int argc, char **argv)
{
    const char *shell = NULL;
    cli_parse(command, parse, argc, argv, &shell, NULL);
    fputs(strcmp(shell, "bash") == 0 ? bash_script : zsh_script, stdout);
    return CLI_OK;
}

const struct command command_completion = {
    .name = "completion",
    .summary = "print a script that lets a shell complete commands",
    .run = completion,
    .words = "bash|zsh",
    .about = "Print a script that lets the shell complete commands, options and their values at a "
             "tab; topics and groups, too, where --bootstrap or $MOONMQ_BOOTSTRAP leads to a "
             "broker.\n\n`cmake --install` puts both where the shells look for them.",
    .examples = "source <(moonmq completion bash)          # in ~/.bashrc\n"
                "source <(moonmq completion zsh)           # in ~/.zshrc, behind compinit\n",
};

/* ---- complete ---- */

/* What is asked for is arguments of another command: none of it is for this one. */
static int complete(const struct command *command, int argc, char **argv)
{
    (void)command;
    bool is_marked = argc > 1 && strcmp(argv[1], "--") == 0;
    completion_print(argc - 1 - is_marked, argv + 1 + is_marked, stdout);
    return CLI_OK;
}

const struct command command_complete = {
    .name = "complete",
    .summary = "print what a shell may offer for the word being typed",
    .run = complete,
    .words = "-- WORD…",
    .is_hidden = true,
};
