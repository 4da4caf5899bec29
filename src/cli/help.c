/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "../base/nearest.h"
#include "config.h"
#include "verbs.h"
#include "wrap.h"

enum { COLUMNS = 90, OPTION_COLUMN = 28 };

static void print_option(const struct option *option, FILE *out)
{
    char spelling[64], description[512], first[96], rest[OPTION_COLUMN + 1];
    option_spelling(option, spelling, sizeof spelling);
    option_description(option, description, sizeof description);
    char letter[5] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(first, sizeof first, "  %s%s", letter, spelling);
    memset(rest, ' ', OPTION_COLUMN);
    rest[OPTION_COLUMN] = '\0';
    if (strlen(first) + 2 <= OPTION_COLUMN) {
        size_t used = strlen(first);
        snprintf(first + used, sizeof first - used, "%*s", (int)(OPTION_COLUMN - used), "");
    } else {
        fprintf(out, "%s\n", first);
        snprintf(first, sizeof first, "%s", rest);
    }
    print_wrapped(out, description, first, rest, COLUMNS);
}

static void print_options(unsigned verb, FILE *out)
{
    for (int section = 0; section < SECTION_COUNT; section++) {
        bool titled = false;
        for (size_t i = 0; i < option_count; i++) {
            if (!(options[i].verbs & verb) || (int)options[i].section != section)
                continue;
            if (!titled)
                fprintf(out, "\n%s:\n", option_section_title(options[i].section));
            titled = true;
            print_option(&options[i], out);
        }
    }
}

static void print_examples(const char *examples, FILE *out)
{
    fputs("\nExamples:\n", out);
    for (const char *line = examples; *line; line += strcspn(line, "\n") + 1)
        fprintf(out, "  %.*s\n", (int)strcspn(line, "\n"), line);
}

void help_verb(const struct verb *verb, FILE *out)
{
    fprintf(out, "Usage: saccade %s%s%s [options]\n\n", verb->name, *verb->arguments ? " " : "",
            verb->arguments);
    print_wrapped(out, verb->about, "", "", COLUMNS);
    print_options(verb->bit, out);
    print_examples(verb->examples, out);
}

void help_program(FILE *out)
{
    fputs("Usage: saccade INPUT [-o OUT.mp4] [options]\n"
          "       saccade VERB ...\n\n"
          "Video in, tracks out: finds objects in a video, follows each under its own number and\n"
          "writes an annotated video, JSON lines or MOTChallenge files.\n\nVerbs:\n",
          out);
    for (size_t i = 0; i < verb_count; i++)
        fprintf(out, "  %-12s %s\n", verbs[i].name, verbs[i].summary);
    fputs("\n'saccade VERB --help' describes a verb; without a verb, 'track' runs.\n"
          "Options that describe a run are also keys of the YAML file for --config: 'saccade "
          "config' prints a template.\n"
          "Exit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted.\n"
          "\nExamples:\n"
          "  saccade in.mp4 -o out.mp4\n"
          "  saccade doctor\n",
          out);
}

int verb_help(struct settings *s, struct fault *fault)
{
    if (s->args.count == 0) {
        help_program(stdout);
        return STATUS_OK;
    }
    const struct verb *verb = verb_find(s->args.items[0]);
    struct sac_nearest best = {0};
    if (verb) {
        help_verb(verb, stdout);
        return STATUS_OK;
    }
    for (size_t i = 0; i < verb_count; i++)
        sac_nearest_offer(&best, s->args.items[0], verbs[i].name);
    return fault_usage(fault, "no verb '%s'; %s%s%s", s->args.items[0],
                       best.word ? "did you mean '" : "'saccade help' lists them",
                       best.word ? best.word : "", best.word ? "'?" : "");
}

int verb_config(struct settings *s, struct fault *fault)
{
    (void)s;
    (void)fault;
    config_print(stdout);
    return STATUS_OK;
}
