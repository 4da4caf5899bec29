/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what kernels chose by measurement. A book has a page for each set of input shapes and is
 * valid for one model, device, set of libraries, precision and version of saccade. Its file
 * (docs/plans.md) is in the user's cache folder, or at the beginning of a .plan that `saccade
 * build` wrote, followed by the model. Such a file is untrusted input: a damaged or foreign one is
 * ignored with a warning. */
#ifndef SAC_ENGINE_PLAN_PLANBOOK_H
#define SAC_ENGINE_PLAN_PLANBOOK_H

#include "engine/plan/plan.h"

enum sac_book_key {
    SAC_BOOK_MODEL,
    SAC_BOOK_DEVICE,
    SAC_BOOK_KERNELS,
    SAC_BOOK_PRECISION,
    SAC_BOOK_OPTIONS,
    SAC_BOOK_VERSION,
    SAC_BOOK_KEYS
};

/* Pages of a calibrated .plan: the data, and what was seen of each value (model/ranges.c). They do
 * not depend on the device, and are not kept in the cache: who runs the model itself did not ask
 * for them. */
#define SAC_BOOK_CALIBRATION "calibration"
#define SAC_BOOK_CALIBRATED  "ranges calibrated"

struct sac_book_page {
    char  *shapes;  /* "float32[1,3,416,416]", inputs in order */
    char **choices; /* by number of the kernel step; NULL entries: nothing was chosen */
    /* beside them: the id of the value that the step computes, -1: not known. With other shapes a
     * step may have another number. */
    int   *values;
    size_t count;
};

struct sac_plan_book {
    char                 *key[SAC_BOOK_KEYS];
    struct sac_book_page *pages;
    size_t                count, cap;
    /* The range that was asked for, each as a page's shapes: between them a page may serve other
     * shapes (sac_book_lend). NULL: none. */
    char *least, *greatest;
};

void sac_book_finish(struct sac_plan_book *book);
bool sac_book_set_key(struct sac_plan_book *book, enum sac_book_key key,
                      const char *value); /* false:
                                             memory
                                           */
void sac_book_drop_key(struct sac_plan_book *book, enum sac_book_key key);
/* The first key in which they differ, or SAC_BOOK_KEYS. */
enum sac_book_key sac_book_differs(const struct sac_plan_book *a, const struct sac_plan_book *b);
const char       *sac_book_key_name(enum sac_book_key key);
/* Hash of the key, and of what calibration data showed, as hexadecimal digits, used as the file's
 * name. */
void sac_book_hash(const struct sac_plan_book *book, char out[33]);
void sac_bytes_hash(const void *bytes, size_t size, char out[33]);

const struct sac_book_page *sac_book_find(const struct sac_plan_book *book, const char *shapes);
/* Moves the pages that the book lacks from the other to it. */
void sac_book_take(struct sac_plan_book *book, struct sac_plan_book *from);
/* Of the same model and options for another device, library or precision, only what does not depend
 * on these. */
void sac_book_take_calibration(struct sac_plan_book *book, struct sac_plan_book *from);
/* Drops the pages of shapes; what does not say which kernels stays. */
void sac_book_drop_plans(struct sac_plan_book *book);
/* Stores what the plan's kernels chose, replacing the page of these shapes. With too many pages the
 * first is dropped. False: no memory. */
bool sac_book_note(struct sac_plan_book *book, const char *shapes, const struct sac_plan *plan);
/* The same with choices that are no kernels': [count], NULL entries are left out. */
bool sac_book_write(struct sac_plan_book *book, const char *shapes, const char *const *choices,
                    size_t count);
void sac_book_shapes(const struct sac_operand *shapes, int count, char *out, size_t size);

/* ---- a range, planned at some of its shapes (planbook_range.c) ---- */

/* Replaces the range; NULL, NULL: there is none then. False, without a range: each input must have
 * one type and rank in both, and no size above that of the greatest; or there is no memory. */
bool sac_book_set_range(struct sac_plan_book *book, const char *least, const char *greatest);
/* What may serve shapes that have no page, where they are in the range: of the nearest page, and
 * what that lacks of the next nearest.
 * choices  [*count] by the id of the value that a step computes, NULL entries: none; the texts are
 *          the book's, the array is the caller's (sac_free).
 * Returns the nearest page; NULL: they are in no range, or nothing in it is planned. */
const struct sac_book_page *sac_book_lend(const struct sac_plan_book *book, const char *shapes,
                                          const char ***choices, size_t *count);

/* ---- files ---- */

/* Does the file begin like a plan? */
bool sac_book_recognise(const void *bytes, size_t size);
/* out      empty on entry. *model: where the model begins; size when there is none.
 * why      what is wrong with the file, when the result is false. */
bool sac_book_parse(const void *bytes, size_t size, struct sac_plan_book *out, size_t *model,
                    char *why, size_t why_size);
/* The file's text (free with sac_free), to be followed by model_bytes of a model; of none, as in
 * the cache: without range and calibration, which were asked for in a .plan alone. NULL: no memory.
 */
char *sac_book_text(const struct sac_plan_book *book, size_t model_bytes, size_t *size);

/* Gives the path of a book's file in the cache, "/home/me/.cache/saccade/HASH.plan" and creates the
 * folder. False: there is no cache (SACCADE_CACHE is empty, or no home), or the folder cannot be
 * created. */
bool sac_book_cache_path(const struct sac_plan_book *book, char *out, size_t size);
/* Writes a temporary file and renames it, so that readers see either the old or the new one.
 * Errors: SAC_ERR_IO, SAC_ERR_MEMORY. */
sac_result sac_book_save(sac_context *ctx, const struct sac_plan_book *book, const char *path);

#endif
