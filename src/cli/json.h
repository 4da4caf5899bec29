/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON: commas and escapes; the caller opens and closes in pairs. */
#ifndef SAC_CLI_JSON_H
#define SAC_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
    FILE *out;
    bool  comma; /* the next element follows another */
};

/* name: NULL inside a list. */
void json_open(struct json *json, const char *name, char bracket);      /* '{' or '[' */
void json_close(struct json *json, char bracket);                       /* '}' or ']' */
void json_text(struct json *json, const char *name, const char *value); /* NULL: null */
void json_int(struct json *json, const char *name, int64_t value);
void json_real(struct json *json, const char *name, double value); /* not finite: null */
void json_bool(struct json *json, const char *name, bool value);

#endif
