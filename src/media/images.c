/* SPDX-License-Identifier: Apache-2.0 */
/* Packets from single images: a folder, a printf pattern, one file. We list the files ourselves:
 * libavformat's image reader stops at the first missing number and takes one codec for all. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "media/media.h"

static const char *const endings[] = {"jpg", "jpeg", "png", "bmp", "webp",
                                      "tif", "tiff", "ppm", "pgm"};

/* A file's ending is often wrong; its first bytes are not. */
static const struct {
    const char    *magic;
    size_t         offset, length;
    enum AVCodecID codec;
} signatures[] = {
    {"\xff\xd8\xff", 0, 3, AV_CODEC_ID_MJPEG},
    {"\x89PNG", 0, 4, AV_CODEC_ID_PNG},
    {"BM", 0, 2, AV_CODEC_ID_BMP},
    {"WEBP", 8, 4, AV_CODEC_ID_WEBP},
    {"II*\0", 0, 4, AV_CODEC_ID_TIFF},
    {"MM\0*", 0, 4, AV_CODEC_ID_TIFF},
    {"P6", 0, 2, AV_CODEC_ID_PPM},
    {"P3", 0, 2, AV_CODEC_ID_PPM},
    {"P5", 0, 2, AV_CODEC_ID_PGM},
    {"P2", 0, 2, AV_CODEC_ID_PGM},
};

enum { FILE_BYTES_MAX = 1 << 30 };

struct state {
    struct sac_arena arena; /* holds the paths */
    char           **paths; /* [count] in playing order */
    size_t           count, capacity, next;
};

/* ---- names ---- */

static bool has_ending(const char *path, const char *const *list, size_t count)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < count; i++)
        if (strcasecmp(dot + 1, list[i]) == 0)
            return true;
    return false;
}

int sac_name_is_picture(const char *path)
{
    return path && has_ending(path, endings, SAC_COUNT(endings));
}

int sac_name_is_video(const char *path)
{
    static const char *const videos[] = {
        "mp4",  "m4v", "mov",  "mkv", "webm", "avi",  "ts",  "m2ts", "mts",   "mpg",
        "mpeg", "vob", "flv",  "wmv", "asf",  "3gp",  "3g2", "ogv",  "mxf",   "y4m",
        "ivf",  "264", "h264", "265", "h265", "hevc", "nut", "dav",  "mjpeg", "mjpg",
    };
    return path && has_ending(path, videos, SAC_COUNT(videos));
}

/* Order as people count: runs of digits by their value, so that img10 comes after img9. */
static int compare_natural(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
            int    order = na != nb ? (na < nb ? -1 : 1) : strncmp(a, b, na);
            if (order)
                return order;
            a += na;
            b += nb;
        } else if (*a != *b) {
            break;
        } else {
            a++;
            b++;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static int compare_paths(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int         order = compare_natural(x, y);
    return order ? order : strcmp(x, y); /* 1.png and 01.png: still one order */
}

/* A printf pattern has one %d, %5d or %05d in the file's name. */
struct pattern {
    char folder[4096], prefix[256], suffix[256];
    int  digits_min;
};

static bool parse_pattern(const char *url, struct pattern *out)
{
    const char *slash = strrchr(url, '/');
    const char *name = slash ? slash + 1 : url;
    const char *percent = strchr(name, '%');
    if (!percent)
        return false;
    const char *digits = percent + 1;
    const char *d = digits + strspn(digits, "0123456789");
    if (*d != 'd' || strchr(d, '%'))
        return false;
    out->digits_min = d > digits ? atoi(digits) : 1;
    snprintf(out->folder, sizeof out->folder, "%.*s", slash ? (int)(slash - url) : 1,
             slash ? url : ".");
    snprintf(out->prefix, sizeof out->prefix, "%.*s", (int)(percent - name), name);
    snprintf(out->suffix, sizeof out->suffix, "%s", d + 1);
    return true;
}

static bool matches(const struct pattern *p, const char *name)
{
    size_t prefix = strlen(p->prefix);
    if (strncmp(name, p->prefix, prefix) != 0)
        return false;
    size_t digits = strspn(name + prefix, "0123456789");
    return digits > 0 && digits >= (size_t)p->digits_min &&
           strcmp(name + prefix + digits, p->suffix) == 0;
}

/* ---- listing ---- */

static sac_result add_path(struct sac_input *in, const char *folder, const char *name)
{
    struct state *st = in->state;
    char          path[8192];
    int           len = folder ? snprintf(path, sizeof path, "%s/%s", folder, name)
                               : snprintf(path, sizeof path, "%s", name);
    char         *copy = NULL;
    if (len > 0 && (size_t)len < sizeof path &&
        sac_grow((void **)&st->paths, &st->capacity, st->count + 1, sizeof *st->paths))
        copy = sac_arena_strndup(&st->arena, path, (size_t)len);
    if (!copy)
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory for the list of images", in->name);
    st->paths[st->count++] = copy;
    return SAC_OK;
}

/* pattern NULL: all images of the folder. */
static sac_result list_folder(struct sac_input *in, const char *folder,
                              const struct pattern *pattern)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return SAC_FAIL(in->ctx, SAC_ERR_IO, "%s: %s", in->name, strerror(errno));
    sac_result     res = SAC_OK;
    struct dirent *entry;
    while (res == SAC_OK && (entry = readdir(dir))) {
        bool wanted = pattern ? matches(pattern, entry->d_name)
                              : entry->d_name[0] != '.' && sac_name_is_picture(entry->d_name);
        if (wanted)
            res = add_path(in, folder, entry->d_name);
    }
    closedir(dir);
    return res;
}

static sac_result list_given(struct sac_input *in)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < in->params->picture_count && res == SAC_OK; i++)
        res = add_path(in, NULL, in->params->pictures[i]);
    return res;
}

