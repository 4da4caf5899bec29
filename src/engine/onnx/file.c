/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/onnx/file.h"

static sac_result map_open_file(sac_context *ctx, const char *path, int fd,
                                struct sac_mapped_file *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return SAC_FAIL(ctx, SAC_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return SAC_FAIL(ctx, SAC_ERR_FORMAT, "'%s' is not a regular file", path);
    *out = (struct sac_mapped_file){.size = (size_t)st.st_size};
    if (st.st_size == 0)
        return SAC_OK;
    void *p = mmap(NULL, out->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return SAC_FAIL(ctx, SAC_ERR_IO, "cannot map '%s': %s", path, strerror(errno));
    out->bytes = p;
    return SAC_OK;
}

sac_result sac_file_map(sac_context *ctx, const char *path, struct sac_mapped_file *out)
{
    /* O_NONBLOCK: opening a named pipe would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return SAC_FAIL(ctx, SAC_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    sac_result res = map_open_file(ctx, path, fd, out);
    close(fd);
    return res;
}

void sac_file_unmap(struct sac_mapped_file *file)
{
    if (file->bytes)
        munmap((void *)file->bytes, file->size);
    *file = (struct sac_mapped_file){0};
}
