/* SPDX-License-Identifier: Apache-2.0 */
/* Shell completion, printed from the tables. */
#include <string.h>

#include <saccade/models.h>

#include "verbs.h"

static bool takes_file(const struct option *option)
{
    static const char *const names[] = {"FILE", "MODEL", "DIR", "GT", "T", "[NAME=]X.npy"};
    for (size_t i = 0; option->value && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(option->value, names[i]) == 0)
            return true;
    return false;
}

static bool takes_model(const struct option *option)
{
    return option->value && strcmp(option->value, "MODEL") == 0;
}

static void print_model(void *user, const struct sac_shipped_model *model)
{
    (void)user;
    printf(" %s", model->name);
}

/* Values of a model option that are not files. */
static void print_models(void)
{
    fputs("auto none", stdout);
    sac_models_list(print_model, NULL);
}

static void print_words(const char *const *words)
{
    for (const char *const *word = words; *word; word++)
        printf("%s%s", word == words ? "" : " ", *word);
}

static void bash_values(void)
{
    puts("    case $prev in");
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &options[i];
        if (option->type == OPTION_FLAG || option_find(option->name, VERB_ALL) != option)
            continue;
        printf("    --%s", option->name);
        if (option->letter)
            printf("|-%c", option->letter);
        if (option->choices || option->words) {
            printf(") COMPREPLY=($(compgen -W '");
            print_words(option->choices ? option->choices : option->words);
            puts("' -- \"$cur\")); return;;");
        } else if (takes_model(option)) {
            fputs(") COMPREPLY=($(compgen -W '", stdout);
            print_models();
            puts("' -- \"$cur\") $(compgen -f -- \"$cur\")); return;;");
        } else if (takes_file(option)) {
            puts(") COMPREPLY=($(compgen -f -- \"$cur\")); return;;");
        } else {
            puts(") return;;");
        }
    }
    puts("    esac");
}

static void bash_options(const struct verb *verb, const char *pattern)
{
    printf("    %s) words='", pattern);
    for (size_t i = 0; i < option_count; i++) {
        if (!(options[i].verbs & verb->bit))
            continue;
        printf("--%s ", options[i].name);
        if (options[i].type == OPTION_FLAG && options[i].key)
            printf("--no-%s ", options[i].name);
    }
    puts("';;");
}

static void print_bash(void)
{
    puts("# bash completion for saccade\n"
         "_saccade() {\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
         "    local verb=${COMP_WORDS[1]}\n"
         "    COMPREPLY=()");
    bash_values();
    printf("    if [ \"$COMP_CWORD\" = 1 ] && [[ $cur != -* ]]; then\n"
           "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < verb_count; i++)
        printf("%s ", verbs[i].name);
    puts("' -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
         "        return\n"
         "    fi\n"
         "    case $verb in");
    for (size_t i = 0; i < verb_count; i++)
        if (verbs[i].bit != VERB_TRACK)
            bash_options(&verbs[i], verbs[i].name);
    bash_options(verb_find("track"), "*");
    puts("    esac\n"
         "    if [[ $cur == -* ]]; then\n"
         "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "    else\n"
         "        COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "    fi\n"
         "}\n"
         "complete -o filenames -F _saccade saccade");
}

/* A text inside '...[...]' of _arguments: no quote, bracket or colon may stand bare. */
static void zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void zsh_option(const struct option *option)
{
    printf("        %s'%s--%s%s[", option->type == OPTION_LIST ? "'*'" : "", "", option->name,
           option->type == OPTION_FLAG ? "" : "=");
    zsh_text(option->help);
    putchar(']');
    if (option->type != OPTION_FLAG) {
        putchar(':');
        zsh_text(option->value);
        putchar(':');
    }
    if (option->choices || option->words) {
        putchar('(');
        print_words(option->choices ? option->choices : option->words);
        putchar(')');
    } else if (takes_model(option)) {
        fputs("{compadd ", stdout);
        print_models();
        fputs("; _files}", stdout);
    } else if (takes_file(option)) {
        fputs("_files", stdout);
    }
    puts("' \\");
}

static void zsh_verb(const struct verb *verb)
{
    puts("        _arguments \\");
    for (size_t i = 0; i < option_count; i++)
        if (options[i].verbs & verb->bit)
            zsh_option(&options[i]);
    puts("        '*:file:_files'");
}

static void print_zsh(void)
{
    puts("#compdef saccade\n"
         "# zsh completion for saccade\n"
         "_saccade() {\n"
         "    local -a verbs=(");
    for (size_t i = 0; i < verb_count; i++) {
        printf("        '%s:", verbs[i].name);
        zsh_text(verbs[i].summary);
        puts("'");
    }
    puts("    )\n"
         "    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
         "        _describe verb verbs\n"
         "        _files\n"
         "        return\n"
         "    fi\n"
         "    case $words[2] in");
    for (size_t i = 0; i < verb_count; i++) {
        if (verbs[i].bit == VERB_TRACK)
            continue;
        printf("    %s)\n", verbs[i].name);
        zsh_verb(&verbs[i]);
        puts("        ;;");
    }
    puts("    *)");
    zsh_verb(verb_find("track"));
    puts("        ;;\n"
         "    esac\n"
         "}\n"
         "if [[ $funcstack[1] == _saccade ]]; then\n"
         "    _saccade \"$@\"\n"
         "else\n"
         "    compdef _saccade saccade\n"
         "fi");
}

int verb_completion(struct settings *s, struct fault *fault)
{
    const char *shell = s->args.items[0];
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else
        return fault_usage(fault, "no completion for '%s'; there is one for bash and zsh", shell);
    return STATUS_OK;
}
