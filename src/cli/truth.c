/* SPDX-License-Identifier: Apache-2.0 */
#include "truth.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool is_existing_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool join(char *buf, size_t size, const char *folder, const char *name)
{
    int length = snprintf(buf, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size;
}

bool find_file_in(const char *folder, const char *name, char *buf, size_t size)
{
    struct stat st;
    if (join(buf, size, folder, name) && stat(buf, &st) == 0 && S_ISREG(st.st_mode))
        return true;
    *buf = '\0';
    return false;
}

static void base_name(const char *path, char *buf, size_t size)
{
    char copy[TRUTH_PATH_SIZE];
    snprintf(copy, sizeof copy, "%s", path);
    snprintf(buf, size, "%.*s", (int)size - 1, basename(copy));
}

static struct truth *add_truth(struct truths *out, struct fault *fault)
{
    struct truth *items = realloc(out->items, (out->count + 1) * sizeof *items);
    if (!items) {
        fault_failure(fault, "out of memory");
        return NULL;
    }
    out->items = items;
    items[out->count] = (struct truth){.name = ""};
    return &items[out->count++];
}

/* "." and ".." have a name too; that of a link is its own. */
static void name_of_folder(const char *folder, char *buf, size_t size)
{
    char real[TRUTH_PATH_SIZE];
    base_name(folder, buf, size);
    if ((strcmp(buf, ".") == 0 || strcmp(buf, "..") == 0) && realpath(folder, real))
        base_name(real, buf, size);
}

/* folder: [TRUTH_PATH_SIZE] */
static void go_up(char *folder)
{
    char copy[TRUTH_PATH_SIZE];
    snprintf(copy, sizeof copy, "%s", folder);
    snprintf(folder, TRUTH_PATH_SIZE, "%s", dirname(copy));
}

/* The folder with gt.txt or gt/gt.txt is the sequence's: of SEQ/gt the one above. */
static void set_folder(struct truth *truth, const char *folder)
{
    char text[TRUTH_NAME_SIZE];
    snprintf(truth->folder, sizeof truth->folder, "%s", folder);
    name_of_folder(folder, truth->name, sizeof truth->name);
    if (strcmp(truth->name, "gt") == 0) {
        base_name(folder, text, sizeof text);
        if (strcmp(text, "gt") == 0)
            go_up(truth->folder);
        else
            join(truth->folder, sizeof truth->folder, folder, "..");
        name_of_folder(truth->folder, truth->name, sizeof truth->name);
    }
    find_file_in(truth->folder, "seqinfo.ini", truth->seqinfo, sizeof truth->seqinfo);
}

/* A file's sequence is named after it, a gt.txt after its folder: SEQ/gt.txt, SEQ/gt/gt.txt. */
static int add_file(struct truths *out, const char *path, struct fault *fault)
{
    char          folder[TRUTH_PATH_SIZE];
    struct truth *truth = add_truth(out, fault);
    if (!truth)
        return STATUS_FAILURE;
    snprintf(truth->gt, sizeof truth->gt, "%s", path);
    base_name(path, truth->name, sizeof truth->name);
    char *dot = strrchr(truth->name, '.');
    if (strcmp(truth->name, "gt.txt") == 0) {
        snprintf(folder, sizeof folder, "%s", path);
        go_up(folder);
        set_folder(truth, folder);
    } else if (dot && dot != truth->name) {
        *dot = '\0';
    }
    return STATUS_OK;
}

/* false: the folder holds no sequence. */
static bool add_sequence(struct truths *out, const char *folder, int *status, struct fault *fault)
{
    char gt[TRUTH_PATH_SIZE];
    if (!find_file_in(folder, "gt.txt", gt, sizeof gt) &&
        !find_file_in(folder, "gt/gt.txt", gt, sizeof gt))
        return false;
    struct truth *truth = add_truth(out, fault);
    *status = truth ? STATUS_OK : STATUS_FAILURE;
    if (!truth)
        return true;
    memcpy(truth->gt, gt, sizeof gt);
    set_folder(truth, folder);
    return true;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int add_folder(struct truths *out, const char *folder, struct fault *fault)
{
    struct dirent **entries = NULL;
    size_t          before = out->count;
    int             status = STATUS_OK;
    if (add_sequence(out, folder, &status, fault))
        return status;
    int n = scandir(folder, &entries, not_hidden, alphasort);
    for (int i = 0; i < n; i++) {
        char path[TRUTH_PATH_SIZE];
        if (status == STATUS_OK && join(path, sizeof path, folder, entries[i]->d_name) &&
            is_existing_folder(path))
            add_sequence(out, path, &status, fault);
        free(entries[i]);
    }
    free(entries);
    if (status == STATUS_OK && out->count == before)
        return fault_failure(fault, "%s: no gt.txt in it, nor in its folders", folder);
    return status;
}

int truths_find(struct truths *out, const struct text_list *texts, struct fault *fault)
{
    int status = STATUS_OK;
    for (size_t i = 0; i < texts->count && status == STATUS_OK; i++) {
        const char *path = texts->items[i];
        struct stat st;
        if (stat(path, &st) != 0)
            status = fault_failure(fault, "%s: %s", path, strerror(errno));
        else
            status =
                S_ISDIR(st.st_mode) ? add_folder(out, path, fault) : add_file(out, path, fault);
    }
    return status;
}

/* ---- files that belong to them ---- */

static bool is_named_after(const char *file, const char *sequence)
{
    char path[TRUTH_PATH_SIZE], name[TRUTH_NAME_SIZE];
    snprintf(path, sizeof path, "%s", file);
    for (int up = 0; up < 3; up++) {
        base_name(path, name, sizeof name);
        char *dot = up == 0 ? strrchr(name, '.') : NULL;
        if (dot && dot != name)
            *dot = '\0';
        if (strcmp(name, sequence) == 0)
            return true;
        go_up(path);
    }
    return false;
}

/* files->count: none, or several. */
static size_t find_named(const struct text_list *files, const char *sequence)
{
    size_t found = files->count;
    for (size_t i = 0; i < files->count; i++)
        if (is_named_after(files->items[i], sequence)) {
            if (found < files->count)
                return files->count;
            found = i;
        }
    return found;
}

int truths_pair(const struct truths *truths, const struct text_list *files, const char *option,
                size_t **file_of, struct fault *fault)
{
    bool named = true;
    if (files->count != truths->count)
        return fault_usage(fault,
                           "sequences of --gt: %zu, files of --%s: %zu; give a file for each, or a "
                           "folder with SEQUENCE.txt in it",
                           truths->count, option, files->count);
    *file_of = calloc(truths->count + 1, sizeof **file_of);
    if (!*file_of)
        return fault_failure(fault, "out of memory");
    for (size_t i = 0; i < truths->count && named; i++) {
        (*file_of)[i] = find_named(files, truths->items[i].name);
        named = (*file_of)[i] < files->count;
        for (size_t k = 0; k < i && named; k++)
            named = (*file_of)[k] != (*file_of)[i];
    }
    for (size_t i = 0; i < truths->count && !named; i++)
        (*file_of)[i] = i;
    return STATUS_OK;
}

void truths_finish(struct truths *truths)
{
    free(truths->items);
    *truths = (struct truths){0};
}
