/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_spec.h"

static const char *const way_names[CONV_WAY_COUNT] = {
    "fused",   "plain", "depthwise",   "direct", "stem", "tile",
    "patches", "bytes", "bytes-plain", "stream", "lt",   "tensor"};

size_t conv_choice_print(const struct conv_choice *c, char *out, size_t size)
{
    int at = snprintf(out, size, "%s %" PRId64, way_names[c->way], c->engine);
    for (int i = 0; i < c->knob_count && at > 0 && (size_t)at < size; i++)
        at += snprintf(out + at, size - (size_t)at, "%c%" PRId64 "=%" PRId64, i == 0 ? ' ' : ',',
                       c->knobs[i].type, c->knobs[i].value);
    return at > 0 && (size_t)at < size ? (size_t)at : 0;
}

/* Digits only, at most ten: neither signs nor spaces nor overflow. */
static bool read_number(const char **text, int64_t *out)
{
    int64_t v = 0;
    int     digits = 0;
    for (; **text >= '0' && **text <= '9' && digits < 10; digits++, (*text)++)
        v = v * 10 + (**text - '0');
    *out = v;
    return digits > 0 && !(**text >= '0' && **text <= '9');
}

static bool read_way(const char **text, enum conv_way *out)
{
    for (int w = 0; w < CONV_WAY_COUNT; w++) {
        const size_t length = strlen(way_names[w]);
        if (strncmp(*text, way_names[w], length) == 0 && (*text)[length] == ' ') {
            *out = (enum conv_way)w;
            *text += length + 1;
            return true;
        }
    }
    return false;
}

bool conv_choice_parse(const char *text, struct conv_choice *out)
{
    struct conv_choice c = {0};
    if (!text || !read_way(&text, &c.way) || !read_number(&text, &c.engine))
        return false;
    for (char before = ' '; *text == before; before = ',') {
        text++;
        if (c.knob_count == CONV_KNOBS_MAX || !read_number(&text, &c.knobs[c.knob_count].type) ||
            *text++ != '=' || !read_number(&text, &c.knobs[c.knob_count].value))
            return false;
        c.knob_count++;
    }
    if (*text)
        return false;
    *out = c;
    return true;
}

bool conv_choice_same(const struct conv_choice *a, const struct conv_choice *b)
{
    if (a->way != b->way || a->engine != b->engine || a->knob_count != b->knob_count)
        return false;
    for (int i = 0; i < a->knob_count; i++)
        if (a->knobs[i].type != b->knobs[i].type || a->knobs[i].value != b->knobs[i].value)
            return false;
    return true;
}
