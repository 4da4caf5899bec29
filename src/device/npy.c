/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy: "\x93NUMPY", version, header length, a Python dict literal with descr,
 * fortran_order and shape, padded with spaces to a multiple of 64, then the numbers. The format's
 * description: numpy.lib.format, NEP 1. The header comes from outside, so the parser below takes
 * that one literal and nothing else of Python. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/outfile.h"
#include "device/device.h"
#include "device/npy.h"

enum { HEADER_BYTES_MAX = 64 * 1024, ALIGN = 64, MAGIC_BYTES = 6 };

static const char magic[MAGIC_BYTES + 1] = "\x93NUMPY";

/* The first row of a dtype is what is written; others are read too. NumPy has no bfloat16
 * and no float8: the package ml_dtypes, which adds them, writes opaque bytes. */
static const struct {
    enum sac_dtype dtype;
    const char    *descr;
} descrs[] = {
    {SAC_F32, "<f4"},  {SAC_F16, "<f2"}, {SAC_F64, "<f8"},  {SAC_BF16, "<V2"},
    {SAC_I8, "|i1"},   {SAC_U8, "|u1"},  {SAC_I16, "<i2"},  {SAC_U16, "<u2"},
    {SAC_I32, "<i4"},  {SAC_U32, "<u4"}, {SAC_I64, "<i8"},  {SAC_U64, "<u8"},
    {SAC_BOOL, "|b1"}, {SAC_F8, "<V1"},  {SAC_BF16, "|V2"}, {SAC_F8, "|V1"},
};

/* ---- header: the dict literal ---- */

struct parser {
    sac_context *ctx;
    const char  *path;
    const char  *at; /* in a terminated copy of the header */
};

struct header {
    struct sac_tensor_desc desc;
    bool                   has_descr, has_order, has_shape;
};

static sac_result bad(const struct parser *p, const char *what)
{
    return SAC_FAIL(p->ctx, SAC_ERR_FORMAT, "'%s': its .npy header has %s", p->path, what);
}

static void skip_space(struct parser *p)
{
    p->at += strspn(p->at, " \t\n");
}

static bool accept(struct parser *p, const char *token)
{
    skip_space(p);
    size_t len = strlen(token);
    if (strncmp(p->at, token, len) != 0)
        return false;
    p->at += len;
    return true;
}

/* A quoted string without escapes. */
static bool parse_string(struct parser *p, char *out, size_t size)
{
    skip_space(p);
    char quote = *p->at;
    if (quote != '\'' && quote != '"')
        return false;
    const char *end = strchr(p->at + 1, quote);
    size_t      len = end ? (size_t)(end - p->at - 1) : size;
    if (len >= size)
        return false;
    memcpy(out, p->at + 1, len);
    out[len] = '\0';
    p->at = end + 1;
    return true;
}

static sac_result parse_descr(struct parser *p, struct header *h)
{
    char descr[16];
    if (!parse_string(p, descr, sizeof descr))
        return SAC_FAIL(p->ctx, SAC_ERR_UNSUPPORTED, "'%s': a structured dtype; have plain numbers",
                        p->path);
    for (size_t i = 0; i < SAC_COUNT(descrs); i++)
        if (!strcmp(descrs[i].descr, descr)) {
            h->desc.dtype = descrs[i].dtype;
            h->has_descr = true;
            return SAC_OK;
        }
    return SAC_FAIL(p->ctx, SAC_ERR_UNSUPPORTED,
                    "'%s': dtype '%s'; have bool and little-endian int8 to int64, uint8 to uint64, "
                    "float16, float32, float64",
                    p->path, descr);
}

static sac_result parse_order(struct parser *p, struct header *h)
{
    if (accept(p, "True"))
        return SAC_FAIL(p->ctx, SAC_ERR_UNSUPPORTED,
                        "'%s': Fortran order; save it with numpy.ascontiguousarray", p->path);
    if (!accept(p, "False"))
        return bad(p, "no True or False as fortran_order");
    h->has_order = true;
    return SAC_OK;
}

static sac_result parse_dim(struct parser *p, struct header *h)
{
    int64_t value = 0;
    if (h->desc.rank == SAC_RANK_MAX)
        return SAC_FAIL(p->ctx, SAC_ERR_UNSUPPORTED, "'%s': more than %d dimensions", p->path,
                        (int)SAC_RANK_MAX);
    if (*p->at < '0' || *p->at > '9')
        return bad(p, "a shape that is not made of numbers");
    for (; *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *p->at - '0', &value))
            return bad(p, "a dimension over 64 bits");
    if (*p->at == 'L') /* Python 2 wrote long integers so */
        p->at++;
    h->desc.shape[h->desc.rank++] = value;
    return SAC_OK;
}

