/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "engine/plan/planbook.h"

static const char        magic[] = "saccade plan 1\n";
static const char *const key_names[SAC_BOOK_KEYS] = {"model",     "device",  "kernels",
                                                     "precision", "options", "saccade"};
enum { LINE_MAX_BYTES = 4096, PAGES_MAX = 256, CHOICES_MAX = 100000 };

/* ---- hashes: they detect damage and mistakes, not attacks ---- */

static uint64_t mixed(uint64_t h)
{
    h = (h ^ h >> 31) * 0x7fb5d329728ea185u;
    h = (h ^ h >> 27) * 0x81dadef4bc2dd44du;
    return h ^ h >> 33;
}

void sac_bytes_hash(const void *bytes, size_t size, char out[33])
{
    const unsigned char *p = bytes;
    uint64_t             a = 0x9e3779b97f4a7c15u ^ size, b = 0xd1b54a32d192ed03u;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, p + i, SAC_MIN((size_t)8, size - i));
        a = (a ^ word) * 0x9fb21c651e98df25u;
        a ^= a >> 29;
        b = (b + word) * 0xd6e8feb86659fd93u;
        b ^= b >> 32;
    }
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)mixed(a), (unsigned long long)mixed(b));
}

/* ---- keys ---- */

const char *sac_book_key_name(enum sac_book_key key)
{
    return key_names[key];
}

bool sac_book_set_key(struct sac_plan_book *book, enum sac_book_key key, const char *value)
{
    char *copy = sac_strdup(value);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c < ' ') /* a value must not break its line */
            *c = ' ';
    sac_free(book->key[key]);
    book->key[key] = copy;
    return copy != NULL;
}

void sac_book_drop_key(struct sac_plan_book *book, enum sac_book_key key)
{
    sac_free(book->key[key]);
    book->key[key] = NULL;
}

enum sac_book_key sac_book_differs(const struct sac_plan_book *a, const struct sac_plan_book *b)
{
    int k = 0;
    while (k < SAC_BOOK_KEYS && a->key[k] && b->key[k] && strcmp(a->key[k], b->key[k]) == 0)
        k++;
    return (enum sac_book_key)k;
}

void sac_book_hash(const struct sac_plan_book *book, char out[33])
{
    const struct sac_book_page *ranges = sac_book_find(book, SAC_BOOK_CALIBRATED);
    char                        text[2048];
    size_t                      at = 0;
    for (int k = 0; k < SAC_BOOK_KEYS && at < sizeof text; k++)
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s\n", book->key[k] ? book->key[k] : "");
    sac_bytes_hash(text, SAC_MIN(at, sizeof text), out);
    for (size_t c = 0; ranges && c <= ranges->count; c++) {
        const char *choice = c < ranges->count ? ranges->choices[c] : "calibrated";
        const int   size = choice ? snprintf(text, sizeof text, "%s %s", out, choice) : 0;
        if (size > 0)
            sac_bytes_hash(text, SAC_MIN((size_t)size, sizeof text - 1), out);
    }
}

/* ---- pages ---- */

static void page_finish(struct sac_book_page *page)
{
    for (size_t i = 0; i < page->count; i++)
        sac_free(page->choices[i]);
    sac_free(page->choices);
    sac_free(page->values);
    sac_free(page->shapes);
    *page = (struct sac_book_page){0};
}

void sac_book_finish(struct sac_plan_book *book)
{
    for (size_t i = 0; i < book->count; i++)
        page_finish(&book->pages[i]);
    sac_free(book->pages);
    for (int k = 0; k < SAC_BOOK_KEYS; k++)
        sac_free(book->key[k]);
    sac_book_set_range(book, NULL, NULL);
    *book = (struct sac_plan_book){0};
}

static struct sac_book_page *page_of(const struct sac_plan_book *book, const char *shapes)
{
    for (size_t i = 0; i < book->count; i++)
        if (strcmp(book->pages[i].shapes, shapes) == 0)
            return &book->pages[i];
    return NULL;
}

