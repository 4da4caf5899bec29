/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mask/rle.h"

/* Columns that are read together: a cache line of each row. */
enum { COLUMNS = 64 };

void sac_rle_finish(struct sac_rle *rle)
{
    sac_free(rle->runs);
    sac_free(rle->columns);
    sac_text_finish(&rle->text);
    *rle = (struct sac_rle){0};
}

static bool push(struct sac_rle *rle, uint64_t length)
{
    if (!sac_grow((void **)&rle->runs, &rle->capacity, rle->count + 1, sizeof *rle->runs))
        return false;
    rle->runs[rle->count++] = (uint32_t)length;
    rle->total += length;
    return true;
}

static sac_result no_memory(sac_context *ctx)
{
    return SAC_FAIL(ctx, SAC_ERR_MEMORY, "RLE: no memory");
}

/* ---- pixels to runs ---- */

/* The columns x0 to x1 of the picture, one after the other, 1 where they are inside. */
static void turn(const uint8_t *pixels, size_t pitch_bytes, int height, int x0, int x1,
                 uint8_t inside_min, uint8_t *columns)
{
    for (int y = 0; y < height; y++) {
        const uint8_t *row = pixels + (size_t)y * pitch_bytes;
        for (int x = x0; x < x1; x++)
            columns[(size_t)(x - x0) * (size_t)height + (size_t)y] = row[x] >= inside_min;
    }
}

/* The run under way. */
struct run {
    uint64_t length;
    uint8_t  inside;
};

static bool add_pixels(struct sac_rle *rle, struct run *run, uint64_t length, uint8_t inside)
{
    if (length == 0 || inside == run->inside) {
        run->length += length;
        return true;
    }
    if (!push(rle, run->length))
        return false;
    *run = (struct run){length, inside};
    return true;
}

static bool add_column(struct sac_rle *rle, struct run *run, const uint8_t *at, size_t length)
{
    const uint8_t *const last = at + length;
    bool                 ok = true;
    while (at < last && ok) {
        const uint8_t  inside = *at;
        const uint8_t *change = memchr(at, !inside, (size_t)(last - at));
        ok = add_pixels(rle, run, (uint64_t)((change ? change : last) - at), inside);
        at = change ? change : last;
    }
    return ok;
}

/* Columns x0 to x1 of the part, with what is above and below them. */
static bool add_columns(struct sac_rle *rle, struct run *run, const struct sac_rle_part *part,
                        int x0, int x1, uint8_t inside_min)
{
    const size_t   high = (size_t)part->height;
    const uint64_t above = (uint64_t)part->y,
                   below = (uint64_t)(rle->height - part->y - part->height);
    bool ok = true;
    turn(part->pixels, part->pitch_bytes, part->height, x0, x1, inside_min, rle->columns);
    if (above + below == 0)
        return add_column(rle, run, rle->columns, (size_t)(x1 - x0) * high);
    for (int x = 0; x < x1 - x0 && ok; x++)
        ok = add_pixels(rle, run, above, 0) &&
             add_column(rle, run, rle->columns + (size_t)x * high, high) &&
             add_pixels(rle, run, below, 0);
    return ok;
}

sac_result sac_rle_encode_part(sac_context *ctx, const struct sac_rle_part *part, int width,
                               int height, uint8_t inside_min, struct sac_rle *rle)
{
    struct run run = {0, 0};
    sac_result res = sac_rle_begin(ctx, width, height, rle);
    if (res != SAC_OK)
        return res;
    if (!sac_grow((void **)&rle->columns, &rle->columns_bytes,
                  (size_t)COLUMNS * (size_t)part->height, 1))
        return no_memory(ctx);
    bool ok = add_pixels(rle, &run, (uint64_t)part->x * (uint64_t)height, 0);
    for (int x = 0; x < part->width && ok; x += COLUMNS)
        ok = add_columns(rle, &run, part, x, SAC_MIN(x + COLUMNS, part->width), inside_min);
    const uint64_t right = (uint64_t)(width - part->x - part->width);
    ok = ok && add_pixels(rle, &run, right * (uint64_t)height, 0);
    return ok && push(rle, run.length) ? SAC_OK : no_memory(ctx);
}

sac_result sac_rle_encode(sac_context *ctx, const uint8_t *pixels, size_t pitch_bytes, int width,
                          int height, uint8_t inside_min, struct sac_rle *rle)
{
    const struct sac_rle_part all = {pixels, pitch_bytes, 0, 0, width, height};
    return sac_rle_encode_part(ctx, &all, width, height, inside_min, rle);
}

/* ---- runs to text and back ---- */

/* Characters from '0' on hold five bits each, the lowest first, and a sixth that says that more
 * follow; the last one's highest bit is the sign. */
