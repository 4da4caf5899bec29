/* SPDX-License-Identifier: Apache-2.0 */
/* Text that is put together in memory that stays: numbers in fixed point and JSON strings, the same
 * in every locale (printf writes a decimal comma in some). */
#ifndef SAC_BASE_TEXT_H
#define SAC_BASE_TEXT_H

#include "base.h"

struct sac_text {
    char  *data; /* not terminated */
    size_t length, capacity;
    bool   failed; /* no memory: what is missing is not written */
};
void sac_text_finish(struct sac_text *text);
void sac_text_clear(struct sac_text *text);

void sac_text_add(struct sac_text *text, const char *s);
void sac_text_int(struct sac_text *text, int64_t value);
/* decimals 0 to 6, rounded half away from zero; what is no number or past 1e12 is written as 0 or
 * +-1e12: neither JSON nor MOTChallenge files have a word for it. */
void sac_text_fixed(struct sac_text *text, double value, int decimals);
/* A field of a CSV line (RFC 4180): quoted where it must be; bytes that are not UTF-8 become
 * U+FFFD. */
void sac_text_csv(struct sac_text *text, const char *s);
/* Quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
void sac_text_json_string(struct sac_text *text, const char *s);

#endif
