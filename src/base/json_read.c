/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"

void sac_json_read_begin(struct sac_json_reader *reader, const char *text, size_t size)
{
    reader->begin = reader->at = text;
    reader->end = text + size;
    reader->res = SAC_OK;
    reader->depth = 0;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark */
        reader->at += 3;
}

void sac_json_read_finish(struct sac_json_reader *reader)
{
    sac_text_finish(&reader->text);
}

void sac_json_read_fault(struct sac_json_reader *reader, sac_result res, const char *fmt, ...)
{
    char    what[512];
    int     line = 1;
    va_list ap;
    if (reader->res != SAC_OK)
        return;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    for (const char *c = reader->begin; c < reader->at; c++)
        line += *c == '\n';
    reader->res = SAC_FAIL(reader->ctx, res, "%s:%d: %s", reader->name, line, what);
}

static void no_json(struct sac_json_reader *reader, const char *wanted)
{
    if (reader->at == reader->end)
        sac_json_read_fault(reader, SAC_ERR_FORMAT, "the file ends where %s should be", wanted);
    else if (*reader->at > ' ' && *reader->at < 127)
        sac_json_read_fault(reader, SAC_ERR_FORMAT, "'%c' where %s should be", *reader->at, wanted);
    else
        sac_json_read_fault(reader, SAC_ERR_FORMAT, "byte 0x%02x where %s should be",
                            (unsigned)(unsigned char)*reader->at, wanted);
}

static void skip_blanks(struct sac_json_reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n' ||
                                        *reader->at == '\t' || *reader->at == '\r'))
        reader->at++;
}

char sac_json_read_peek(struct sac_json_reader *reader)
{
    skip_blanks(reader);
    return reader->res == SAC_OK && reader->at < reader->end ? *reader->at : '\0';
}

static bool take(struct sac_json_reader *reader, char c)
{
    if (sac_json_read_peek(reader) != c)
        return false;
    reader->at++;
    return true;
}

/* ---- lists and objects ---- */

bool sac_json_read_open(struct sac_json_reader *reader, char bracket)
{
    if (!take(reader, bracket)) {
        no_json(reader, bracket == '{' ? "an object" : "a list");
        return false;
    }
    if (reader->depth == SAC_JSON_DEPTH_MAX) {
        sac_json_read_fault(reader, SAC_ERR_LIMIT, "JSON of more than %d levels",
                            SAC_JSON_DEPTH_MAX);
        return false;
    }
    reader->depth++;
    reader->follows[reader->depth] = false;
    return true;
}

/* To the next of a level; false at its end. */
static bool next(struct sac_json_reader *reader, char bracket)
{
    if (take(reader, bracket)) {
        reader->depth--;
        return false;
    }
    bool follows = reader->follows[reader->depth];
    reader->follows[reader->depth] = true;
    if (follows && !take(reader, ',')) {
        no_json(reader, bracket == '}' ? "',' or '}'" : "',' or ']'");
        return false;
    }
    return reader->res == SAC_OK;
}

bool sac_json_read_member(struct sac_json_reader *reader)
{
    if (!next(reader, '}'))
        return false;
    const char *key = sac_json_read_string(reader, NULL);
    if (!key)
        return false;
    snprintf(reader->key, sizeof reader->key, "%s", key);
    if (take(reader, ':'))
        return true;
    no_json(reader, "':'");
    return false;
}

bool sac_json_read_element(struct sac_json_reader *reader)
{
    return next(reader, ']');
}

/* ---- numbers ---- */

static bool is_digit(const struct sac_json_reader *reader)
{
    return reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9';
}

/* Digits are added to *value as long as it holds them exactly; returns the power of ten that is
 * missing. */
static int read_digits(struct sac_json_reader *reader, bool fraction, uint64_t *value)
{
    int power = 0;
    if (!is_digit(reader))
        no_json(reader, "a digit");
    for (; is_digit(reader); reader->at++) {
        bool fits = *value <= (UINT64_MAX - 9) / 10;
        if (fits)
            *value = *value * 10 + (uint64_t)(*reader->at - '0');
        power = SAC_CLAMP(power + (fits ? 0 : 1) - (fraction ? 1 : 0), -100000, 100000);
    }
    return power;
}

double sac_json_read_number(struct sac_json_reader *reader)
{
    uint64_t value = 0, exponent = 0;
    int      power = 0;
    skip_blanks(reader);
    bool minus = take(reader, '-');
    if (reader->res != SAC_OK || !is_digit(reader)) {
        no_json(reader, "a number");
        return 0;
    }
    if (*reader->at == '0')
        reader->at++;
    else
        power = read_digits(reader, false, &value);
    if (reader->at < reader->end && *reader->at == '.') {
        reader->at++;
        power += read_digits(reader, true, &value);
    }
    if (reader->at < reader->end && (*reader->at == 'e' || *reader->at == 'E')) {
        reader->at++;
        bool down = reader->at < reader->end && *reader->at == '-';
        reader->at += down || (reader->at < reader->end && *reader->at == '+');
        read_digits(reader, false, &exponent);
        power += (down ? -1 : 1) * (int)SAC_MIN(exponent, 100000);
    }
    /* 64 bits of a long double hold all digits, and powers of ten up to 27 exactly. */
    static const long double powers[] = {1, 1e1L, 1e2L, 1e3L, 1e4L, 1e5L, 1e6L, 1e7L, 1e8L, 1e9L};
    size_t                   size = (size_t)abs(power);
    long double scale = size < SAC_COUNT(powers) ? powers[size] : powl(10, (long double)size);
    long double result = power < 0 ? (long double)value / scale : (long double)value * scale;
    if (value == 0)
        result = 0;
    if (reader->res == SAC_OK && !isfinite((double)result))
        sac_json_read_fault(reader, SAC_ERR_FORMAT, "a number that is too large");
    return reader->res == SAC_OK ? (double)(minus ? -result : result) : 0;
}

