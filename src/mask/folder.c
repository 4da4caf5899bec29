/* SPDX-License-Identifier: Apache-2.0 */
/* Masks as files of a folder, or of folders in it: SEQUENCE/00000.png. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "mask/mask.h"

enum { PATH_SIZE = 4096, FOLDERS_MAX = 8 }; /* a link may lead back */

static bool has_type(const char *path, mode_t type)
{
    struct stat about;
    return stat(path, &about) == 0 && (about.st_mode & S_IFMT) == type;
}

static bool is_mask_file(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".pgm") == 0);
}

static bool claims(const char *path)
{
    return has_type(path, S_IFDIR) || is_mask_file(path);
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* inside: the path in the set, "" or ending in a slash. */
static sac_result list(struct sac_mask_set *set, const char *root, const char *inside, int level)
{
    char            path[PATH_SIZE];
    struct dirent **entries = NULL;
    sac_result      res = SAC_OK;
    snprintf(path, sizeof path, "%s/%s", root, inside);
    int n = scandir(path, &entries, not_hidden, alphasort);
    if (n < 0)
        return SAC_FAIL(set->ctx, SAC_ERR_IO, "%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char deeper[PATH_SIZE];
        int  length = snprintf(deeper, sizeof deeper, "%s%s", inside, entries[i]->d_name);
        int  whole = snprintf(path, sizeof path, "%s/%s", root, deeper);
        if (res != SAC_OK)
            ;
        else if (length >= PATH_SIZE - 1 || whole >= PATH_SIZE)
            res = SAC_FAIL(set->ctx, SAC_ERR_LIMIT, "%s: a path in it is too long", root);
        else if (has_type(path, S_IFREG) && is_mask_file(path))
            res = sac_mask_set_add(set, deeper, -1, 0);
        else if (has_type(path, S_IFDIR) && level < FOLDERS_MAX) {
            strcat(deeper, "/");
            res = list(set, root, deeper, level + 1);
        }
        free(entries[i]);
    }
    free(entries);
    return res;
}

/* An entry keeps its name without the ending, which is looked for again. */
static const char *const endings[] = {".png", ".PNG", ".pgm", ".PGM", ".Png", ".Pgm"};

static sac_result open_folder(struct sac_mask_set *set)
{
    static const char davis[] = "Annotations/480p";
    char              root[PATH_SIZE];
    if (!has_type(set->path, S_IFDIR))
        return sac_mask_set_add(
            set, strrchr(set->path, '/') ? strrchr(set->path, '/') + 1 : set->path, -1, 0);
    snprintf(root, sizeof root, "%s/%s", set->path, davis);
    if (!has_type(root, S_IFDIR))
        snprintf(root, sizeof root, "%s", set->path);
    set->state = sac_strdup(root);
    if (!set->state)
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", set->path);
    sac_result res = list(set, root, "", 0);
    if (res == SAC_OK && set->count == 0)
        return SAC_FAIL(set->ctx, SAC_ERR_FORMAT,
                        "%s: no mask in this folder, nor in its folders (.png or .pgm; JPEG "
                        "would blur them)",
                        set->path);
    return res;
}

static sac_result load(struct sac_mask_set *set, size_t entry, int width, int height)
{
    char path[PATH_SIZE * 2];
    (void)width;
    (void)height;
    if (!set->state)
        return sac_mask_picture_read(set, set->path);
    for (size_t i = 0; i < SAC_COUNT(endings); i++) {
        snprintf(path, sizeof path, "%s/%s%s", (const char *)set->state, set->entries[entry].name,
                 endings[i]);
        if (has_type(path, S_IFREG))
            return sac_mask_picture_read(set, path);
    }
    return SAC_FAIL(set->ctx, SAC_ERR_IO, "%s/%s.png is gone", (const char *)set->state,
                    set->entries[entry].name);
}

static void close_folder(struct sac_mask_set *set)
{
    sac_free(set->state);
}

const struct sac_mask_set_ops sac_mask_folder = {
    .claims = claims,
    .open = open_folder,
    .load = load,
    .close = close_folder,
};
