/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page, printed from the tables. */
#include <string.h>

#include <saccade/context.h>

#include "verbs.h"

/* Text for troff: a backslash is \e, a hyphen that users type is \-, and a line must not
 * begin with a control character. */
static void troff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_option(const struct option *option)
{
    char spelling[64], description[512];
    option_spelling(option, spelling, sizeof spelling);
    option_description(option, description, sizeof description);
    fputs(".TP\n.B ", stdout);
    if (option->letter)
        printf("\\-%c, ", option->letter);
    troff(spelling);
    putchar('\n');
    troff(description);
    puts(".");
    if (option->key) {
        fputs("Key: ", stdout);
        troff(option->key);
        puts(".");
    }
}

static void print_examples(const char *examples)
{
    puts(".PP\n.nf");
    for (const char *line = examples; *line; line += strcspn(line, "\n") + 1) {
        char text[256];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        troff(text);
        putchar('\n');
    }
    puts(".fi");
}

static void print_verb(const struct verb *verb)
{
    fputs(".SS saccade ", stdout);
    troff(verb->name);
    if (*verb->arguments) {
        putchar(' ');
        troff(verb->arguments);
    }
    fputs("\n", stdout);
    troff(verb->about);
    putchar('\n');
    for (size_t i = 0; i < option_count; i++)
        if ((options[i].verbs & verb->bit) && options[i].verbs != VERB_ALL)
            print_option(&options[i]);
    print_examples(verb->examples);
}

int verb_man(struct settings *s, struct fault *fault)
{
    (void)s;
    (void)fault;
    printf(".TH SACCADE 1 \"\" \"saccade %s\" \"User Commands\"\n", sac_version());
    puts(".SH NAME\nsaccade \\- video in, tracks out\n"
         ".SH SYNOPSIS\n.B saccade\nINPUT [\\-o OUT.mp4] [options]\n.br\n.B saccade\nVERB ...\n"
         ".SH DESCRIPTION\n"
         "Finds objects in a video, follows each under its own number and writes an annotated "
         "video, JSON lines or MOTChallenge files. Without a verb,\n.B track\nruns.\n"
         ".PP\nAn option's value is the first one found in: the command line, SACCADE_LOG (log "
         "level), the file given with\n.BR \\-\\-config ,\nthe default. Flags are turned off as\n"
         ".BR \\-\\-no\\-NAME .\n.SH VERBS");
    for (size_t i = 0; i < verb_count; i++)
        print_verb(&verbs[i]);
    puts(".SH EXIT STATUS\n"
         ".TP\n0\nSuccess.\n.TP\n1\nFailure; one sentence on standard error says why.\n"
         ".TP\n2\nThe command line or the configuration is wrong.\n"
         ".TP\n130\nInterrupted; the output files are complete up to that frame.\n"
         ".SH ENVIRONMENT\n"
         ".TP\nSACCADE_LOG\nThe log level: silent, error, warn, info, debug or trace.\n"
         ".TP\nDEBUG\n1 means log level debug, unless SACCADE_LOG is set.\n"
         ".TP\nSACCADE_MODELS\nA folder that is searched first for models given by name.\n"
         ".TP\nSACCADE_WITHOUT\nOptimisations of networks that are left out, separated by commas, "
         "to find the one that makes a result wrong.\n"
         ".TP\nSACCADE_PLUGIN_PATH\nFolders of the plug\\-ins, separated by colons.");
    return STATUS_OK;
}