static sac_result parse_shape(struct parser *p, struct header *h)
{
    h->desc.rank = 0;
    if (!accept(p, "("))
        return bad(p, "a shape that is no tuple");
    while (!accept(p, ")")) {
        sac_result res = parse_dim(p, h);
        if (res != SAC_OK)
            return res;
        skip_space(p);
        if (!accept(p, ",") && *p->at != ')')
            return bad(p, "a shape that does not close");
    }
    h->has_shape = true;
    return SAC_OK;
}

static sac_result parse_entry(struct parser *p, struct header *h)
{
    char key[16];
    if (!parse_string(p, key, sizeof key) || !accept(p, ":"))
        return bad(p, "no keys");
    if (!strcmp(key, "descr"))
        return parse_descr(p, h);
    if (!strcmp(key, "fortran_order"))
        return parse_order(p, h);
    if (!strcmp(key, "shape"))
        return parse_shape(p, h);
    return bad(p, "a key that is none of descr, fortran_order, shape");
}

static sac_result parse_header(struct parser *p, struct header *h)
{
    if (!accept(p, "{"))
        return bad(p, "no dict");
    while (!accept(p, "}")) {
        sac_result res = parse_entry(p, h);
        if (res != SAC_OK)
            return res;
        skip_space(p);
        if (!accept(p, ",") && *p->at != '}')
            return bad(p, "a dict that does not close");
    }
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return bad(p, "not all of descr, fortran_order, shape");
    if (sac_tensor_desc_bytes(&h->desc) < 0)
        return bad(p, "a shape over 64 bits");
    return SAC_OK;
}

/* ---- reading ---- */

static sac_result truncated(sac_context *ctx, const char *path, FILE *file)
{
    if (ferror(file))
        return SAC_FAIL(ctx, SAC_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    return SAC_FAIL(ctx, SAC_ERR_FORMAT, "'%s': the file ends too early", path);
}

/* The length of the dict, by the version's own field. */
static sac_result read_preamble(sac_context *ctx, const char *path, FILE *file, size_t *length)
{
    unsigned char b[MAGIC_BYTES + 2 + 4];
    if (fread(b, 1, MAGIC_BYTES + 2, file) != MAGIC_BYTES + 2 || memcmp(b, magic, MAGIC_BYTES) != 0)
        return SAC_FAIL(ctx, SAC_ERR_FORMAT, "'%s': not a .npy file", path);
    int version = b[MAGIC_BYTES];
    if (version < 1 || version > 3)
        return SAC_FAIL(ctx, SAC_ERR_UNSUPPORTED, "'%s': .npy version %d; have 1 to 3", path,
                        version);
    size_t               size = version == 1 ? 2 : 4;
    const unsigned char *n = b + MAGIC_BYTES + 2;
    if (fread(b + MAGIC_BYTES + 2, 1, size, file) != size)
        return truncated(ctx, path, file);
    *length = n[0] | (size_t)n[1] << 8;
    if (size == 4)
        *length |= (size_t)n[2] << 16 | (size_t)n[3] << 24;
    if (*length > HEADER_BYTES_MAX)
        return SAC_FAIL(ctx, SAC_ERR_FORMAT,
                        "'%s': a .npy header of %zu bytes; up to %d make sense", path, *length,
                        (int)HEADER_BYTES_MAX);
    return SAC_OK;
}

static sac_result read_header(sac_context *ctx, const char *path, FILE *file, struct header *h)
{
    size_t     length = 0;
    sac_result res = read_preamble(ctx, path, file, &length);
    if (res != SAC_OK)
        return res;
    char *text = sac_calloc(length + 1, 1);
    if (!text)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "'%s': no memory for its header", path);
    struct parser p = {.ctx = ctx, .path = path, .at = text};
    if (fread(text, 1, length, file) != length)
        res = truncated(ctx, path, file);
    else
        res = parse_header(&p, h);
    sac_free(text);
    return res;
}

/* A header may claim anything: before memory is taken, ask whether the file is that long. */
static sac_result check_length(sac_context *ctx, const char *path, FILE *file, int64_t need)
{
    struct stat st;
    long        at = ftell(file);
    if (at < 0 || fstat(fileno(file), &st) != 0 || !S_ISREG(st.st_mode))
        return SAC_OK; /* a pipe: reading will tell */
    if ((int64_t)st.st_size - at < need)
        return SAC_FAIL(ctx, SAC_ERR_FORMAT,
                        "'%s': its header promises %" PRId64 " bytes of numbers, it has %" PRId64,
                        path, need, (int64_t)st.st_size - at);
    return SAC_OK;
}