/* ---- strings ---- */

static void add_byte(struct sac_text *text, unsigned byte)
{
    if (sac_grow((void **)&text->data, &text->capacity, text->length + 1, 1))
        text->data[text->length++] = (char)byte;
    else
        text->failed = true;
}

static void add_utf8(struct sac_text *text, unsigned code)
{
    if (code < 0x80) {
        add_byte(text, code);
    } else if (code < 0x800) {
        add_byte(text, 0xc0 | code >> 6);
        add_byte(text, 0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        add_byte(text, 0xe0 | code >> 12);
        add_byte(text, 0x80 | (code >> 6 & 0x3f));
        add_byte(text, 0x80 | (code & 0x3f));
    } else {
        add_byte(text, 0xf0 | code >> 18);
        add_byte(text, 0x80 | (code >> 12 & 0x3f));
        add_byte(text, 0x80 | (code >> 6 & 0x3f));
        add_byte(text, 0x80 | (code & 0x3f));
    }
}

static unsigned read_hex(struct sac_json_reader *reader)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++, reader->at++) {
        const char *hex = "0123456789abcdef";
        const char *digit = NULL;
        if (reader->at < reader->end && *reader->at)
            digit = strchr(hex, *reader->at | 0x20);
        if (!digit) {
            no_json(reader, "a hexadecimal digit");
            return 0;
        }
        code = code * 16 + (unsigned)(digit - hex);
    }
    return code;
}

/* Of \u: a pair of surrogates is one character, half a pair none. */
static unsigned read_code(struct sac_json_reader *reader)
{
    unsigned code = read_hex(reader);
    if (code >= 0xd800 && code < 0xdc00 && reader->end - reader->at >= 6 &&
        memcmp(reader->at, "\\u", 2) == 0) {
        const char *before = reader->at;
        reader->at += 2;
        unsigned low = read_hex(reader);
        if (low >= 0xdc00 && low < 0xe000)
            return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        reader->at = before;
    }
    return code >= 0xd800 && code < 0xe000 ? 0xfffd : code;
}

static void read_escape(struct sac_json_reader *reader)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char       *letter = NULL;
    if (reader->at < reader->end && *reader->at)
        letter = strchr(letters, *reader->at);
    if (letter) {
        reader->at++;
        add_byte(&reader->text, (unsigned char)meanings[letter - letters]);
    } else if (reader->at < reader->end && *reader->at == 'u') {
        reader->at++;
        add_utf8(&reader->text, read_code(reader));
    } else {
        no_json(reader, "an escaped character");
    }
}

const char *sac_json_read_string(struct sac_json_reader *reader, size_t *length)
{
    struct sac_text *text = &reader->text;
    sac_text_clear(text);
    if (!take(reader, '"')) {
        no_json(reader, "a string");
        return NULL;
    }
    while (reader->res == SAC_OK && reader->at < reader->end && *reader->at != '"') {
        if (*reader->at == '\\') {
            reader->at++;
            read_escape(reader);
        } else if ((unsigned char)*reader->at < ' ') {
            no_json(reader, "a character of a string");
        } else {
            add_byte(text, (unsigned char)*reader->at++);
        }
    }
    if (reader->res == SAC_OK && !take(reader, '"'))
        no_json(reader, "the end of a string");
    add_byte(text, 0);
    if (text->failed)
        sac_json_read_fault(reader, SAC_ERR_MEMORY, "no memory");
    if (reader->res != SAC_OK)
        return NULL;
    if (length)
        *length = text->length - 1;
    return text->data;
}

/* ---- what is not wanted ---- */

static void skip_word(struct sac_json_reader *reader)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < SAC_COUNT(words); i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(reader->end - reader->at) >= n && memcmp(reader->at, words[i], n) == 0) {
            reader->at += n;
            return;
        }
    }
    no_json(reader, "a value");
}

/* Calls itself as often as levels are allowed. */
void sac_json_read_skip(struct sac_json_reader *reader)
{
    char c = sac_json_read_peek(reader);
    if (reader->res != SAC_OK)
        return;
    if (c == '{') {
        if (sac_json_read_open(reader, '{'))
            while (sac_json_read_member(reader))
                sac_json_read_skip(reader);
    } else if (c == '[') {
        if (sac_json_read_open(reader, '['))
            while (sac_json_read_element(reader))
                sac_json_read_skip(reader);
    } else if (c == '"') {
        sac_json_read_string(reader, NULL);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        sac_json_read_number(reader);
    } else {
        skip_word(reader);
    }
}

sac_result sac_json_read_end(struct sac_json_reader *reader)
{
    skip_blanks(reader);
    if (reader->at != reader->end)
        no_json(reader, "the end");
    return reader->res;
}
