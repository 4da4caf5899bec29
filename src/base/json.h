/* SPDX-License-Identifier: Apache-2.0 */
/* The one writer of JSON: commas, quotes and escapes, into a growing text. The caller opens and
 * closes in pairs.
 *
 *     struct sac_text text = {0};
 *     struct sac_json json = {.text = &text};
 *     sac_json_open(&json, NULL, '{');
 *     sac_json_int(&json, "frames", 750);
 *     sac_json_close(&json, '}');                    // {"frames":750}
 *
 * The key is NULL inside a list; it is written as it is, so it needs no escapes. The program, which
 * sees nothing else inside the library, compiles this writer for its own documents. */
#ifndef SAC_BASE_JSON_H
#define SAC_BASE_JSON_H

#include "text.h"

struct sac_json {
    struct sac_text *text;
    bool             spaced;  /* a space after commas and colons, for people */
    bool             follows; /* the next element follows another */
    const char      *gap;     /* white space before what comes next, a bracket too; or NULL */
};

void sac_json_open(struct sac_json *json, const char *key, char bracket);         /* '{' or '[' */
void sac_json_close(struct sac_json *json, char bracket);                         /* '}' or ']' */
void sac_json_string(struct sac_json *json, const char *key, const char *string); /* NULL: null */
void sac_json_int(struct sac_json *json, const char *key, int64_t value);
void sac_json_bool(struct sac_json *json, const char *key, bool value);
void sac_json_null(struct sac_json *json, const char *key);
/* As sac_text_fixed writes it. */
void sac_json_fixed(struct sac_json *json, const char *key, double value, int decimals);
/* With 15 digits; what is not finite is null. */
void sac_json_real(struct sac_json *json, const char *key, double value);

#endif