const struct sac_book_page *sac_book_find(const struct sac_plan_book *book, const char *shapes)
{
    return page_of(book, shapes);
}

/* Adds an empty page for these shapes; NULL: no memory. */
static struct sac_book_page *page_add(struct sac_plan_book *book, const char *shapes)
{
    struct sac_book_page *page = page_of(book, shapes);
    if (page) {
        char *const kept = page->shapes;
        page->shapes = NULL;
        page_finish(page);
        page->shapes = kept;
        return page;
    }
    if (!sac_grow((void **)&book->pages, &book->cap, book->count + 1, sizeof *book->pages))
        return NULL;
    page = &book->pages[book->count];
    *page = (struct sac_book_page){.shapes = sac_strdup(shapes)};
    book->count += page->shapes != NULL;
    return page->shapes ? page : NULL;
}

/* Returns good. Half a page would be read as a whole one: it goes. */
static bool page_end(struct sac_plan_book *book, struct sac_book_page *page, bool good)
{
    if (good || !page)
        return good;
    const size_t behind = (size_t)(book->pages + book->count - page) - 1;
    page_finish(page);
    memmove(page, page + 1, behind * sizeof *page);
    book->count--;
    return false;
}

static bool page_grow(struct sac_book_page *page, size_t count)
{
    char **choices = sac_realloc_array(page->choices, count, sizeof *choices);
    if (choices)
        page->choices = choices;
    int *values = choices ? sac_realloc_array(page->values, count, sizeof *values) : NULL;
    if (values)
        page->values = values;
    for (; values && page->count < count; page->count++) {
        choices[page->count] = NULL;
        values[page->count] = -1;
    }
    return values != NULL;
}

static bool page_set(struct sac_book_page *page, size_t number, int value, const char *choice)
{
    if (number >= page->count && !page_grow(page, number + 1))
        return false;
    sac_free(page->choices[number]);
    page->choices[number] = sac_strdup(choice);
    page->values[number] = value;
    return page->choices[number] != NULL;
}

static bool is_calibration(const struct sac_book_page *page)
{
    return strcmp(page->shapes, SAC_BOOK_CALIBRATION) == 0 ||
           strcmp(page->shapes, SAC_BOOK_CALIBRATED) == 0;
}

/* Moves the pages that the book lacks. */
static void take_pages(struct sac_plan_book *book, struct sac_plan_book *from,
                       bool only_calibration)
{
    for (size_t i = 0; i < from->count && book->count < PAGES_MAX;) {
        if ((only_calibration && !is_calibration(&from->pages[i])) ||
            page_of(book, from->pages[i].shapes) ||
            !sac_grow((void **)&book->pages, &book->cap, book->count + 1, sizeof *book->pages)) {
            i++;
            continue;
        }
        book->pages[book->count++] = from->pages[i];
        from->pages[i] = from->pages[--from->count];
    }
}

void sac_book_take(struct sac_plan_book *book, struct sac_plan_book *from)
{
    take_pages(book, from, false);
}

void sac_book_take_calibration(struct sac_plan_book *book, struct sac_plan_book *from)
{
    static const enum sac_book_key same[] = {SAC_BOOK_MODEL, SAC_BOOK_OPTIONS, SAC_BOOK_VERSION};
    for (size_t i = 0; i < SAC_COUNT(same); i++)
        if (!book->key[same[i]] || !from->key[same[i]] ||
            strcmp(book->key[same[i]], from->key[same[i]]) != 0)
            return;
    take_pages(book, from, true);
}

void sac_book_drop_plans(struct sac_plan_book *book)
{
    for (size_t i = 0; i < book->count;)
        if (strchr(book->pages[i].shapes, '[')) {
            page_finish(&book->pages[i]);
            memmove(&book->pages[i], &book->pages[i + 1],
                    (--book->count - i) * sizeof *book->pages);
        } else {
            i++;
        }
}

