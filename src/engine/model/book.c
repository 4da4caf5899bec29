/* SPDX-License-Identifier: Apache-2.0 */
/* A model's book of plans: read from the loaded .plan or from the cache, and extended for each new
 * shape. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/disk_cache.h"
#include "base/start.h"
#include "engine/model/model.h"

/* ---- the key: all that a choice depends on ---- */

static bool set_keys(sac_model *m, struct sac_plan_book *book)
{
    char kernels[256], options[640], without[512];
    sac_engine_describe(m->dev, kernels, sizeof kernels);
    const struct sac_without left_out = {.passes = m->without.passes,
                                         .plan = m->without.plan & SAC_WITHOUT_OF_KERNELS};
    sac_without_text(&left_out, without, sizeof without);
    snprintf(options, sizeof options, "optimise %d, free batch %d%s%s", m->params.optimise,
             m->params.free_batch, *without ? ", without " : "", without);
    return sac_book_set_key(book, SAC_BOOK_DEVICE, m->dev->description) &&
           sac_book_set_key(book, SAC_BOOK_KERNELS, kernels) &&
           sac_book_set_key(book, SAC_BOOK_PRECISION, sac_precision_name(m->params.precision)) &&
           sac_book_set_key(book, SAC_BOOK_OPTIONS, options) &&
           sac_book_set_key(book, SAC_BOOK_VERSION, SAC_VERSION);
}

/* ---- reading ---- */

/* Takes the pages of a file when it is valid and its key matches; otherwise logs why not, once, in
 * one line. */
static bool take_pages(sac_model *m, const void *bytes, size_t size, const char *path)
{
    struct sac_plan_book    book = {.count = 0};
    char                    why[160];
    size_t                  model = 0;
    const bool              whole = sac_book_parse(bytes, size, &book, &model, why, sizeof why);
    const enum sac_book_key differs = whole ? sac_book_differs(&book, &m->book) : SAC_BOOK_KEYS;
    if (!whole)
        sac_log(m->ctx, SAC_LOG_WARN, "%s: the plan is damaged (%s); it is created again", path,
                why);
    else if (differs < SAC_BOOK_KEYS)
        sac_log(
            m->ctx, SAC_LOG_WARN,
            "%s: the plan was made for another %s ('%s', and here it is '%s'); it is created again",
            path, sac_book_key_name(differs), book.key[differs] ? book.key[differs] : "",
            m->book.key[differs]);
    const bool take = whole && differs == SAC_BOOK_KEYS;
    if (take) {
        sac_book_finish(&m->book);
        m->book = book;
    } else {
        if (whole)
            sac_book_take_calibration(&m->book, &book);
        sac_book_finish(&book);
    }
    return take;
}

static void read_cache(sac_model *m)
{
    struct sac_mapped_file file = {0};
    if (access(m->book_path, R_OK) != 0)
        return;
    if (sac_file_map(m->ctx, m->book_path, &file) != SAC_OK) {
        sac_error_clear(m->ctx);
        return;
    }
    if (take_pages(m, file.bytes, file.size, m->book_path))
        sac_log(m->ctx, SAC_LOG_DEBUG, "%s: %zu plans from %s", m->path, m->book.count,
                m->book_path);
    sac_cache_touch(m->book_path);
    sac_file_unmap(&file);
}

/* Adds what the cache's file has and the book lacks. Other processes, or other models in this
 * process that use the file, may have written to it since it was read. Damage was logged when it
 * was read, or is beside a .plan, and is repaired by writing. */
static void take_others_pages(sac_model *m)
{
    struct sac_plan_book   book = {.count = 0};
    struct sac_mapped_file file = {0};
    char                   why[160];
    size_t                 model = 0;
    if (access(m->book_path, R_OK) != 0)
        return;
    if (sac_file_map(m->ctx, m->book_path, &file) != SAC_OK) {
        sac_error_clear(m->ctx);
        return;
    }
    if (sac_book_parse(file.bytes, file.size, &book, &model, why, sizeof why) &&
        sac_book_differs(&book, &m->book) == SAC_BOOK_KEYS)
        sac_book_take(&m->book, &book);
    sac_book_finish(&book);
    sac_file_unmap(&file);
}

static sac_result no_memory(const sac_model *m)
{
    return SAC_FAIL(m->ctx, SAC_ERR_MEMORY, "no memory for what the kernels chose");
}

static sac_result open_book(sac_model *m, const void *plan, size_t plan_size)
{
    char path[PATH_MAX];
    if (!set_keys(m, &m->book))
        return no_memory(m);
    const bool planned = plan && take_pages(m, plan, plan_size, m->path);
    const bool keeps = sac_book_cache_path(&m->book, path, sizeof path);
    if (!keeps && !planned)
        sac_log(m->ctx, SAC_LOG_INFO,
                "%s: there is no folder to keep plans in (SACCADE_CACHE names one): kernels are "
                "measured in every run",
                m->path);
    m->book_path = keeps ? sac_strdup(path) : NULL;
    if (m->book_path && (planned || m->book.count))
        take_others_pages(m);
    else if (m->book_path)
        read_cache(m);
    return SAC_OK;
}

