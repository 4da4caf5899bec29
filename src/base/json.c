/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

static void add_gap(struct sac_json *json)
{
    sac_text_add(json->text, json->gap ? json->gap : "");
    json->gap = NULL;
}

static void begin(struct sac_json *json, const char *key)
{
    if (json->follows)
        sac_text_add(json->text, json->spaced && !json->gap ? ", " : ",");
    add_gap(json);
    json->follows = true;
    if (!key)
        return;
    sac_text_add(json->text, "\"");
    sac_text_add(json->text, key);
    sac_text_add(json->text, json->spaced ? "\": " : "\":");
}

static void add_bracket(struct sac_json *json, char bracket)
{
    const char text[] = {bracket, '\0'};
    sac_text_add(json->text, text);
}

void sac_json_open(struct sac_json *json, const char *key, char bracket)
{
    begin(json, key);
    add_bracket(json, bracket);
    json->follows = false;
}

void sac_json_close(struct sac_json *json, char bracket)
{
    add_gap(json);
    add_bracket(json, bracket);
    json->follows = true;
}

void sac_json_string(struct sac_json *json, const char *key, const char *string)
{
    begin(json, key);
    if (string)
        sac_text_json_string(json->text, string);
    else
        sac_text_add(json->text, "null");
}

void sac_json_int(struct sac_json *json, const char *key, int64_t value)
{
    begin(json, key);
    sac_text_int(json->text, value);
}

void sac_json_bool(struct sac_json *json, const char *key, bool value)
{
    begin(json, key);
    sac_text_add(json->text, value ? "true" : "false");
}

void sac_json_null(struct sac_json *json, const char *key)
{
    sac_json_string(json, key, NULL);
}

void sac_json_fixed(struct sac_json *json, const char *key, double value, int decimals)
{
    begin(json, key);
    sac_text_fixed(json->text, value, decimals);
}

/* What printf writes beside digits, signs and e is the locale's decimal point: a comma, or U+066B,
 * which is two bytes. */
static void add_number(struct sac_text *text, char *digits)
{
    char *point = digits + strspn(digits, "0123456789+-e");
    if (*point) {
        char *rest = point + 1;
        rest += strcspn(rest, "0123456789");
        *point = '\0';
        sac_text_add(text, digits);
        sac_text_add(text, ".");
        digits = rest;
    }
    sac_text_add(text, digits);
}

void sac_json_real(struct sac_json *json, const char *key, double value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.15g", value);
    begin(json, key);
    if (isfinite(value))
        add_number(json->text, digits);
    else
        sac_text_add(json->text, "null");
}