/* A book that has more pages would not be read again. */
static void make_room(struct sac_plan_book *book, const char *shapes)
{
    size_t first = 0;
    if (book->count < PAGES_MAX || page_of(book, shapes))
        return;
    while (is_calibration(&book->pages[first]))
        first++;
    page_finish(&book->pages[first]);
    memmove(book->pages + first, book->pages + first + 1,
            (--book->count - first) * sizeof *book->pages);
}

bool sac_book_note(struct sac_plan_book *book, const char *shapes, const struct sac_plan *plan)
{
    make_room(book, shapes);
    struct sac_book_page *page = page_add(book, shapes);
    bool                  good = page != NULL;
    size_t                number = 0;
    for (size_t i = 0; i < plan->step_count && good; i++) {
        if (plan->steps[i].kind != SAC_STEP_KERNEL)
            continue;
        if (plan->steps[i].chosen)
            good = page_set(page, number, sac_step_value(&plan->steps[i]), plan->steps[i].chosen);
        number++;
    }
    return page_end(book, page, good);
}

bool sac_book_write(struct sac_plan_book *book, const char *shapes, const char *const *choices,
                    size_t count)
{
    make_room(book, shapes);
    struct sac_book_page *page = page_add(book, shapes);
    bool                  good = page != NULL && count <= CHOICES_MAX;
    for (size_t i = 0; i < count && good; i++)
        if (choices[i])
            good = page_set(page, i, -1, choices[i]);
    return page_end(book, page, good);
}

void sac_book_shapes(const struct sac_operand *shapes, int count, char *out, size_t size)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < count && at < size; i++) {
        at += (size_t)snprintf(out + at, size - at, "%s%s[", i ? " " : "",
                               sac_dtype_name(shapes[i].dtype));
        for (int d = 0; d < shapes[i].rank && at < size; d++)
            at += (size_t)snprintf(out + at, size - at, "%s%lld", d ? "," : "",
                                   (long long)shapes[i].dims[d]);
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, "]");
    }
}

/* ---- text ---- */

static void write_choice(FILE *f, const struct sac_book_page *page, size_t number)
{
    if (!page->choices[number])
        return;
    fprintf(f, "choice %zu", number);
    if (page->values[number] >= 0 && page->values[number] < CHOICES_MAX)
        fprintf(f, "/%d", page->values[number]);
    fprintf(f, " %s\n", page->choices[number]);
}

char *sac_book_text(const struct sac_plan_book *book, size_t model_bytes, size_t *size)
{
    char  *text = NULL, hash[33];
    size_t length = 0;
    FILE  *f = open_memstream(&text, &length);
    if (!f)
        return NULL;
    fputs(magic, f);
    for (int k = 0; k < SAC_BOOK_KEYS; k++)
        fprintf(f, "key %s %s\n", key_names[k], book->key[k] ? book->key[k] : "");
    for (size_t i = 0; i < book->count; i++) {
        if (!model_bytes && is_calibration(&book->pages[i]))
            continue;
        fprintf(f, "shapes %s\n", book->pages[i].shapes);
        for (size_t c = 0; c < book->pages[i].count; c++)
            write_choice(f, &book->pages[i], c);
    }
    if (book->least && model_bytes)
        fprintf(f, "range %s to %s\n", book->least, book->greatest);
    fprintf(f, "model %zu\n", model_bytes);
    bool good = fflush(f) == 0;
    if (good)
        sac_bytes_hash(text, length, hash);
    good = good && fprintf(f, "end %s\n", hash) > 0;
    if (fclose(f) != 0 || !good) {
        free(text);
        return NULL;
    }
    *size = length;
    return text;
}

bool sac_book_recognise(const void *bytes, size_t size)
{
    return size >= sizeof magic - 1 && memcmp(bytes, magic, sizeof magic - 1) == 0;
}

struct reader {
    const char *at, *end, *begin;
    char        line[LINE_MAX_BYTES];
};

