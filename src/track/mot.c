/* SPDX-License-Identifier: Apache-2.0 */
/* One box per line: frame, id, x, y, w, h, conf, class, visibility, and whatever a benchmark adds.
 * Fields are separated by commas or blanks; only the first six must be there. */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "track/mot.h"

/* ---- text ---- */

struct text {
    sac_context *ctx;
    const char  *name;
    const char  *at, *end; /* *end is NUL */
    int          line;     /* of `at`, from 1 */
};

static struct text open_text(sac_context *ctx, const char *name, const char *text, size_t size)
{
    struct text t = {.ctx = ctx, .name = name, .at = text, .end = text + size, .line = 1};
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark */
        t.at += 3;
    return t;
}

static bool at_line_end(const struct text *t)
{
    return t->at == t->end || *t->at == '\n';
}

static void skip_blanks(struct text *t)
{
    while (!at_line_end(t) && (*t->at == ' ' || *t->at == '\t' || *t->at == '\r'))
        t->at++;
}

static void next_line(struct text *t)
{
    const char *end = memchr(t->at, '\n', (size_t)(t->end - t->at));
    t->at = end ? end + 1 : t->end;
    t->line++;
}

/* The text at a position, shortened and made printable for a message. */
struct quote {
    char text[24];
};

static struct quote quote_from(const struct text *t, const char *at)
{
    struct quote q;
    size_t       n = 0;
    for (const char *c = at;
         c < t->end && *c != '\n' && *c != '\r' && *c != ',' && n + 1 < sizeof q.text; c++)
        q.text[n++] = *c >= ' ' && *c < 127 ? *c : '?';
    q.text[n] = '\0';
    return q;
}

/* Plain decimals, as files have them: up to 15 digits are exact in a double and so is a power of
 * ten up to 22, so their quotient is the double next to the number, as strtod has it, ten times as
 * fast. */
static bool read_plain(const char *at, const char **stop, double *out)
{
    static const double power[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const bool          minus = *at == '-';
    uint64_t            digits = 0;
    int                 count = 0, decimals = 0;
    at += *at == '-' || *at == '+';
    for (; *at >= '0' && *at <= '9' && count <= 15; at++, count++)
        digits = digits * 10 + (uint64_t)(*at - '0');
    if (*at == '.')
        for (at++; *at >= '0' && *at <= '9' && count <= 15; at++, count++, decimals++)
            digits = digits * 10 + (uint64_t)(*at - '0');
    const bool ends =
        *at == ',' || *at == '\n' || *at == '\r' || *at == ' ' || *at == '\t' || *at == '\0';
    if (count == 0 || count > 15 || !ends)
        return false;
    *out = (double)digits / power[decimals];
    *out = minus ? -*out : *out;
    *stop = at;
    return true;
}

/* Left to itself strtod would walk on over the end of the line and take "nan" and "inf". */
static bool read_number(struct text *t, double *out)
{
    if (at_line_end(t))
        return false;
    if (read_plain(t->at, &t->at, out))
        return true;
    if (!strchr("+-.0123456789", *t->at) || *t->at == '\0')
        return false;
    char  *stop;
    double value = strtod(t->at, &stop);
    if (stop == t->at || !isfinite(value))
        return false;
    t->at = stop;
    *out = value;
    return true;
}

/* A program that has set a locale may write 0,5 for a half; the files never do. */
struct number_locale {
    locale_t plain, former;
};

static bool number_locale_enter(struct number_locale *l)
{
    l->plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!l->plain)
        return false;
    l->former = uselocale(l->plain);
    return true;
}

static void number_locale_leave(struct number_locale *l)
{
    uselocale(l->former);
    freelocale(l->plain);
}

/* ---- boxes ---- */

enum {
    FIELD_FRAME,
    FIELD_ID,
    FIELD_X,
    FIELD_Y,
    FIELD_W,
    FIELD_H,
    FIELD_CONF,
    FIELD_CLASS,
    FIELD_VISIBILITY,
    FIELD_COUNT
};
enum { FIELDS_NEEDED = FIELD_CONF };

static const char *const field_names[FIELD_COUNT] = {
    "frame", "id", "x", "y", "width", "height", "confidence", "class", "visibility"};

/* Reads a line's fields into v; missing ones keep their value. */
static sac_result read_fields(struct text *t, double v[FIELD_COUNT])
{
    for (int i = 0; i < FIELD_COUNT; i++) {
        skip_blanks(t);
        if (at_line_end(t) && i >= FIELDS_NEEDED)
            return SAC_OK;
        if (at_line_end(t))
            return SAC_FAIL(t->ctx, SAC_ERR_FORMAT,
                            "%s:%d: the line ends before field %d (%s); it needs "
                            "frame,id,x,y,width,height",
                            t->name, t->line, i + 1, field_names[i]);
        const char *begin = t->at;
        if (i == 0 && *begin == '{')
            return SAC_FAIL(
                t->ctx, SAC_ERR_FORMAT,
                "%s:%d: JSON lines, where MOTChallenge's are read, such as --mot writes", t->name,
                t->line);
        if (!read_number(t, &v[i]))
            return SAC_FAIL(t->ctx, SAC_ERR_FORMAT, "%s:%d: field %d (%s) is '%s', not a number",
                            t->name, t->line, i + 1, field_names[i], quote_from(t, begin).text);
        const char *stop = t->at;
        skip_blanks(t);
        if (!at_line_end(t) && *t->at == ',')
            t->at++;
        else if (!at_line_end(t) && t->at == stop)
            return SAC_FAIL(t->ctx, SAC_ERR_FORMAT, "%s:%d: field %d (%s) is '%s', not a number",
                            t->name, t->line, i + 1, field_names[i], quote_from(t, begin).text);
    }
    return SAC_OK;
}