sac_result sac_npy_read_header(sac_context *ctx, const char *path, FILE *file,
                               struct sac_tensor_desc *out, int64_t *offset)
{
    struct header h = {0};
    sac_result    res = read_header(ctx, path, file, &h);
    if (res == SAC_OK)
        res = check_length(ctx, path, file, sac_tensor_desc_bytes(&h.desc));
    if (res != SAC_OK)
        return res;
    *out = h.desc;
    *offset = ftell(file);
    return SAC_OK;
}

/* Into the tensor's memory where the host may write there, else through a host copy. */
static sac_result read_numbers(const char *path, FILE *file, sac_tensor *t)
{
    sac_device *dev = sac_tensor_device(t);
    size_t      bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(t));
    void       *host = dev->ops->host_memory ? sac_tensor_data(t) : sac_alloc(bytes);
    sac_result  res = SAC_OK;
    if (!host)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "'%s': no memory for %zu bytes", path, bytes);
    if (fread(host, 1, bytes, file) != bytes)
        res = truncated(dev->ctx, path, file);
    if (!dev->ops->host_memory) {
        if (res == SAC_OK)
            res = sac_tensor_upload(t, host);
        sac_free(host);
    }
    return res;
}

sac_result sac_tensor_load_npy(sac_device *dev, const char *path, sac_tensor **out)
{
    SAC_NEEDS(sac_device_context(dev), dev);
    SAC_NEEDS(sac_device_context(dev), path);
    SAC_NEEDS(sac_device_context(dev), out);
    struct sac_tensor_desc desc;
    int64_t                offset;
    sac_tensor            *t = NULL;
    FILE                  *file = fopen(path, "re");
    if (!file)
        return SAC_FAIL(dev->ctx, SAC_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    sac_result res = sac_npy_read_header(dev->ctx, path, file, &desc, &offset);
    if (res == SAC_OK)
        res = sac_tensor_create(dev, &desc, path, &t);
    if (res == SAC_OK)
        res = read_numbers(path, file, t);
    fclose(file);
    if (res == SAC_OK)
        *out = t;
    else
        sac_tensor_unref(&t);
    return res;
}

/* ---- writing ---- */

static const char *descr_of(enum sac_dtype dtype)
{
    for (size_t i = 0; i < SAC_COUNT(descrs); i++)
        if (descrs[i].dtype == dtype)
            return descrs[i].descr;
    return NULL; /* every dtype of a tensor has a row */
}

/* Version 1: rank 8 makes no header that needs more. */
static void write_header(FILE *file, const struct sac_tensor_desc *desc)
{
    char dict[320];
    int  n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      descr_of(desc->dtype));
    for (int i = 0; i < desc->rank; i++)
        n += snprintf(dict + n, sizeof dict - (size_t)n, "%s%" PRId64 "%s", i ? " " : "",
                      desc->shape[i], i + 1 < desc->rank || desc->rank == 1 ? "," : "");
    n += snprintf(dict + n, sizeof dict - (size_t)n, "), }");
    int pad = (ALIGN - (MAGIC_BYTES + 4 + n + 1) % ALIGN) % ALIGN;
    int length = n + pad + 1;
    fwrite(magic, 1, MAGIC_BYTES, file);
    fputc(1, file);
    fputc(0, file);
    fputc(length & 0xff, file);
    fputc(length >> 8, file);
    fprintf(file, "%s%*s\n", dict, pad, "");
}

static sac_result write_numbers(FILE *file, const char *path, const sac_tensor *t)
{
    sac_device *dev = sac_tensor_device(t);
    size_t      bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(t));
    if (dev->ops->host_memory) {
        fwrite(sac_tensor_data(t), 1, bytes, file);
        return SAC_OK;
    }
    void *host = sac_alloc(bytes);
    if (!host)
        return SAC_FAIL(dev->ctx, SAC_ERR_MEMORY, "'%s': no memory for %zu bytes", path, bytes);
    sac_result res = sac_tensor_download(t, host);
    if (res == SAC_OK)
        fwrite(host, 1, bytes, file);
    sac_free(host);
    return res;
}

sac_result sac_tensor_save_npy(const sac_tensor *t, const char *path)
{
    SAC_NEEDS(sac_device_context(sac_tensor_device(t)), t);
    SAC_NEEDS(sac_device_context(sac_tensor_device(t)), path);
    struct sac_outfile out;
    sac_result         res = sac_outfile_open(sac_tensor_device(t)->ctx, path, &out);
    if (res != SAC_OK)
        return res;
    write_header(out.file, sac_tensor_describe(t));
    res = write_numbers(out.file, path, t);
    if (res == SAC_OK)
        return sac_outfile_finish(&out);
    sac_outfile_abandon(&out);
    return res;
}
