/* SPDX-License-Identifier: Apache-2.0 */
/* Packets from an array of frames in a .npy file, [frames,height,width,3] R, G and B or
 * [frames,height,width] grey, uint8. The file is mapped: a packet is a piece of the mapping, and so
 * is the frame of colours that libavcodec's rawvideo makes of it: on a CPU no pixel is copied. Left
 * out (SACCADE_WITHOUT=mmap), the whole file is read into memory first, as NumPy's load does. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/npy.h"
#include "media/media.h"

enum { SIDE_MAX = 32768 /* a frame's limit */ };

/* Those who read the last row may read some bytes beyond it: an empty page follows the file's. */
struct mapping {
    uint8_t *bytes;
    size_t   size; /* with that page */
    size_t   page, frame_bytes;
    bool     copied; /* the file was read: what is given back is lost */
};

struct state {
    AVBufferRef *mapping; /* a struct mapping; packets hold it too */
    uint8_t     *first;   /* frame */
    int64_t      count, next;
};

static bool claims(const char *url)
{
    struct stat about;
    const char *dot = strrchr(url, '.');
    return dot && strcasecmp(dot, ".npy") == 0 && !strstr(url, "://") && stat(url, &about) == 0 &&
           S_ISREG(about.st_mode);
}

/* ---- the mapping ---- */

static sac_result read_whole(struct sac_input *in, FILE *file, uint8_t *out, size_t size)
{
    if (fseek(file, 0, SEEK_SET) != 0 || fread(out, 1, size, file) != size)
        return SAC_FAIL(in->ctx, SAC_ERR_IO, "cannot read '%s': %s", in->name,
                        ferror(file) ? strerror(errno) : "it became shorter");
    return SAC_OK;
}

static void unmap(void *user, uint8_t *data)
{
    struct mapping *m = (void *)data;
    (void)user;
    if (m->bytes)
        munmap(m->bytes, m->size);
    sac_free(m);
}