static sac_result list_images(struct sac_input *in)
{
    struct state  *st = in->state;
    struct stat    about;
    struct pattern pattern;
    sac_result     res;
    bool           exists = stat(in->url, &about) == 0;
    if (in->params->picture_count > 0)
        return list_given(in);
    if (exists && S_ISDIR(about.st_mode))
        res = list_folder(in, in->url, NULL);
    else if (!exists && parse_pattern(in->url, &pattern))
        res = list_folder(in, pattern.folder, &pattern);
    else
        res = add_path(in, NULL, in->url);
    if (res != SAC_OK)
        return res;
    if (st->count == 0)
        return SAC_FAIL(in->ctx, SAC_ERR_FORMAT,
                        exists ? "%s: no image in this folder (jpg, png, bmp, ...)"
                               : "%s: no file fits this pattern",
                        in->name);
    qsort(st->paths, st->count, sizeof *st->paths, compare_paths);
    return SAC_OK;
}

static bool claims(const char *url)
{
    struct stat    about;
    struct pattern pattern;
    if (strstr(url, "://") || strcmp(url, "-") == 0)
        return false;
    if (stat(url, &about) == 0)
        return S_ISDIR(about.st_mode) || (S_ISREG(about.st_mode) && sac_name_is_picture(url));
    return parse_pattern(url, &pattern);
}

/* ---- packets ---- */

static enum AVCodecID codec_of(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < SAC_COUNT(signatures); i++)
        if (size >= signatures[i].offset + signatures[i].length &&
            memcmp(bytes + signatures[i].offset, signatures[i].magic, signatures[i].length) == 0)
            return signatures[i].codec;
    return AV_CODEC_ID_NONE;
}

static sac_result load(struct sac_input *in, const char *path, AVPacket *packet)
{
    struct stat about;
    sac_result  res = SAC_OK;
    FILE       *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &about) != 0 || !S_ISREG(about.st_mode))
        res = SAC_FAIL(in->ctx, SAC_ERR_IO, "%s: %s", path,
                       file ? "not a regular file" : strerror(errno));
    else if (about.st_size > FILE_BYTES_MAX)
        res = SAC_FAIL(in->ctx, SAC_ERR_UNSUPPORTED, "%s: larger than %d bytes", path,
                       FILE_BYTES_MAX);
    else if (av_new_packet(packet, (int)about.st_size) < 0)
        res = SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", path);
    else
        av_shrink_packet(packet, (int)fread(packet->data, 1, (size_t)about.st_size, file));
    if (file)
        fclose(file);
    return res;
}

static sac_result read_image(struct sac_input *in, AVPacket *packet, int *kept)
{
    struct state *st = in->state;
    const size_t  step = (size_t)SAC_MAX(in->params->every, 1);
    while (st->next < st->count) {
        if (atomic_load(in->cancelled))
            return SAC_FAIL(in->ctx, SAC_ERR_CANCELLED, "%s: reading was cancelled", in->name);
        size_t     index = st->next;
        sac_result res = load(in, st->paths[index], packet);
        st->next += step;
        if (res != SAC_OK)
            return res;
        enum AVCodecID codec = codec_of(packet->data, (size_t)packet->size);
        if (codec == AV_CODEC_ID_NONE) {
            in->corrupt++;
            av_packet_unref(packet);
            continue;
        }
        if (codec != in->video->codec_id) {
            in->video->codec_id = codec;
            in->generation++;
        }
        packet->pts = packet->dts = (int64_t)index;
        packet->duration = 1;
        packet->flags |= AV_PKT_FLAG_KEY;
        *kept = -1;
        return SAC_OK;
    }
    return SAC_EOS;
}

/* The first readable image gives size and pixel format, as a container's header does. */
static sac_result describe(struct sac_input *in)
{
    struct state *st = in->state;
    AVPacket     *packet = av_packet_alloc();
    int           kept;
    if (!packet)
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    sac_result res = read_image(in, packet, &kept);
    av_packet_free(&packet);
    if (res == SAC_EOS)
        return SAC_FAIL(in->ctx, SAC_ERR_FORMAT, "%s: no image in it that can be read", in->name);
    st->next = 0;
    in->corrupt = 0;
    in->generation = 0;
    return res;
}

static sac_result open_images(struct sac_input *in)
{
    struct state *st = sac_new(struct state);
    if (!st)
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    in->state = st;
    sac_result res = list_images(in);
    if (res != SAC_OK)
        return res;
    in->video->codec_type = AVMEDIA_TYPE_VIDEO;
    in->fps = in->average = av_d2q(in->params->fps, 100000);
    in->time_base = av_inv_q(in->fps);
    in->frames = (int64_t)st->count;
    in->duration_us = av_rescale_q(in->frames, in->time_base, AV_TIME_BASE_Q);
    in->numbered = in->seekable = true;
    snprintf(in->container, sizeof in->container, "images");
    return describe(in);
}

static bool seek_image(struct sac_input *in, int64_t ts)
{
    struct state *st = in->state;
    st->next = (size_t)SAC_MIN(ts, (int64_t)st->count);
    return true;
}

static void close_images(struct sac_input *in)
{
    struct state *st = in->state;
    if (!st)
        return;
    sac_arena_finish(&st->arena);
    sac_free(st->paths);
    sac_free(st);
    in->state = NULL;
}

static const char *file_of_images(const struct sac_input *in, size_t i)
{
    const struct state *st = in->state;
    return i < st->count ? st->paths[i] : NULL;
}

const struct sac_input_ops sac_input_images = {
    .name = "images",
    .claims = claims,
    .open = open_images,
    .read = read_image,
    .seek = seek_image,
    .close = close_images,
    .file = file_of_images,
};