static sac_result read_row(struct text *t, struct sac_mot_row *row)
{
    double     v[FIELD_COUNT] = {[FIELD_CONF] = 1, [FIELD_CLASS] = -1, [FIELD_VISIBILITY] = 1};
    sac_result res = read_fields(t, v);
    if (res != SAC_OK)
        return res;
    if (v[FIELD_FRAME] < 1 || v[FIELD_FRAME] > SAC_MOT_FRAME_MAX ||
        v[FIELD_FRAME] != floor(v[FIELD_FRAME]))
        return SAC_FAIL(t->ctx, SAC_ERR_FORMAT,
                        "%s:%d: frame is %g; frames are whole numbers from 1 to %d", t->name,
                        t->line, v[FIELD_FRAME], SAC_MOT_FRAME_MAX);
    if (fabs(v[FIELD_ID]) > INT_MAX || v[FIELD_ID] != floor(v[FIELD_ID]))
        return SAC_FAIL(t->ctx, SAC_ERR_FORMAT, "%s:%d: id is %g; ids are whole numbers up to %d",
                        t->name, t->line, v[FIELD_ID], INT_MAX);
    skip_blanks(t);
    if (!at_line_end(t)) { /* ten columns: MOT15's, where the last three are a place in the world */
        v[FIELD_CLASS] = -1;
        v[FIELD_VISIBILITY] = 1;
    }
    *row = (struct sac_mot_row){.frame = (int)v[FIELD_FRAME],
                                .id = (int)v[FIELD_ID],
                                .x = v[FIELD_X],
                                .y = v[FIELD_Y],
                                .w = v[FIELD_W],
                                .h = v[FIELD_H],
                                .conf = (float)v[FIELD_CONF],
                                .class_id = (int)SAC_CLAMP(v[FIELD_CLASS], INT_MIN, INT_MAX),
                                .visibility = (float)v[FIELD_VISIBILITY]};
    return SAC_OK;
}

static void merge(const struct sac_mot_row *from, size_t n, size_t half, struct sac_mot_row *to)
{
    size_t a = 0, b = half;
    for (size_t k = 0; k < n; k++)
        to[k] = a < half && (b == n || from[a].frame <= from[b].frame) ? from[a++] : from[b++];
}

/* Merge sort by frame, because it keeps the order within a frame. */
static bool sort_by_frame(struct sac_mot_row **rows, size_t n)
{
    struct sac_mot_row *spare = sac_realloc_array(NULL, n, sizeof *spare);
    if (!spare)
        return false;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t len = SAC_MIN(2 * width, n - i);
            merge(*rows + i, len, SAC_MIN(width, len), spare + i);
        }
        struct sac_mot_row *sorted = spare;
        spare = *rows;
        *rows = sorted;
    }
    sac_free(spare);
    return true;
}

static sac_result parse_rows(struct text *t, struct sac_mot_file *file)
{
    size_t capacity = 0;
    bool   sorted = true;
    for (; t->at < t->end; next_line(t)) {
        skip_blanks(t);
        if (at_line_end(t))
            continue;
        struct sac_mot_row row;
        sac_result         res = read_row(t, &row);
        if (res != SAC_OK)
            return res;
        if (!sac_grow((void **)&file->rows, &capacity, file->count + 1, sizeof row))
            return SAC_FAIL(t->ctx, SAC_ERR_MEMORY, "%s: no memory for its rows", t->name);
        sorted = sorted && row.frame >= file->frame_max;
        file->frame_max = SAC_MAX(file->frame_max, row.frame);
        file->rows[file->count++] = row;
    }
    if (!sorted && !sort_by_frame(&file->rows, file->count))
        return SAC_FAIL(t->ctx, SAC_ERR_MEMORY, "%s: no memory for its rows", t->name);
    return SAC_OK;
}

sac_result sac_mot_parse(sac_context *ctx, const char *name, const char *text, size_t size,
                         struct sac_mot_file *out)
{
    struct sac_mot_file  file = {0};
    struct text          t = open_text(ctx, name, text, size);
    struct number_locale locale;
    if (!number_locale_enter(&locale))
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for reading it", name);
    sac_result res = parse_rows(&t, &file);
    number_locale_leave(&locale);
    if (res == SAC_OK)
        *out = file;
    else
        sac_mot_finish(&file);
    return res;
}

void sac_mot_finish(struct sac_mot_file *file)
{
    if (!file)
        return;
    sac_free(file->rows);
    *file = (struct sac_mot_file){0};
}