void sac_model_calibrate_book(sac_model *m)
{
    char path[PATH_MAX];
    sac_book_drop_plans(&m->book);
    sac_free(m->book_path);
    m->book_path = m->book.key[SAC_BOOK_MODEL] && sac_book_cache_path(&m->book, path, sizeof path)
                       ? sac_strdup(path)
                       : NULL;
    if (m->book_path)
        take_others_pages(m);
}

static bool has_book(const sac_model *m)
{
    return m->dev->ops->measures_kernels && m->params.tune && !m->params.reference &&
           !m->for_inspection && !(m->without.plan & SAC_WITHOUT_TRIALS);
}

/* Of a plan whose kernels are not asked for: what it says of precision. A book without keys is not
 * kept. */
static sac_result open_calibration(sac_model *m, const void *plan, size_t plan_size)
{
    struct sac_plan_book book = {.count = 0};
    char                 why[160];
    size_t               model = 0;
    const bool           good = set_keys(m, &m->book);
    if (good && sac_book_parse(plan, plan_size, &book, &model, why, sizeof why))
        sac_book_take_calibration(&m->book, &book);
    sac_book_finish(&book);
    for (int k = 0; k < SAC_BOOK_KEYS; k++)
        sac_book_drop_key(&m->book, (enum sac_book_key)k);
    return good ? SAC_OK : no_memory(m);
}

sac_result sac_model_name_book(sac_model *m, const void *onnx, size_t size)
{
    struct sac_start_span span;
    char                  hash[33];
    const bool            is_plan = m->file_offset > 0;
    if (!has_book(m) && !is_plan)
        return SAC_OK;
    sac_start_begin(&span, SAC_START_KEPT);
    sac_bytes_hash(onnx, size, hash);
    sac_start_end(&span);
    return sac_book_set_key(&m->book, SAC_BOOK_MODEL, hash) ? SAC_OK : no_memory(m);
}

sac_result sac_model_open_book(sac_model *m, const void *plan, size_t plan_size)
{
    struct sac_start_span span;
    if (!has_book(m))
        return plan ? open_calibration(m, plan, plan_size) : SAC_OK;
    sac_start_begin(&span, SAC_START_KEPT);
    sac_result res = open_book(m, plan, plan_size);
    sac_start_end(&span);
    return res;
}

sac_result sac_model_look_into_plan(sac_model *m, const void *bytes, size_t size, size_t *offset)
{
    struct sac_plan_book book = {.count = 0};
    char                 why[160];
    const bool           whole = sac_book_parse(bytes, size, &book, offset, why, sizeof why);
    sac_result           res = SAC_OK;
    if (!whole)
        res = SAC_FAIL(m->ctx, SAC_ERR_FORMAT,
                       "the plan is damaged (%s); create it again with saccade build", why);
    else if (*offset == size)
        res = SAC_FAIL(m->ctx, SAC_ERR_FORMAT,
                       "the plan is one of the cache, without its model; give the model");
    /* A plan runs in the precision that it was built in, unless the caller or the CPU needs
     * another. */
    if (res == SAC_OK && !m->asked && m->dev->ops->measures_kernels && book.key[SAC_BOOK_PRECISION])
        sac_precision_parse(book.key[SAC_BOOK_PRECISION], &m->params.precision);
    m->params.precision = sac_engine_precision(m->dev, m->params.precision);
    sac_book_finish(&book);
    return res;
}

/* ---- writing ---- */

void sac_model_note_plan(sac_model *m, const char *shapes, const struct sac_plan *plan)
{
    bool chose = false;
    for (size_t i = 0; i < plan->step_count; i++)
        chose |= plan->steps[i].chosen != NULL;
    if (!chose || !m->book.key[SAC_BOOK_MODEL])
        return;
    if (!sac_book_note(&m->book, shapes, plan)) {
        sac_log(m->ctx, SAC_LOG_WARN, "%s: no memory to keep what the kernels chose", m->path);
        return;
    }
    sac_model_save_book(m);
}

void sac_model_save_book(sac_model *m)
{
    struct sac_start_span span;
    if (!m->book_path)
        return;
    sac_start_begin(&span, SAC_START_KEPT);
    take_others_pages(m);
    /* has been logged; the next start measures again */
    if (sac_book_save(m->ctx, &m->book, m->book_path) != SAC_OK) {
        sac_error_clear(m->ctx);
        sac_free(m->book_path);
        m->book_path = NULL;
    }
    sac_cache_bound_plans(m->dev->params.plan_cache_bytes);
    sac_start_end(&span);
}
