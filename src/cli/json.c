/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "json.h"

/* Bytes of the UTF-8 character at text, or 0 where there is none (RFC 3629): names in a model's
 * file may be anything, JSON may not. */
static int utf8_length(const unsigned char *text)
{
    int  length = text[0] < 0x80   ? 1
                  : text[0] < 0xc2 ? 0
                  : text[0] < 0xe0 ? 2
                  : text[0] < 0xf0 ? 3
                                   : 4;
    bool fits = length && text[0] < 0xf5;
    for (int i = 1; i < length && fits; i++)
        fits = (text[i] & 0xc0) == 0x80; /* the final zero does not fit either */
    if (fits && text[0] == 0xe0)         /* longer than necessary */
        fits = text[1] >= 0xa0;
    else if (fits && text[0] == 0xed) /* half of a surrogate pair */
        fits = text[1] < 0xa0;
    else if (fits && text[0] == 0xf0)
        fits = text[1] >= 0x90;
    else if (fits && text[0] == 0xf4) /* past the last character */
        fits = text[1] < 0x90;
    return fits ? length : 0;
}

static void quote(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', out);
    while (*at) {
        int length = utf8_length(at);
        if (!length)
            fputs("\\ufffd", out);
        else if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(out, "\\u%04x", *at);
        else
            fwrite(at, 1, (size_t)length, out);
        at += length ? length : 1;
    }
    fputc('"', out);
}

static void begin(struct json *json, const char *name)
{
    if (json->comma)
        fputs(", ", json->out);
    json->comma = true;
    if (!name)
        return;
    quote(json->out, name);
    fputs(": ", json->out);
}

void json_open(struct json *json, const char *name, char bracket)
{
    begin(json, name);
    fputc(bracket, json->out);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    fputc(bracket, json->out);
    json->comma = true;
}

void json_text(struct json *json, const char *name, const char *value)
{
    begin(json, name);
    if (value)
        quote(json->out, value);
    else
        fputs("null", json->out);
}

void json_int(struct json *json, const char *name, int64_t value)
{
    begin(json, name);
    fprintf(json->out, "%" PRId64, value);
}

void json_real(struct json *json, const char *name, double value)
{
    begin(json, name);
    if (isfinite(value))
        fprintf(json->out, "%.15g", value);
    else
        fputs("null", json->out);
}

void json_bool(struct json *json, const char *name, bool value)
{
    begin(json, name);
    fputs(value ? "true" : "false", json->out);
}
