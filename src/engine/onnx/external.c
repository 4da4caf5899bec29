/* SPDX-License-Identifier: Apache-2.0 */
/* External data: weights in files beside the model, mapped once each. A model must not make us read
 * any other file of the machine, so the path is confined to the model's folder, links resolved. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/onnx/file.h"
#include "engine/onnx/reader.h"

struct sac_onnx_blob {
    struct sac_onnx_blob  *next;
    char                  *path; /* resolved */
    struct sac_mapped_file file;
};

static void blob_destroy(struct sac_onnx_blob *b)
{
    sac_file_unmap(&b->file);
    sac_free(b->path);
    sac_free(b);
}

/* The real path of location inside the folder. */
static sac_result resolve(struct sac_onnx_reader *r, const char *location, char path[PATH_MAX])
{
    char folder[PATH_MAX], joined[PATH_MAX + SAC_ONNX_NAME_MAX + 2];
    if (!r->source->folder)
        return SAC_FAIL(
            r->ctx, SAC_ERR_UNSUPPORTED,
            "its data is in the file '%s', but the model came from memory; load it by path",
            location);
    if (!realpath(r->source->folder, folder))
        return SAC_FAIL(r->ctx, SAC_ERR_IO, "cannot find the folder '%s': %s", r->source->folder,
                        strerror(errno));
    snprintf(joined, sizeof joined, "%s/%s", folder, location);
    if (location[0] == '/' || strstr(location, ".."))
        return SAC_FAIL(r->ctx, SAC_ERR_FORMAT,
                        "its data file '%s' is not inside the model's folder", location);
    if (!realpath(joined, path))
        return SAC_FAIL(r->ctx, SAC_ERR_IO, "cannot open its data file '%s': %s", joined,
                        strerror(errno));
    size_t len = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
    if (strncmp(path, folder, len) != 0 || path[len] != '/')
        return SAC_FAIL(r->ctx, SAC_ERR_FORMAT,
                        "its data file '%s' leads out of the model's folder", location);
    return SAC_OK;
}

static sac_result blob_open(struct sac_onnx_reader *r, const char *path, struct sac_onnx_blob **out)
{
    for (struct sac_onnx_blob *b = r->out->blobs; b; b = b->next)
        if (strcmp(b->path, path) == 0) {
            *out = b;
            return SAC_OK;
        }
    struct sac_onnx_blob *b = sac_new(struct sac_onnx_blob);
    if (!b || !(b->path = sac_strdup(path))) {
        sac_free(b);
        return SAC_FAIL(r->ctx, SAC_ERR_MEMORY, "no memory to open '%s'", path);
    }
    sac_result res = sac_file_map(r->ctx, path, &b->file);
    if (res != SAC_OK) {
        blob_destroy(b);
        return res;
    }
    b->next = r->out->blobs;
    r->out->blobs = b;
    *out = b;
    return SAC_OK;
}

sac_result sac_onnx_external(struct sac_onnx_reader *r, struct sac_wire location, uint64_t offset,
                             uint64_t length, const uint8_t **out, size_t *size)
{
    char                  path[PATH_MAX];
    const char           *name;
    struct sac_onnx_blob *blob = NULL;
    sac_result            res = sac_onnx_name_copy(r, location, &name);
    if (res == SAC_OK)
        res = resolve(r, name, path);
    if (res == SAC_OK)
        res = blob_open(r, path, &blob);
    if (res != SAC_OK)
        return res;
    if (offset > blob->file.size || length > blob->file.size - offset)
        return SAC_FAIL(r->ctx, SAC_ERR_FORMAT,
                        "its data at %llu, %llu bytes, lies past the end of '%s' (%zu bytes)",
                        (unsigned long long)offset, (unsigned long long)length, name,
                        blob->file.size);
    *out = (const uint8_t *)blob->file.bytes + offset;
    *size = (size_t)length;
    return SAC_OK;
}

const char *sac_onnx_data_file(const struct sac_onnx *file, int i)
{
    const struct sac_onnx_blob *b = file->blobs;
    for (; b && i > 0; i--)
        b = b->next;
    return b ? b->path : NULL;
}

void sac_onnx_finish(struct sac_onnx *file)
{
    for (struct sac_onnx_blob *b = file->blobs, *next; b; b = next) {
        next = b->next;
        blob_destroy(b);
    }
    file->blobs = NULL;
}
