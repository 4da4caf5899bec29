/* SPDX-License-Identifier: Apache-2.0 */
/* A strict reader of JSON (RFC 8259) that goes through a text once and keeps nothing: the caller
 * asks for what it wants and skips the rest.
 *
 *     struct sac_json_reader reader = {.ctx = ctx, .name = path};
 *     sac_json_read_begin(&reader, text, size);
 *     if (sac_json_read_open(&reader, '{'))
 *         while (sac_json_read_member(&reader))
 *             if (strcmp(reader.key, "id") == 0)
 *                 id = sac_json_read_number(&reader);
 *             else
 *                 sac_json_read_skip(&reader);
 *     res = sac_json_read_end(&reader);              // the first fault, with its line
 *     sac_json_read_finish(&reader);
 *
 * After a fault every function returns false, 0 or NULL, so loops end. A data set of COCO is half a
 * gigabyte of numbers: a tree of it would be ten times that. */
#ifndef SAC_BASE_JSON_READ_H
#define SAC_BASE_JSON_READ_H

#include "text.h"

enum { SAC_JSON_DEPTH_MAX = 64, SAC_JSON_KEY_SIZE = 64 };

struct sac_json_reader {
    sac_context    *ctx;
    const char     *name; /* of the file, for sentences; borrowed */
    const char     *begin, *at, *end;
    sac_result      res;
    int             depth;
    bool            follows[SAC_JSON_DEPTH_MAX + 1]; /* something came before, on each level */
    char            key[SAC_JSON_KEY_SIZE];          /* of the member; cut */
    struct sac_text text;
};

void sac_json_read_begin(struct sac_json_reader *reader, const char *text, size_t size);
/* The first byte of what comes next: { [ " t f n, or 0 to 9 or - for a number; 0: a fault, or the
 * end. */
char sac_json_read_peek(struct sac_json_reader *reader);
/* { or [. false: something else is there, which is a fault. Then, until false: */
bool   sac_json_read_open(struct sac_json_reader *reader, char bracket);
bool   sac_json_read_member(struct sac_json_reader *reader); /* of {}: sets key */
bool   sac_json_read_element(struct sac_json_reader *reader);
double sac_json_read_number(struct sac_json_reader *reader);
/* Unescaped, UTF-8, terminated; valid until the next. NULL: a fault. */
const char *sac_json_read_string(struct sac_json_reader *reader, size_t *length);
void        sac_json_read_skip(struct sac_json_reader *reader);
/* Report a fault of what was read; the sentence names file and line. */
void sac_json_read_fault(struct sac_json_reader *reader, sac_result res, const char *fmt, ...)
    SAC_PRINTF(3, 4);
/* That nothing follows, and no fault was found. */
sac_result sac_json_read_end(struct sac_json_reader *reader);
void       sac_json_read_finish(struct sac_json_reader *reader);

#endif
