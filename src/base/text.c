/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "text.h"

void sac_text_finish(struct sac_text *text)
{
    sac_free(text->data);
    *text = (struct sac_text){0};
}

void sac_text_clear(struct sac_text *text)
{
    text->length = 0;
}

static void add_bytes(struct sac_text *text, const char *bytes, size_t n)
{
    if (n == 0) /* there may be no memory yet, and memcpy wants some */
        return;
    if (!sac_grow((void **)&text->data, &text->capacity, text->length + n, 1)) {
        text->failed = true;
        return;
    }
    memcpy(text->data + text->length, bytes, n);
    text->length += n;
}

void sac_text_add(struct sac_text *text, const char *s)
{
    add_bytes(text, s, strlen(s));
}

/* At least `width` digits, with zeros in front. */
static void add_digits(struct sac_text *text, uint64_t value, int width)
{
    char digits[20];
    int  n = 0;
    do {
        digits[sizeof digits - 1 - (size_t)n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value || n < width);
    add_bytes(text, digits + sizeof digits - n, (size_t)n);
}

void sac_text_int(struct sac_text *text, int64_t value)
{
    if (value < 0)
        add_bytes(text, "-", 1);
    add_digits(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
}

void sac_text_fixed(struct sac_text *text, double value, int decimals)
{
    static const double   limit = 1e12;
    static const uint64_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    if (isnan(value))
        value = 0;
    value = SAC_CLAMP(value, -limit, limit);
    uint64_t units = (uint64_t)llround(fabs(value) * (double)power[decimals]);
    if (value < 0 && units > 0)
        add_bytes(text, "-", 1);
    add_digits(text, units / power[decimals], 1);
    if (decimals == 0)
        return;
    add_bytes(text, ".", 1);
    add_digits(text, units % power[decimals], decimals);
}

/* ---- strings ---- */

/* The length of the UTF-8 sequence at s, or 0 where there is none: no overlong forms, no
 * surrogates, nothing past U+10FFFF (RFC 3629, section 4). */
static size_t utf8_length(const unsigned char *s)
{
    unsigned low = 0x80, high = 0xbf;
    size_t   n;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (s[0] == 0xe0)
        low = 0xa0;
    if (s[0] == 0xed)
        high = 0x9f;
    if (s[0] == 0xf0)
        low = 0x90;
    if (s[0] == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < n; i++, low = 0x80, high = 0xbf)
        if (s[i] < low || s[i] > high) /* the terminating 0 ends here too */
            return 0;
    return n;
}

static void add_control(struct sac_text *text, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    const char        escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    add_bytes(text, escape, sizeof escape);
}

/* The character at *p, or U+FFFD for what is no UTF-8; *p goes on to the next. */
static void add_character(struct sac_text *text, const unsigned char **p)
{
    const size_t n = utf8_length(*p);
    if (n)
        add_bytes(text, (const char *)*p, n);
    else
        sac_text_add(text, "\xef\xbf\xbd");
    *p += n ? n : 1;
}

void sac_text_csv(struct sac_text *text, const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    const bool           quoted = strpbrk(s, ",\"\r\n") != NULL;
    sac_text_add(text, quoted ? "\"" : "");
    while (*p) {
        if (*p == '"')
            sac_text_add(text, "\"");
        add_character(text, &p);
    }
    sac_text_add(text, quoted ? "\"" : "");
}

void sac_text_json_string(struct sac_text *text, const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    add_bytes(text, "\"", 1);
    while (*p) {
        if (*p < 0x20 || *p == 0x7f) {
            add_control(text, *p++);
            continue;
        }
        if (*p == '"' || *p == '\\')
            sac_text_add(text, "\\");
        add_character(text, &p);
    }
    add_bytes(text, "\"", 1);
}
