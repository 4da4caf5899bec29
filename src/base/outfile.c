/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/outfile.h"

static bool written_in_place(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

sac_result sac_outfile_open(sac_context *ctx, const char *path, struct sac_outfile *out)
{
    *out = (struct sac_outfile){.ctx = ctx, .path = sac_strdup(path)};
    if (out->path && !written_in_place(path))
        out->part = sac_asprintf("%s.part", path);
    if (!out->path || (!out->part && !written_in_place(path))) {
        sac_outfile_abandon(out);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for its name", path);
    }
    out->file = fopen(out->part ? out->part : path, "we");
    if (out->file)
        return SAC_OK;
    int why = errno;
    sac_free(out->part); /* not made by us, so not ours to remove */
    out->part = NULL;
    sac_outfile_abandon(out);
    return SAC_FAIL(ctx, SAC_ERR_IO, "cannot write '%s': %s", path, strerror(why));
}

static sac_result fail_write(struct sac_outfile *out, int why)
{
    const char *reason = why ? strerror(why) : "an earlier write failed";
    if (!out->keep || !out->part)
        return SAC_FAIL(out->ctx, SAC_ERR_IO, "cannot write '%s': %s", out->path, reason);
    sac_result res = SAC_FAIL(out->ctx, SAC_ERR_IO,
                              "cannot write '%s': %s; what could be written is in '%s'", out->path,
                              reason, out->part);
    sac_free(out->part);
    out->part = NULL;
    return res;
}

sac_result sac_outfile_check(struct sac_outfile *out)
{
    return ferror(out->file) ? fail_write(out, errno) : SAC_OK;
}

/* 0, or errno. Pipes and devices have nothing to sync and say EINVAL or EROFS. */
static int flush_to_disk(FILE *file)
{
    if (ferror(file))
        return errno ? errno : EIO;
    if (fflush(file) != 0)
        return errno;
    if (fsync(fileno(file)) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
        return errno;
    return 0;
}

sac_result sac_outfile_finish(struct sac_outfile *out)
{
    int why = flush_to_disk(out->file);
    if (fclose(out->file) != 0 && !why)
        why = errno;
    out->file = NULL;
    if (!why && out->part && rename(out->part, out->path) != 0)
        why = errno;
    sac_result res = why ? fail_write(out, why) : SAC_OK;
    if (!why) {
        sac_free(out->part);
        out->part = NULL;
    }
    sac_outfile_abandon(out);
    return res;
}

void sac_outfile_abandon(struct sac_outfile *out)
{
    if (out->file)
        fclose(out->file);
    if (out->part)
        unlink(out->part);
    sac_free(out->part);
    sac_free(out->path);
    *out = (struct sac_outfile){0};
}