static sac_result map(struct sac_input *in, FILE *file)
{
    struct state   *st = in->state;
    struct stat     about;
    struct mapping *m = sac_new(struct mapping);
    if (m && !(st->mapping = av_buffer_create((void *)m, sizeof *m, unmap, NULL, 0)))
        sac_free(m);
    if (!st->mapping)
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    if (fstat(fileno(file), &about) != 0)
        return SAC_FAIL(in->ctx, SAC_ERR_IO, "%s: %s", in->name, strerror(errno));
    m->page = (size_t)sysconf(_SC_PAGESIZE);
    m->size = ((size_t)about.st_size + m->page - 1) / m->page * m->page + m->page;
    m->copied = in->unmapped;
    void *room = mmap(NULL, m->size, m->copied ? PROT_READ | PROT_WRITE : PROT_READ,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    m->bytes = room != MAP_FAILED ? room : NULL;
    if (m->bytes && m->copied)
        return read_whole(in, file, m->bytes, (size_t)about.st_size);
    if (!m->bytes || mmap(room, (size_t)about.st_size, PROT_READ, MAP_PRIVATE | MAP_FIXED,
                          fileno(file), 0) == MAP_FAILED)
        return SAC_FAIL(in->ctx, SAC_ERR_IO, "cannot map '%s': %s", in->name, strerror(errno));
    return SAC_OK;
}

/* A frame is done with: its pages need not count as this process's memory any more. Those that
 * others still use come back from the system's cache. */
static void release_frame(void *user, uint8_t *data)
{
    AVBufferRef          *mapping = user;
    const struct mapping *m = (void *)mapping->data;
    uint8_t              *page = data - (size_t)(data - m->bytes) % m->page;
    if (!m->copied)
        (void)madvise(page, (size_t)(data + m->frame_bytes - page), MADV_DONTNEED);
    av_buffer_unref(&mapping);
}

/* ---- what is in it ---- */

static const char *shape_text(const struct sac_tensor_desc *d, char *text, size_t size)
{
    int n = snprintf(text, size, "[");
    for (int i = 0; i < d->rank; i++)
        n += snprintf(text + n, size - (size_t)n, "%s%lld", i ? "," : "", (long long)d->shape[i]);
    snprintf(text + n, size - (size_t)n, "]");
    return text;
}

/* [height,width,3] is one picture, and no row of so many pixels. */
static bool is_frames(const struct sac_tensor_desc *d)
{
    return (d->rank == 4 && d->shape[3] == 3) || (d->rank == 3 && d->shape[2] > 4);
}

static sac_result check(struct sac_input *in, const struct sac_tensor_desc *d)
{
    char text[24 * SAC_RANK_MAX + 3];
    if (d->dtype != SAC_U8)
        return SAC_FAIL(in->ctx, SAC_ERR_UNSUPPORTED, "%s: an array of %s; frames are of uint8",
                        in->name, sac_dtype_name(d->dtype));
    if (!is_frames(d))
        return SAC_FAIL(in->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: an array %s; frames are [frames,height,width,3] (R, G, B) or "
                        "[frames,height,width] (grey)",
                        in->name, shape_text(d, text, sizeof text));
    if (d->shape[0] < 1 || d->shape[1] < 1 || d->shape[2] < 1 || d->shape[1] > SIDE_MAX ||
        d->shape[2] > SIDE_MAX ||
        d->shape[1] * d->shape[2] > INT_MAX / 3 - AV_INPUT_BUFFER_PADDING_SIZE)
        return SAC_FAIL(in->ctx, SAC_ERR_UNSUPPORTED,
                        "%s: an array %s; one frame at least, and sides of 1 to %d pixels are read",
                        in->name, shape_text(d, text, sizeof text), (int)SIDE_MAX);
    return SAC_OK;
}

static void describe(struct sac_input *in, const struct sac_tensor_desc *d, int64_t offset)
{
    struct state   *st = in->state;
    struct mapping *m = (void *)st->mapping->data;
    st->count = d->shape[0];
    st->first = m->bytes + offset;
    m->frame_bytes = (size_t)(sac_tensor_desc_bytes(d) / st->count);
    in->video->codec_type = AVMEDIA_TYPE_VIDEO;
    in->video->codec_id = AV_CODEC_ID_RAWVIDEO;
    in->video->format = d->rank == 4 ? AV_PIX_FMT_RGB24 : AV_PIX_FMT_GRAY8;
    in->video->width = (int)d->shape[2];
    in->video->height = (int)d->shape[1];
    in->video->color_range = AVCOL_RANGE_JPEG;
    in->fps = in->average = av_d2q(in->params->fps, 100000);
    in->time_base = av_inv_q(in->fps);
    in->frames = st->count;
    in->duration_us = av_rescale_q(in->frames, in->time_base, AV_TIME_BASE_Q);
    in->numbered = in->seekable = true;
    snprintf(in->container, sizeof in->container, "npy");
}

static sac_result open_file(struct sac_input *in, FILE *file)
{
    struct sac_tensor_desc desc;
    int64_t                offset;
    sac_result             res = sac_npy_read_header(in->ctx, in->name, file, &desc, &offset);
    if (res == SAC_OK)
        res = check(in, &desc);
    if (res == SAC_OK)
        res = map(in, file);
    if (res == SAC_OK)
        describe(in, &desc, offset);
    return res;
}

static sac_result open_array(struct sac_input *in)
{
    FILE *file = fopen(in->url, "re");
    if (!file)
        return SAC_FAIL(in->ctx, SAC_ERR_IO, "%s: %s", in->name, strerror(errno));
    in->state = sac_new(struct state);
    sac_result res = in->state ? open_file(in, file)
                               : SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    fclose(file);
    return res;
}

static void close_array(struct sac_input *in)
{
    struct state *st = in->state;
    if (st)
        av_buffer_unref(&st->mapping);
    sac_free(st);
    in->state = NULL;
}

/* ---- packets ---- */

static sac_result read_frame(struct sac_input *in, AVPacket *packet, int *kept)
{
    struct state *st = in->state;
    if (st->next >= st->count)
        return SAC_EOS;
    if (atomic_load(in->cancelled))
        return SAC_FAIL(in->ctx, SAC_ERR_CANCELLED, "%s: reading was cancelled", in->name);
    const size_t bytes = ((const struct mapping *)(void *)st->mapping->data)->frame_bytes;
    uint8_t     *data = st->first + (size_t)st->next * bytes;
    AVBufferRef *mapping = av_buffer_ref(st->mapping);
    if (mapping)
        packet->buf =
            av_buffer_create(data, bytes, release_frame, mapping, AV_BUFFER_FLAG_READONLY);
    if (!packet->buf) {
        av_buffer_unref(&mapping);
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    }
    packet->data = data;
    packet->size = (int)bytes;
    packet->pts = packet->dts = st->next;
    packet->duration = 1;
    packet->flags |= AV_PKT_FLAG_KEY;
    st->next += SAC_MAX(in->params->every, 1);
    *kept = -1;
    return SAC_OK;
}

static bool seek_frame(struct sac_input *in, int64_t ts)
{
    struct state *st = in->state;
    st->next = SAC_MIN(ts, st->count);
    return true;
}

static const char *file_of_array(const struct sac_input *in, size_t i)
{
    return i == 0 ? in->url : NULL;
}

const struct sac_input_ops sac_input_array = {
    .name = "array",
    .claims = claims,
    .open = open_array,
    .read = read_frame,
    .seek = seek_frame,
    .close = close_array,
    .file = file_of_array,
};
