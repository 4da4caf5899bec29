/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expand.h"
#include "inputs.h"
#include "names.h"
#include "outputs.h"

/* More than a machine can decode at once, fewer than a process may have open files; with a process
 * for each, as many as can be compared by name in a second. */
enum { INPUTS_MAX = 256, INPUTS_MAX_APART = 4096 };

bool is_standard(const char *file)
{
    return strcmp(file, "-") == 0;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_called_folder(const char *path)
{
    return path[0] && path[strlen(path) - 1] == '/';
}

/* ---- one path ---- */

/* The input's own container, if a sink writes it with the usual encoders. */
static const char *ending_of_video(const char *input)
{
    static const char *const endings[] = {".mp4", ".mkv", ".mov", ".m4v", ".avi"};
    const char              *dot = input ? strrchr(input, '.') : NULL;
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return endings[i];
    return ".mp4";
}

/* Several inputs can't share one output file. */
static int check_several(const struct output_kind *kind, const char *ending, const char *value,
                         struct fault *fault)
{
    struct stat about;
    const char *option = kind->option, *dot = strrchr(value, '.');
    if (is_standard(value))
        return fault_usage(fault, "with several inputs %s names a folder, not standard output",
                           option);
    if (stat(value, &about) == 0 && !S_ISDIR(about.st_mode))
        return fault_usage(
            fault,
            "'%s' is not a folder; with several inputs %s names one, or a path with {name} in it",
            value, option);
    if (!is_folder(value) && !is_called_folder(value) && dot &&
        (ending ? strcmp(dot, ending) == 0 : sac_name_is_video(value)))
        return fault_usage(
            fault,
            "'%s' names one file; with several inputs %s names a folder, or a path with {name} "
            "in it, such as '{name}%s'",
            value, option, dot);
    return STATUS_OK;
}

static int path_in(struct settings *s, const char *folder, const char *name, const char *ending,
                   const char **out, struct fault *fault)
{
    char path[PATH_MAX_BYTES];
    int  length = snprintf(path, sizeof path, "%s%s%s%s", folder,
                          is_called_folder(folder) ? "" : "/", name, ending);
    if (length >= (int)sizeof path)
        return fault_usage(fault, "'%.200s...': a path of %d bytes is too long", folder, length);
    *out = settings_hold(s, path);
    return *out ? STATUS_OK : fault_failure(fault, "out of memory");
}

static int path_of_template(struct settings *s, const struct output_kind *kind, const char *text,
                            const struct naming *n, size_t index, const char **out,
                            struct fault *fault)
{
    char path[PATH_MAX_BYTES], unknown[64];
    if (!template_expand(text, n, index, path, sizeof path, unknown))
        return fault_usage(fault, "%s '%.200s...': the path is too long", kind->option, text);
    if (*unknown)
        return fault_usage(
            fault,
            "%s '%s': %s is unknown; use {name}, {folder}, {index}, {stream}, and {{ for a "
            "brace",
            kind->option, text, unknown);
    *out = settings_hold(s, path);
    return *out ? STATUS_OK : fault_failure(fault, "out of memory");
}

static int name_output(struct settings *s, const struct output_kind *kind, const struct naming *n,
                       size_t index, bool many, struct sac_stream_params *p, struct fault *fault)
{
    const char  *value = output_setting(kind, s), *ending = output_ending(kind, s);
    const char **out = output_in_stream(kind, p);
    const bool   is_one = ending && !*ending; /* a folder itself */
    *out = value;
    if (!value)
        return STATUS_OK;
    if (template_is(value))
        return path_of_template(s, kind, value, n, index, out, fault);
    int status = many ? check_several(kind, ending, value, fault) : STATUS_OK;
    if (status == STATUS_OK && (many || (!is_one && (is_called_folder(value) || is_folder(value)))))
        status =
            path_in(s, value, n->unique, ending ? ending : ending_of_video(p->input), out, fault);
    return status;
}

/* ---- ready-made detections ---- */

static int check_detections(const char *path, struct fault *fault)
{
    struct stat about;
    if (is_standard(path))
        return fault_usage(fault,
                           "with several inputs --detections names a folder, not standard input");
    if (stat(path, &about) != 0)
        return fault_failure(fault, "'%s': %s; with several inputs --detections names a folder",
                             path, strerror(errno));
    return S_ISDIR(about.st_mode)
               ? STATUS_OK
               : fault_usage(fault,
                             "'%s' is not a folder; with several inputs --detections names one",
                             path);
}

/* Each input's file in the folder has the name of its outputs, or else the input's own name. */
static int find_detections(struct settings *s, const struct naming *n, bool many,
                           struct sac_stream_params *p, struct fault *fault)
{
    p->detections = s->run.detections;
    if (!s->run.detections || !many)
        return STATUS_OK;
    int status = check_detections(s->run.detections, fault);
    if (status == STATUS_OK)
        status = path_in(s, s->run.detections, n->unique, ".txt", &p->detections, fault);
    if (status == STATUS_OK && access(p->detections, F_OK) != 0)
        status = path_in(s, s->run.detections, n->name, ".txt", &p->detections, fault);
    return status;
}

/* ---- no output ---- */

/* An explicit "none", or a request for statistics or a trace, also means that no default is wanted.
 */
static bool wants_default(struct settings *s)
{
    bool wants = !s->run.job.stats_out && !s->run.job.trace_out && !s->run.job.segment;
    for (size_t i = 0; i < output_kind_count; i++) {
        const char *value = output_setting(&output_kinds[i], s);
        wants &= !value;
        if (value && strcmp(value, "none") == 0)
            output_set(&output_kinds[i], s, NULL);
    }
    return wants;
}

/* In the current folder; an existing file is never overwritten. */
static int choose_default(struct settings *s, struct inputs *inputs, const struct naming *names,
                          struct fault *fault)
{
    for (size_t i = 0; i < inputs->count; i++) {
        char path[PATH_MAX_BYTES];
        snprintf(path, sizeof path, "%s.tracks.jsonl", names[i].unique);
        inputs->streams[i].jsonl_out = settings_hold(s, path);
        if (!inputs->streams[i].jsonl_out)
            return fault_failure(fault, "out of memory");
        if (access(path, F_OK) == 0)
            return fault_usage(
                fault,
                "no output was named, and '%s' already exists: remove it, or name an output "
                "with --output, --jsonl or --mot (--jsonl none: no file)",
                path);
    }
    return STATUS_OK;
}

/* ---- the plan ---- */

/* "imgs/1.jpg ... imgs/9.jpg" */
static int join_pictures(struct settings *s, struct inputs *inputs, struct text_list *list,
                         struct fault *fault)
{
    char       name[2 * PATH_MAX_BYTES];
    const bool one = s->args.count == 1; /* a pattern, used as the name */
    inputs->given = *list;
    inputs->pictures = inputs->given.items;
    inputs->picture_count = list->count;
    *list = (struct text_list){0};
    snprintf(name, sizeof name, "%.4000s%s%.4000s", one ? s->args.items[0] : inputs->pictures[0],
             one ? "" : " ... ", one ? "" : inputs->pictures[inputs->picture_count - 1]);
    const char *held = settings_hold(s, name);
    return held && text_list_add(list, held) ? STATUS_OK : fault_failure(fault, "out of memory");
}

static void name_inputs(const struct settings *s, const struct inputs *inputs, struct naming *names)
{
    for (size_t i = 0; i < inputs->count; i++) {
        const char *input = inputs->streams[i].input, *folder = NULL;
        char        path[PATH_MAX_BYTES];
        if (inputs->picture_count > 0) { /* pictures are named after their folder */
            snprintf(path, sizeof path, "%s", inputs->pictures[0]);
            folder = strrchr(path, '/') ? path : ".";
            if (strrchr(path, '/'))
                *strrchr(path, '/') = '\0';
        }
        naming_init(&names[i], folder && *folder ? folder : input ? input : s->run.detections);
    }
    bool lines = !s->run.video_out;
    for (size_t i = 0; i < output_kind_count; i++)
        lines |= output_ending(&output_kinds[i], s) && output_setting(&output_kinds[i], s);
    naming_part(names, inputs->count, !lines);
}

static int name_all(struct settings *s, struct inputs *inputs, struct naming *names,
                    struct fault *fault)
{
    const bool many = inputs->count > 1;
    int        status = STATUS_OK;
    name_inputs(s, inputs, names);
    for (size_t i = 0; i < inputs->count && status == STATUS_OK; i++) {
        struct sac_stream_params *p = &inputs->streams[i];
        status = find_detections(s, &names[i], many, p, fault);
        for (size_t k = 0; k < output_kind_count && status == STATUS_OK; k++)
            status = name_output(s, &output_kinds[k], &names[i], i, many, p, fault);
    }
    return status;
}

static int fill(struct settings *s, struct inputs *inputs, struct fault *fault)
{
    const bool     by_default = wants_default(s);
    struct naming *names = calloc(inputs->count, sizeof *names);
    inputs->streams = calloc(inputs->count, sizeof *inputs->streams);
    if (!names || !inputs->streams) {
        free(names);
        return fault_failure(fault, "out of memory");
    }
    for (size_t i = 0; i < s->args.count; i++)
        inputs->streams[i].input = s->args.items[i];
    int status = name_all(s, inputs, names, fault);
    if (status == STATUS_OK && by_default)
        status = choose_default(s, inputs, names, fault);
    free(names);
    for (size_t i = 0; status == STATUS_OK && inputs->count == 1 && i < output_kind_count; i++)
        output_set(&output_kinds[i], s, *output_in_stream(&output_kinds[i], inputs->streams));
    return status;
}

int inputs_plan(struct settings *s, struct inputs *out, struct fault *fault)
{
    struct text_list list = {0};
    *out = (struct inputs){0};
    int status = expand_inputs(s, &list, fault);
    if (status == STATUS_OK && are_pictures(&list))
        status = join_pictures(s, out, &list, fault);
    const size_t most = s->processes > 1 ? INPUTS_MAX_APART : INPUTS_MAX;
    if (status == STATUS_OK && list.count > most)
        status = fault_usage(fault, "%zu inputs are too many for one run; up to %zu%s", list.count,
                             most, s->processes > 1 ? "" : ", or more with --processes");
    free(s->args.items);
    s->args = list;
    out->count = list.count ? list.count : 1;
    return status == STATUS_OK ? fill(s, out, fault) : status;
}

void inputs_finish(struct inputs *inputs)
{
    free(inputs->streams);
    free(inputs->given.items);
    free(inputs->made.items);
    *inputs = (struct inputs){0};
}

/* ---- folders ---- */

static int make_folder(struct settings *s, const char *folder, struct inputs *inputs,
                       struct fault *fault)
{
    char part[PATH_MAX_BYTES];
    snprintf(part, sizeof part, "%s", folder);
    for (char *p = part + 1; part[0]; p++) {
        const char end = *p;
        if (end && end != '/')
            continue;
        *p = '\0';
        const bool made = mkdir(part, 0777) == 0;
        if (!made && errno != EEXIST && !is_folder(part))
            return fault_failure(fault, "cannot create folder '%s': %s", part, strerror(errno));
        const char *held = made ? settings_hold(s, part) : NULL;
        if (made && (!held || !text_list_add(&inputs->made, held)))
            return fault_failure(fault, "out of memory");
        if (!end)
            break;
        *p = end;
    }
    return STATUS_OK;
}

static int make_folder_of(struct settings *s, const char *path, struct inputs *inputs,
                          struct fault *fault)
{
    char folder[PATH_MAX_BYTES];
    snprintf(folder, sizeof folder, "%s", path ? path : "");
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return STATUS_OK;
    *slash = '\0';
    return make_folder(s, folder, inputs, fault);
}

int inputs_make_folders(struct settings *s, struct inputs *inputs, struct fault *fault)
{
    int status = make_folder_of(s, s->run.job.stats_out, inputs, fault);
    if (status == STATUS_OK)
        status = make_folder_of(s, s->run.job.trace_out, inputs, fault);
    for (size_t i = 0; i < inputs->count; i++)
        for (size_t k = 0; k < output_kind_count && status == STATUS_OK; k++)
            status = make_folder_of(s, *output_in_stream(&output_kinds[k], &inputs->streams[i]),
                                    inputs, fault);
    return status;
}

void inputs_remove_folders(struct inputs *inputs)
{
    while (inputs->made.count > 0)
        rmdir(inputs->made.items[--inputs->made.count]);
}
