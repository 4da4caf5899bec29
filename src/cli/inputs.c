/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "inputs.h"
#include "outputs.h"

enum { PATH_BYTES = 4096 };

bool is_standard(const char *file)
{
    return strcmp(file, "-") == 0;
}

/* ---- names ---- */

/* "dir/a.mp4" -> "a", "rtsp://user:word@host/door?x=1" -> "door", "dir/img%05d.jpg" -> "img_05d", "-" -> "stdin". */
static void name_of_input(const char *input, char *name, size_t size)
{
    char shown[PATH_BYTES];
    sac_hide_secrets(input, shown, sizeof shown); /* "rtsp://user:word@host" has no path, and names its files all the same */
    input = shown;
    bool   url = strstr(input, "://") != NULL;
    size_t length = url ? strcspn(input, "?#;") : strlen(input);
    while (length > 1 && input[length - 1] == '/')
        length--;
    size_t begin = length;
    while (begin > 0 && input[begin - 1] != '/')
        begin--;
    bool host = url && begin == (size_t)(strstr(input, "://") + 3 - input);
    if (host && strncmp(input + begin, "***@", 4) == 0)
        begin += 4;
    size_t end = length;
    while (end > begin && input[end - 1] != '.')
        end--;
    end = end > begin + 1 && !host ? end - 1 : length; /* without its ending; ".hidden" and "10.0.0.1" have none */
    if (strcmp(input, "-") == 0)
        snprintf(name, size, "stdin");
    else
        snprintf(name, size, "%.*s", (int)(end - begin), input + begin);
    for (char *p = name; *p; p++)
        if (*p == '%' || *p == ':' || (unsigned char)*p < 0x20)
            *p = '_';
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        snprintf(name, size, "input");
}

/* The input's own container where a sink writes it with the usual encoders. */
static const char *ending_of_video(const char *input)
{
    static const char *const endings[] = {".mp4", ".mkv", ".mov", ".m4v", ".avi"};
    const char              *dot = strrchr(input, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof endings[0]; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return endings[i];
    return ".mp4";
}

static const char *path_in(struct settings *s, const char *folder, const char *input,
                           const char *ending)
{
    char name[256], path[PATH_BYTES];
    name_of_input(input, name, sizeof name);
    size_t length = strlen(folder);
    snprintf(path, sizeof path, "%s%s%s%s", folder,
             length > 0 && folder[length - 1] == '/' ? "" : "/", name, ending);
    return settings_hold(s, path);
}

static bool name_files(struct settings *s, const char *input, struct sac_stream_params *p)
{
    p->input = input;
    if (s->detections && !(p->detections = path_in(s, s->detections, input, ".txt")))
        return false;
    for (size_t i = 0; i < output_kind_count; i++) {
        const struct output_kind *kind = &output_kinds[i];
        const char               *folder = output_setting(kind, s);
        const char               *ending = kind->ending ? kind->ending : ending_of_video(input);
        if (folder && !(*output_in_stream(kind, p) = path_in(s, folder, input, ending)))
            return false;
    }
    return true;
}

/* ---- folders ---- */

static int check_folder(const char *option, const char *path, bool may_miss, struct fault *fault)
{
    struct stat st;
    if (!path)
        return STATUS_OK;
    if (is_standard(path))
        return fault_usage(fault, "with several inputs %s names a folder, not standard %s", option,
                           may_miss ? "output" : "input");
    if (stat(path, &st) != 0)
        return may_miss ? STATUS_OK
                        : fault_failure(fault, "'%s': %s; with several inputs %s names a folder",
                                        path, strerror(errno), option);
    if (!S_ISDIR(st.st_mode))
        return fault_usage(fault, "'%s' is no folder; with several inputs %s names one", path,
                           option);
    return STATUS_OK;
}

static int make_folder(const char *path, struct fault *fault)
{
    char part[PATH_BYTES];
    if (!path)
        return STATUS_OK;
    snprintf(part, sizeof part, "%s", path);
    for (char *p = part + 1;; p++) {
        char end = *p;
        if (end && end != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return fault_failure(fault, "cannot make folder '%s': %s", part, strerror(errno));
        if (!end)
            return STATUS_OK;
        *p = end;
    }
}

int inputs_make_folders(const struct settings *s, struct fault *fault)
{
    int status = check_folder("--detections", s->detections, false, fault);
    for (size_t i = 0; i < output_kind_count && status == STATUS_OK; i++)
        status = check_folder(output_kinds[i].option, output_setting(&output_kinds[i], s), true, fault);
    for (size_t i = 0; i < output_kind_count && status == STATUS_OK; i++)
        status = make_folder(output_setting(&output_kinds[i], s), fault);
    return status;
}

int inputs_plan(struct settings *s, struct sac_stream_params **out, struct fault *fault)
{
    size_t                    n = s->args.count;
    struct sac_stream_params *all = calloc(n, sizeof *all);
    int                       status = STATUS_OK;
    for (size_t i = 0; all && i < n && status == STATUS_OK; i++)
        if (!name_files(s, s->args.items[i], &all[i]))
            status = fault_failure(fault, "out of memory");
    if (!all)
        status = fault_failure(fault, "out of memory");
    if (status == STATUS_OK)
        *out = all;
    else
        free(all);
    return status;
}
