/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments to inputs. */
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <saccade/source.h>

#include "expand.h"

static int out_of_memory(struct fault *fault)
{
    return fault_failure(fault, "out of memory");
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool exists(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

static int add(struct settings *s, struct text_list *list, const char *path, struct fault *fault)
{
    const char *held = settings_hold(s, path);
    return held && text_list_add(list, held) ? STATUS_OK : out_of_memory(fault);
}

/* Numbers in names sort by value: img10 after img9. */
static int compare(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_from(struct text_list *list, size_t first)
{
    if (list->count > first) /* else there may be no items at all */
        qsort(list->items + first, list->count - first, sizeof *list->items, compare);
}

/* ---- a folder ---- */

static int add_videos(struct settings *s, const char *folder, struct text_list *list,
                      struct fault *fault)
{
    const size_t   first = list->count, length = strlen(folder);
    size_t         pictures = 0, videos = 0;
    int            status = STATUS_OK;
    struct dirent *entry;
    DIR           *dir = opendir(folder);
    while (dir && status == STATUS_OK && (entry = readdir(dir))) {
        char path[4096];
        pictures += entry->d_name[0] != '.' && sac_name_is_picture(entry->d_name);
        if (entry->d_name[0] == '.' || !sac_name_is_video(entry->d_name))
            continue;
        videos++;
        snprintf(path, sizeof path, "%s%s%s", folder, folder[length - 1] == '/' ? "" : "/",
                 entry->d_name);
        status = add(s, list, path, fault);
    }
    if (dir)
        closedir(dir);
    if (status == STATUS_OK && videos && pictures)
        return fault_usage(fault,
                           "'%s' holds pictures and videos; choose with '%s/*.jpg' or '%s/*.mp4'",
                           folder, folder, folder);
    sort_from(list, first);
    if (videos == 0) /* pictures, or nothing, which the library reports */
        return add(s, list, folder, fault);
    return status;
}

/* ---- a pattern that the shell left as it is ---- */

static bool is_pattern(const char *arg)
{
    return strpbrk(arg, "*?[") && !strstr(arg, "://") && !exists(arg);
}

static int add_matches(struct settings *s, const char *pattern, struct text_list *list,
                       struct fault *fault)
{
    const size_t first = list->count;
    glob_t       found;
    int          err = glob(pattern, GLOB_NOSORT | GLOB_BRACE, NULL, &found), status = STATUS_OK;
    if (err == GLOB_NOMATCH)
        return fault_failure(fault, "'%s': no file matches this pattern", pattern);
    if (err != 0)
        return err == GLOB_NOSPACE ? out_of_memory(fault)
                                   : fault_failure(fault, "'%s': %s", pattern, strerror(errno));
    for (size_t i = 0; i < found.gl_pathc && status == STATUS_OK; i++)
        status = add(s, list, found.gl_pathv[i], fault);
    globfree(&found);
    sort_from(list, first);
    return status;
}

int expand_inputs(struct settings *s, struct text_list *out, struct fault *fault)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < s->args.count && status == STATUS_OK; i++) {
        const char *arg = s->args.items[i];
        if (is_folder(arg))
            status = add_videos(s, arg, out, fault);
        else if (is_pattern(arg))
            status = add_matches(s, arg, out, fault);
        else
            status = text_list_add(out, arg) ? STATUS_OK : out_of_memory(fault);
    }
    return status;
}

bool are_pictures(const struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!sac_name_is_picture(list->items[i]) || strstr(list->items[i], "://") ||
            strchr(list->items[i], '%') || is_folder(list->items[i]))
            return false;
    return list->count > 1;
}