static void add_number(struct sac_text *text, int64_t value)
{
    char   letters[9];
    size_t n = 0;
    bool   more = true;
    while (more) {
        unsigned bits = (unsigned)((uint64_t)value & 0x1f);
        value = value < 0 ? -1 - ((-1 - value) >> 5) : value >> 5; /* rounds down on every machine
                                                                    */
        more = bits & 0x10 ? value != -1 : value != 0;
        letters[n++] = (char)('0' + (bits | (more ? 0x20 : 0)));
    }
    letters[n] = '\0';
    sac_text_add(text, letters);
}

void sac_rle_json(struct sac_rle *rle, struct sac_json *json, const char *key)
{
    struct sac_text *text = &rle->text;
    sac_text_clear(text);
    for (size_t i = 0; i < rle->count; i++)
        add_number(text, (int64_t)rle->runs[i] - (i > 2 ? (int64_t)rle->runs[i - 2] : 0));
    bool ended = sac_grow((void **)&text->data, &text->capacity, text->length + 1, 1);
    if (!ended || text->failed) {
        json->text->failed = true;
        return;
    }
    text->data[text->length] = '\0';
    sac_json_open(json, key, '{');
    sac_json_open(json, "size", '[');
    sac_json_int(json, NULL, rle->height);
    sac_json_int(json, NULL, rle->width);
    sac_json_close(json, ']');
    sac_json_string(json, "counts", text->data); /* of the characters, JSON escapes the \ */
    sac_json_close(json, '}');
}

sac_result sac_rle_begin(sac_context *ctx, double width, double height, struct sac_rle *rle)
{
    if (!(width >= 1 && width <= SAC_RLE_SIDE_MAX && height >= 1 && height <= SAC_RLE_SIDE_MAX))
        return SAC_FAIL(ctx, SAC_ERR_LIMIT, "RLE of a mask of %g x %g pixels; 1 to %d are possible",
                        width, height, SAC_RLE_SIDE_MAX);
    rle->width = (int)width;
    rle->height = (int)height;
    rle->count = 0;
    rle->total = 0;
    return SAC_OK;
}

static uint64_t pixels_of(const struct sac_rle *rle)
{
    return (uint64_t)rle->width * (uint64_t)rle->height;
}

sac_result sac_rle_add_run(sac_context *ctx, struct sac_rle *rle, double length)
{
    double left = (double)(pixels_of(rle) - rle->total);
    if (!(length >= 0 && length <= left) || length != (double)(uint64_t)length)
        return SAC_FAIL(ctx, SAC_ERR_FORMAT,
                        "RLE: run %zu is %.15g pixels long, and %.15g are left", rle->count, length,
                        left);
    return push(rle, (uint64_t)length) ? SAC_OK : no_memory(ctx);
}

sac_result sac_rle_add_text(sac_context *ctx, struct sac_rle *rle, const char *text, size_t length)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < length && res == SAC_OK;) {
        int64_t  value = 0;
        unsigned bits = 0x20;
        int      shift = 0;
        for (; bits & 0x20; shift += 5) {
            bits = i < length ? (unsigned)(unsigned char)text[i++] - '0' : 0x40;
            if (bits > 0x3f || shift > 30)
                return SAC_FAIL(ctx, SAC_ERR_FORMAT,
                                "RLE: run %zu is no number of COCO's text form", rle->count);
            value |= (int64_t)(bits & 0x1f) << shift;
        }
        if (bits & 0x10)
            value -= (int64_t)1 << shift;
        if (rle->count > 2)
            value += (int64_t)rle->runs[rle->count - 2];
        res = sac_rle_add_run(ctx, rle, (double)value);
    }
    return res;
}

sac_result sac_rle_check(sac_context *ctx, const struct sac_rle *rle)
{
    if (rle->total == pixels_of(rle))
        return SAC_OK;
    return SAC_FAIL(ctx, SAC_ERR_FORMAT, "RLE of %llu pixels for a mask of %d x %d",
                    (unsigned long long)rle->total, rle->width, rle->height);
}

/* ---- runs to pixels ---- */

void sac_rle_draw(const struct sac_rle *rle, uint8_t value, uint8_t *pixels, size_t pitch_bytes)
{
    size_t x = 0, y = 0, height = (size_t)rle->height;
    for (size_t i = 0; i < rle->count; i++) {
        size_t length = rle->runs[i];
        while (i % 2 == 1 && length > 0) {
            size_t n = SAC_MIN(length, height - y);
            for (size_t end = y + n; y < end; y++)
                pixels[y * pitch_bytes + x] = value;
            length -= n;
            if (y == height) {
                y = 0;
                x++;
            }
        }
        x += (y + length) / height;
        y = (y + length) % height;
    }
}

uint64_t sac_rle_area(const struct sac_rle *rle)
{
    uint64_t area = 0;
    for (size_t i = 1; i < rle->count; i += 2)
        area += rle->runs[i];
    return area;
}