/* The next line without its end. False: there is none, or it is too long. */
static bool next_line(struct reader *r)
{
    const char *stop = r->at < r->end ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : NULL;
    if (!stop || (size_t)(stop - r->at) >= sizeof r->line)
        return false;
    memcpy(r->line, r->at, (size_t)(stop - r->at));
    r->line[stop - r->at] = '\0';
    r->at = stop + 1;
    return true;
}

/* "word rest" -> rest, or NULL when the line begins with another word. */
static const char *after(const char *line, const char *word)
{
    const size_t n = strlen(word);
    return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

static bool read_key(const char *rest, struct sac_plan_book *out)
{
    for (int k = 0; k < SAC_BOOK_KEYS; k++) {
        const char *value = after(rest, key_names[k]);
        if (value)
            return sac_book_set_key(out, (enum sac_book_key)k, value);
    }
    return true; /* written by a later version: the other lines decide */
}

/* "12 TEXT", or "12/97 TEXT" where the step's value is known. */
static bool read_choice(const char *rest, struct sac_plan_book *out)
{
    char               *text;
    const unsigned long number = strtoul(rest, &text, 10);
    unsigned long       value = CHOICES_MAX;
    if (text == rest || number >= CHOICES_MAX || out->count == 0)
        return false;
    if (*text == '/') {
        rest = text + 1;
        value = strtoul(rest, &text, 10);
        if (text == rest || value >= CHOICES_MAX)
            return false;
    }
    if (*text != ' ' || strlen(text + 1) >= SAC_KERNEL_CHOICE_MAX)
        return false;
    return page_set(&out->pages[out->count - 1], number, value < CHOICES_MAX ? (int)value : -1,
                    text + 1);
}

static bool read_range(const char *rest, struct sac_plan_book *out)
{
    static const char between[] = " to ";
    const char       *at = strstr(rest, between);
    if (!at || out->least)
        return false;
    char      *least = sac_asprintf("%.*s", (int)(at - rest), rest);
    const bool good = least && sac_book_set_range(out, least, at + sizeof between - 1);
    sac_free(least);
    return good;
}

static bool read_line(const char *line, struct sac_plan_book *out, size_t *model_bytes)
{
    const char *rest;
    if ((rest = after(line, "key")))
        return read_key(rest, out);
    if ((rest = after(line, "shapes")))
        return out->count < PAGES_MAX && !page_of(out, rest) && page_add(out, rest);
    if ((rest = after(line, "choice")))
        return read_choice(rest, out);
    if ((rest = after(line, "range")))
        return read_range(rest, out);
    if ((rest = after(line, "model"))) {
        char *end;
        *model_bytes = strtoull(rest, &end, 10);
        return end != rest && !*end;
    }
    return false;
}

static bool wrong(char *why, size_t size, const char *what)
{
    snprintf(why, size, "%s", what);
    return false;
}

bool sac_book_parse(const void *bytes, size_t size, struct sac_plan_book *out, size_t *model,
                    char *why, size_t why_size)
{
    size_t model_bytes = 0;
    char   hash[33];
    if (!sac_book_recognise(bytes, size))
        return wrong(why, why_size, "it does not begin like a plan of saccade");
    struct reader r = {.at = bytes, .begin = bytes, .end = (const char *)bytes + size};
    r.at += sizeof magic - 1;
    for (;;) {
        const char *line_begin = r.at, *sum;
        if (!next_line(&r))
            return wrong(why, why_size, "it ends early");
        if ((sum = after(r.line, "end"))) {
            sac_bytes_hash(r.begin, (size_t)(line_begin - r.begin), hash);
            if (strcmp(sum, hash) != 0)
                return wrong(why, why_size, "its checksum is wrong");
            break;
        }
        if (!read_line(r.line, out, &model_bytes))
            return wrong(why, why_size, "it has an invalid line");
    }
    *model = (size_t)(r.at - r.begin);
    if (model_bytes != size - *model)
        return wrong(why, why_size, "the model in it is incomplete");
    return true;
}
