/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels chose by measurement, kept: a book has a page for each set of input shapes, and holds for one
 * model, device, set of libraries, precision and version of saccade. In a file (docs/plans.md) it stands in
 * the user's cache folder, or at the head of a .plan that `saccade build` wrote, with the model behind it.
 * Such a file is input from outside: what is damaged or foreign is left aside, with a sentence. */
#ifndef SAC_ENGINE_PLANBOOK_H
#define SAC_ENGINE_PLANBOOK_H

#include "engine/plan.h"

enum sac_book_key { SAC_BOOK_MODEL, SAC_BOOK_DEVICE, SAC_BOOK_KERNELS, SAC_BOOK_PRECISION, SAC_BOOK_OPTIONS,
                    SAC_BOOK_VERSION, SAC_BOOK_KEYS };

struct sac_book_page {
    char   *shapes; /* "float32[1,3,416,416]", inputs in order */
    char  **choices; /* by number of the kernel step; NULL entries: nothing was chosen */
    size_t  count;
};

struct sac_plan_book {
    char                 *key[SAC_BOOK_KEYS];
    struct sac_book_page *pages;
    size_t                count, cap;
};

void sac_book_finish(struct sac_plan_book *book);
bool sac_book_set_key(struct sac_plan_book *book, enum sac_book_key key, const char *value); /* false: memory */
/* The first key in which they differ, or SAC_BOOK_KEYS. */
enum sac_book_key sac_book_differs(const struct sac_plan_book *a, const struct sac_plan_book *b);
const char       *sac_book_key_name(enum sac_book_key key);
/* Of the key, as hexadecimal digits: a file's name. */
void sac_book_hash(const struct sac_plan_book *book, char out[33]);
void sac_bytes_hash(const void *bytes, size_t size, char out[33]);

const struct sac_book_page *sac_book_find(const struct sac_plan_book *book, const char *shapes);
/* Pages that the book lacks move there from the other. */
void sac_book_take(struct sac_plan_book *book, struct sac_plan_book *from);
/* What the plan's kernels chose; the page of these shapes is replaced. Of very many the first goes. False: memory. */
bool sac_book_note(struct sac_plan_book *book, const char *shapes, const struct sac_plan *plan);
void sac_book_shapes(const struct sac_operand *shapes, int count, char *out, size_t size);

/* Is this a file of ours? */
bool sac_book_recognise(const void *bytes, size_t size);
/* out      empty before. *model: where the model begins, size where there is none.
 * why      what is wrong with it; false. */
bool sac_book_parse(const void *bytes, size_t size, struct sac_plan_book *out, size_t *model, char *why,
                    size_t why_size);
/* The file's text (sac_free), to be followed by model_bytes of a model. NULL: memory. */
char *sac_book_text(const struct sac_plan_book *book, size_t model_bytes, size_t *size);

/* The cache's file for a book: "/home/me/.cache/saccade/HASH.plan" and its folder made. False: there is none
 * (SACCADE_CACHE is empty, or no home), or it cannot be made. */
bool sac_book_cache_path(const struct sac_plan_book *book, char *out, size_t size);
/* Written beside and renamed: readers see the former or the new one. Errors: SAC_ERR_IO, SAC_ERR_MEMORY. */
sac_result sac_book_save(sac_context *ctx, const struct sac_plan_book *book, const char *path);

#endif