/* ---- seqinfo.ini ---- */

static bool key_is(const char *key, size_t len, const char *want)
{
    return strlen(want) == len && strncasecmp(key, want, len) == 0;
}

static sac_result read_setting(struct text *t, double max, double *out)
{
    const char *begin = t->at;
    double      value;
    bool        number = read_number(t, &value);
    skip_blanks(t);
    if (!number || !at_line_end(t) || value <= 0 || value > max)
        return SAC_FAIL(t->ctx, SAC_ERR_FORMAT, "%s:%d: '%s' is not a number in (0, %g]", t->name,
                        t->line, quote_from(t, begin).text, max);
    *out = value;
    return SAC_OK;
}

static sac_result read_whole_setting(struct text *t, int max, int *out)
{
    double     value;
    sac_result res = read_setting(t, max, &value);
    if (res == SAC_OK)
        *out = (int)value;
    return res;
}

static void copy_name(struct text *t, char *out, size_t size)
{
    size_t n = 0;
    for (; !at_line_end(t) && *t->at != '\r'; t->at++)
        if (n + 1 < size)
            out[n++] = *t->at;
    out[n] = '\0';
}

/* "key = value" with `at` on the key. */
static sac_result read_entry(struct text *t, struct sac_mot_seqinfo *info)
{
    const char *key = t->at;
    while (!at_line_end(t) && *t->at != '=')
        t->at++;
    if (at_line_end(t))
        return SAC_FAIL(t->ctx, SAC_ERR_FORMAT, "%s:%d: neither 'key=value' nor '[section]'",
                        t->name, t->line);
    size_t len = (size_t)(t->at - key);
    while (len && (key[len - 1] == ' ' || key[len - 1] == '\t'))
        len--;
    t->at++;
    skip_blanks(t);
    if (key_is(key, len, "name"))
        copy_name(t, info->name, sizeof info->name);
    else if (key_is(key, len, "frameRate"))
        return read_setting(t, 1e6, &info->fps);
    else if (key_is(key, len, "seqLength"))
        return read_whole_setting(t, SAC_MOT_FRAME_MAX, &info->length);
    else if (key_is(key, len, "imWidth"))
        return read_whole_setting(t, INT_MAX, &info->width);
    else if (key_is(key, len, "imHeight"))
        return read_whole_setting(t, INT_MAX, &info->height);
    return SAC_OK;
}

static sac_result parse_entries(struct text *t, struct sac_mot_seqinfo *info)
{
    for (; t->at < t->end; next_line(t)) {
        skip_blanks(t);
        if (at_line_end(t) || *t->at == '[' || *t->at == ';' || *t->at == '#')
            continue;
        sac_result res = read_entry(t, info);
        if (res != SAC_OK)
            return res;
    }
    return SAC_OK;
}

sac_result sac_mot_parse_seqinfo(sac_context *ctx, const char *name, const char *text, size_t size,
                                 struct sac_mot_seqinfo *out)
{
    struct sac_mot_seqinfo info = {0};
    struct text            t = open_text(ctx, name, text, size);
    struct number_locale   locale;
    if (!number_locale_enter(&locale))
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for reading it", name);
    sac_result res = parse_entries(&t, &info);
    number_locale_leave(&locale);
    if (res == SAC_OK)
        *out = info;
    return res;
}

/* ---- files ---- */

/* The whole file with a NUL after it; freed by sac_free. */
static sac_result slurp(sac_context *ctx, const char *path, char **text, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return SAC_FAIL(ctx, SAC_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    char      *bytes = NULL;
    size_t     count = 0, capacity = 0, got = 1;
    sac_result res = SAC_OK;
    while (got && res == SAC_OK) {
        if (!sac_grow((void **)&bytes, &capacity, count + 4096, 1)) {
            res = SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for '%s'", path);
            break;
        }
        got = fread(bytes + count, 1, capacity - 1 - count, f);
        count += got;
    }
    if (res == SAC_OK && ferror(f))
        res = SAC_FAIL(ctx, SAC_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    fclose(f);
    if (res != SAC_OK) {
        sac_free(bytes);
        return res;
    }
    bytes[count] = '\0';
    *text = bytes;
    *size = count;
    return SAC_OK;
}

sac_result sac_mot_read(sac_context *ctx, const char *path, struct sac_mot_file *out)
{
    SAC_NEEDS(ctx, path);
    SAC_NEEDS(ctx, out);
    char      *text;
    size_t     size;
    sac_result res = slurp(ctx, path, &text, &size);
    if (res != SAC_OK)
        return res;
    res = sac_mot_parse(ctx, path, text, size, out);
    sac_free(text);
    return res;
}

sac_result sac_mot_read_seqinfo(sac_context *ctx, const char *path, struct sac_mot_seqinfo *out)
{
    SAC_NEEDS(ctx, path);
    SAC_NEEDS(ctx, out);
    char      *text;
    size_t     size;
    sac_result res = slurp(ctx, path, &text, &size);
    if (res != SAC_OK)
        return res;
    res = sac_mot_parse_seqinfo(ctx, path, text, size, out);
    sac_free(text);
    return res;
}
