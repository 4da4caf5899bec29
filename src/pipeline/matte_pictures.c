/* SPDX-License-Identifier: Apache-2.0 */
/* Mattes as grey pictures, a file each. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media/media.h"
#include "pipeline/output.h"
#include "pipeline/tasks/segment.h"

bool sac_matte_is_picture(const char *name)
{
    const size_t digits = strspn(name, "0123456789");
    return digits > 0 && strcmp(name + digits, ".png") == 0;
}

struct pictures {
    struct sac_output base;
    sac_context      *ctx;
    struct sac_job   *job;
    const char       *folder;
    bool              made; /* the folder */
    struct sac_png   *png;
};

static sac_result pictures_write(struct sac_output *out, struct sac_item *item)
{
    struct pictures *p = (struct pictures *)out;
    char             path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%06" PRId64 ".png", p->folder, item->number) >=
        (int)sizeof path)
        return SAC_FAIL(p->ctx, SAC_ERR_ARG, "'%s': the path is too long", p->folder);
    const int64_t begun = sac_books_begin(p->job->books, SAC_STAGE_ENCODE);
    sac_result    res = sac_png_write_wait(p->png, path, sac_segment_matte(item), NULL);
    sac_books_finish(p->job->books, SAC_STAGE_ENCODE, begun, item);
    return res;
}

/* Each picture is whole when it is there. */
static sac_result pictures_finish(struct sac_output *out)
{
    (void)out;
    return SAC_OK;
}

static void pictures_destroy(struct sac_output *out)
{
    struct pictures *p = (struct pictures *)out;
    sac_png_destroy(&p->png);
    if (p->made)
        rmdir(p->folder); /* fails where there are pictures */
    sac_free(p);
}

static const struct sac_output_ops pictures_ops = {
    .name = "matte pictures",
    .bit = SAC_OUTPUT_VIDEO,
    .times_itself = true,
    .write = pictures_write,
    .finish = pictures_finish,
    .destroy = pictures_destroy,
};

/* Those of an earlier run would lie between the new ones, and whose they are nobody knows, so none
 * is replaced or removed. */
static sac_result check_empty(struct pictures *p)
{
    if (access(p->folder, W_OK | X_OK) != 0)
        return SAC_FAIL(p->ctx, SAC_ERR_IO, "cannot write into folder '%s': %s", p->folder,
                        strerror(errno));
    DIR *dir = opendir(p->folder);
    if (!dir)
        return SAC_FAIL(p->ctx, SAC_ERR_IO, "cannot read folder '%s': %s", p->folder,
                        strerror(errno));
    const struct dirent *entry;
    while ((entry = readdir(dir)) && !sac_matte_is_picture(entry->d_name))
        ;
    sac_result res = SAC_OK;
    if (entry)
        res = SAC_FAIL(p->ctx, SAC_ERR_ARG,
                       "'%s' already has pictures, such as '%s', which could not be told from the "
                       "new ones: name another folder, or remove them",
                       p->folder, entry->d_name);
    closedir(dir);
    return res;
}

static sac_result make_folder(struct pictures *p)
{
    struct stat about;
    p->made = mkdir(p->folder, 0777) == 0;
    if (p->made)
        return SAC_OK;
    const int why = errno;
    if (why == EEXIST && stat(p->folder, &about) == 0)
        return S_ISDIR(about.st_mode)
                   ? check_empty(p)
                   : SAC_FAIL(p->ctx, SAC_ERR_ARG, "'%s' is no folder, which pictures need",
                              p->folder);
    return SAC_FAIL(p->ctx, SAC_ERR_IO, "cannot create folder '%s': %s", p->folder, strerror(why));
}

sac_result sac_matte_pictures_create(const struct sac_output_setup *setup, struct sac_output **out)
{
    struct pictures *p = sac_new(struct pictures);
    if (!p)
        return SAC_FAIL(setup->ctx, SAC_ERR_MEMORY, "no memory for pictures of mattes");
    p->base.ops = &pictures_ops;
    p->ctx = setup->ctx;
    p->job = setup->job;
    p->folder = setup->params->video_out;
    sac_result res = sac_png_create(setup->job->dev, &p->png);
    if (res == SAC_OK)
        res = make_folder(p);
    if (res == SAC_OK)
        *out = &p->base;
    else
        pictures_destroy(&p->base);
    return res;
}
