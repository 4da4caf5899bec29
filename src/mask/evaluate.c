/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mask/mask.h"

enum { CLASSES_MAX = 4096, WORD_SIZE = 128 };

struct rows {
    struct sac_mask_scores *items; /* [count] */
    size_t                  count, capacity;
};

struct sac_mask_report {
    struct sac_mask_scores  combined;
    struct rows             pictures, sequences, classes;
    struct sac_mask_missing missing;
};

struct evaluation {
    sac_context                *ctx;
    struct sac_mask_eval_params params;
    struct sac_mask_set         gt, masks;
    size_t                     *mask_of; /* [gt.count] */
    bool                        by_class;
    int64_t                    *chosen; /* [chosen_count] by the params; none: all */
    size_t                      chosen_count, chosen_capacity;
    struct sac_mask_wanted      wanted_gt, wanted_masks; /* unless by_class */
    int64_t                     person_gt, person_masks;
    int64_t                    *class_ids; /* of report->classes */
    size_t                      class_capacity;
    uint8_t                    *planes[3]; /* ground truth, mask, ignored: one picture's */
    size_t                      plane_bytes;
    sac_mask_report            *report;
};

static sac_result no_memory(struct evaluation *eval)
{
    return SAC_FAIL(eval->ctx, SAC_ERR_MEMORY, "no memory to score masks");
}

static struct sac_mask_scores *add_row(struct rows *rows, const char *name)
{
    if (!sac_grow((void **)&rows->items, &rows->capacity, rows->count + 1, sizeof *rows->items))
        return NULL;
    sac_mask_scores_clear(&rows->items[rows->count], name);
    return &rows->items[rows->count++];
}

/* ---- which classes ---- */

static int64_t class_by_name(const struct sac_mask_set *set, const char *name)
{
    return set->ops && set->ops->class_of_name ? set->ops->class_of_name(set, name) : -1;
}

/* One word of the params' list. */
static sac_result choose(struct evaluation *eval, const char *word)
{
    char   *end;
    int64_t id = strtoll(word, &end, 10);
    if (*end || end == word) {
        id = class_by_name(&eval->gt, word);
        if (id < 0)
            id = class_by_name(&eval->masks, word);
    }
    if (id < 0)
        return SAC_FAIL(eval->ctx, SAC_ERR_ARG,
                        "class '%s' is no number, and no category of %s or %s", word,
                        eval->gt.path ? eval->gt.path : eval->masks.path, eval->masks.path);
    if (!sac_grow((void **)&eval->chosen, &eval->chosen_capacity, eval->chosen_count + 1,
                  sizeof *eval->chosen))
        return no_memory(eval);
    eval->chosen[eval->chosen_count++] = id;
    return SAC_OK;
}

static sac_result choose_all(struct evaluation *eval)
{
    const char *at = eval->params.classes ? eval->params.classes : "";
    sac_result  res = SAC_OK;
    while (*at && res == SAC_OK) {
        char   word[WORD_SIZE];
        size_t n = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)SAC_MIN(n, sizeof word), at);
        if (n > 0)
            res = choose(eval, word);
        at += n + (at[n] == ',');
    }
    return res;
}

/* Against a matte, of COCO's files the persons: by the category's name, or 1, which is its number
 * there; all where neither is in the file. */
static struct sac_mask_wanted persons(const struct evaluation *eval, const struct sac_mask_set *set,
                                      int64_t *person)
{
    const int64_t *ids;
    if (eval->chosen_count > 0)
        return (struct sac_mask_wanted){eval->chosen, eval->chosen_count};
    size_t count = set->ops->classes ? set->ops->classes(set, &ids) : 0;
    *person = class_by_name(set, "person");
    for (size_t i = 0; i < count && *person < 0; i++)
        if (ids[i] == 1 && !set->ops->class_name(set, 1))
            *person = 1;
    return *person < 0 ? (struct sac_mask_wanted){0} : (struct sac_mask_wanted){person, 1};
}

static sac_result add_class(struct evaluation *eval, int64_t id)
{
    struct rows *rows = &eval->report->classes;
    const char  *name = NULL;
    char         number[24];
    for (size_t i = 0; i < rows->count; i++)
        if (eval->class_ids[i] == id)
            return SAC_OK;
    if (rows->count == CLASSES_MAX)
        return SAC_FAIL(eval->ctx, SAC_ERR_LIMIT, "%s: more than %d classes", eval->gt.path,
                        CLASSES_MAX);
    if (eval->gt.ops->class_name)
        name = eval->gt.ops->class_name(&eval->gt, id);
    if (!name && eval->masks.ops->class_name)
        name = eval->masks.ops->class_name(&eval->masks, id);
    snprintf(number, sizeof number, "%" PRId64, id);
    if (!sac_grow((void **)&eval->class_ids, &eval->class_capacity, rows->count + 1,
                  sizeof *eval->class_ids) ||
        !add_row(rows, name ? name : number))
        return no_memory(eval);
    eval->class_ids[rows->count - 1] = id;
    return SAC_OK;
}

static sac_result list_classes_of(struct evaluation *eval, const struct sac_mask_set *set)
{
    const int64_t *ids = NULL;
    size_t         count = set->ops->classes ? set->ops->classes(set, &ids) : 0;
    sac_result     res = SAC_OK;
    for (size_t i = 0; i < count && res == SAC_OK; i++)
        res = add_class(eval, ids[i]);
    for (int id = 1; !set->ops->classes && id < SAC_MASK_IGNORED && res == SAC_OK; id++)
        res = add_class(eval, id);
    return res;
}

static sac_result list_classes(struct evaluation *eval)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < eval->chosen_count && res == SAC_OK; i++)
        res = add_class(eval, eval->chosen[i]);
    if (eval->chosen_count > 0 || res != SAC_OK)
        return res;
    res = list_classes_of(eval, &eval->gt);
    return res == SAC_OK ? list_classes_of(eval, &eval->masks) : res;
}

/* ---- one picture ---- */

static sac_result size_planes(struct evaluation *eval, size_t count)
{
    if (count <= eval->plane_bytes)
        return SAC_OK;
    for (int i = 0; i < 3; i++) {
        sac_free(eval->planes[i]);
        eval->planes[i] = sac_alloc(count);
        if (!eval->planes[i]) {
            eval->plane_bytes = 0;
            return no_memory(eval);
        }
    }
    eval->plane_bytes = count;
    return SAC_OK;
}

static void name_of(const struct sac_mask_entry *entry, char *name, size_t size)
{
    if (entry->name)
        snprintf(name, size, "%s", entry->name);
    else
        snprintf(name, size, "%" PRId64, entry->number);
}

static sac_result load_pair(struct evaluation *eval, size_t i)
{
    size_t     other = eval->mask_of[i];
    char       name[WORD_SIZE];
    sac_result res = sac_mask_set_load(&eval->gt, i, 0, 0);
    if (res != SAC_OK)
        return res;
    const struct sac_mask_picture *gt = &eval->gt.picture, *mask = &eval->masks.picture;
    res = sac_mask_set_load(&eval->masks, other, gt->width, gt->height);
    name_of(&eval->gt.entries[i], name, sizeof name);
    if (res == SAC_OK && (gt->width != mask->width || gt->height != mask->height))
        return SAC_FAIL(
            eval->ctx, SAC_ERR_ARG,
            "picture %s: %d x %d pixels in %s, %d x %d in %s; masks are compared pixel by pixel",
            name, gt->width, gt->height, eval->gt.path, mask->width, mask->height,
            eval->masks.path);
    return res == SAC_OK ? size_planes(eval, (size_t)gt->width * (size_t)gt->height) : res;
}

/* Score what lies in the planes. *scored false: too small to count. */
static sac_result score_planes(struct evaluation *eval, bool alpha, struct sac_mask_scores *out,
                               bool *scored)
{
    struct sac_mask_two two = {eval->planes[0], eval->planes[1], eval->gt.picture.width,
                               eval->gt.picture.height, 0};
    size_t              count = (size_t)two.width * (size_t)two.height, inside = 0;
    for (size_t i = 0; i < count; i++) {
        if (eval->planes[2][i]) {
            eval->planes[0][i] = eval->planes[1][i] = 0;
            two.ignored++;
        }
        inside += two.gt[i] >= 128;
    }
    *scored = (double)inside >= eval->params.area_min * (double)count;
    return *scored ? sac_mask_score_two(eval->ctx, &two, alpha, eval->params.tolerance, out)
                   : SAC_OK;
}

static sac_result score_classes(struct evaluation *eval, struct sac_mask_scores *picture)
{
    size_t     count = (size_t)eval->gt.picture.width * (size_t)eval->gt.picture.height;
    sac_result res = SAC_OK;
    for (size_t i = 0; i < eval->report->classes.count && res == SAC_OK; i++) {
        int64_t                id = eval->class_ids[i];
        struct sac_mask_scores scores;
        bool                   scored = false;
        if (!sac_mask_set_has(&eval->gt, id) && !sac_mask_set_has(&eval->masks, id))
            continue;
        memset(eval->planes[2], 0, count);
        res = sac_mask_set_draw(&eval->gt, id, eval->planes[0], eval->planes[2]);
        if (res == SAC_OK)
            res = sac_mask_set_draw(&eval->masks, id, eval->planes[1], eval->planes[2]);
        if (res == SAC_OK)
            res = score_planes(eval, false, &scores, &scored);
        if (res == SAC_OK && scored) {
            sac_mask_scores_add(picture, &scores);
            sac_mask_scores_add(&eval->report->classes.items[i], &scores);
        }
    }
    return res;
}

static sac_result score_matte(struct evaluation *eval, struct sac_mask_scores *picture)
{
    size_t count = (size_t)eval->gt.picture.width * (size_t)eval->gt.picture.height;
    bool   scored = false, alpha = eval->gt.values == SAC_MASK_VALUES_ALPHA ||
                                 eval->masks.values == SAC_MASK_VALUES_ALPHA;
    struct sac_mask_scores scores;
    memset(eval->planes[2], 0, count);
    sac_result res =
        sac_mask_wanted_draw(&eval->gt, &eval->wanted_gt, eval->planes[0], eval->planes[2]);
    if (res == SAC_OK)
        res = sac_mask_wanted_draw(&eval->masks, &eval->wanted_masks, eval->planes[1],
                                   eval->planes[2]);
    if (res == SAC_OK)
        res = score_planes(eval, alpha, &scores, &scored);
    if (res == SAC_OK && scored)
        sac_mask_scores_add(picture, &scores);
    return res;
}

static sac_result score_pair(struct evaluation *eval, size_t i)
{
    char                         name[WORD_SIZE];
    const struct sac_mask_entry *entry = &eval->gt.entries[i];
    struct rows                 *sequences = &eval->report->sequences;
    struct sac_mask_scores      *picture, *sequence = NULL;
    sac_result                   res = load_pair(eval, i);
    if (res != SAC_OK)
        return res;
    name_of(entry, name, sizeof name);
    picture = add_row(&eval->report->pictures, name);
    if (sequences->count > 0) /* sequences come one after the other */
        sequence = &sequences->items[sequences->count - 1];
    if (!sequence || strncmp(sequence->name, entry->sequence, sizeof sequence->name - 1) != 0)
        sequence = add_row(sequences, entry->sequence);
    if (!picture || !sequence)
        return no_memory(eval);
    res = eval->by_class ? score_classes(eval, picture) : score_matte(eval, picture);
    if (res != SAC_OK)
        return res;
    if (picture->pictures == 0) {
        eval->report->pictures.count--;
        return SAC_OK;
    }
    eval->report->missing.empty += eval->mask_of[i] == eval->masks.count;
    sac_mask_scores_add(sequence, picture);
    return SAC_OK;
}

/* ---- all of them ---- */

static sac_result open_set(struct evaluation *eval, const char *path, enum sac_mask_values values,
                           struct sac_mask_set *set)
{
    set->ctx = eval->ctx;
    set->path = path;
    set->values = values;
    set->score_min = eval->params.score_min;
    return sac_mask_set_open(set);
}

static sac_result pair_up(struct evaluation *eval)
{
    struct sac_mask_missing *missing = &eval->report->missing;
    int64_t                  paired = 0;
    eval->mask_of = sac_calloc(eval->gt.count + 1, sizeof *eval->mask_of);
    if (!eval->mask_of)
        return no_memory(eval);
    sac_result res = sac_mask_pair(&eval->gt, &eval->masks, eval->mask_of);
    for (size_t i = 0; i < eval->gt.count && res == SAC_OK; i++)
        if (eval->mask_of[i] != SAC_MASK_NONE)
            paired++;
        else if (eval->masks.results)
            eval->mask_of[i] = eval->masks.count;
        else
            missing->masks++;
    missing->gt = (int64_t)eval->masks.count - paired;
    return res;
}

/* Whether there are classes to tell apart is known from the first pictures. */
static sac_result settle(struct evaluation *eval)
{
    sac_result res = SAC_OK;
    for (size_t i = 0; i < eval->gt.count; i++)
        if (eval->mask_of[i] != SAC_MASK_NONE) {
            res = load_pair(eval, i);
            break;
        }
    if (res == SAC_OK)
        res = choose_all(eval);
    if (res != SAC_OK)
        return res;
    eval->by_class = sac_mask_set_has_classes(&eval->gt) && sac_mask_set_has_classes(&eval->masks);
    eval->wanted_gt = persons(eval, &eval->gt, &eval->person_gt);
    eval->wanted_masks = persons(eval, &eval->masks, &eval->person_masks);
    return eval->by_class ? list_classes(eval) : SAC_OK;
}

/* A map of objects that is taken for alpha, or the reverse, gives scores near 0: said, as nothing
 * else shows why. */
static void doubt(const struct sac_mask_set *set)
{
    bool low = false, high = false;
    for (int i = 1; i < 255; i++)
        *(i < 128 ? &low : &high) |= set->seen[i];
    if (set->ops->draw)
        return;
    if (set->values == SAC_MASK_VALUES_ALPHA && low && !high)
        sac_log(set->ctx, SAC_LOG_WARN,
                "%s: read as alpha, and no value lies between 127 and 255: are they numbers of "
                "objects or classes?",
                set->path);
    if (set->values == SAC_MASK_VALUES_OBJECTS && set->seen[255] && !low && !high)
        sac_log(set->ctx, SAC_LOG_WARN,
                "%s: read as numbers of objects, of which 255 is not scored, and no other was "
                "found: are they alpha?",
                set->path);
}

/* Classes that are in no picture scored have no scores. */
static void drop_unseen_classes(struct rows *classes)
{
    size_t kept = 0;
    for (size_t i = 0; i < classes->count; i++)
        if (classes->items[i].pictures > 0)
            classes->items[kept++] = classes->items[i];
    classes->count = kept;
}

static void combine(struct evaluation *eval)
{
    sac_mask_report        *report = eval->report;
    struct sac_mask_scores *combined = &report->combined;
    const struct rows      *from = eval->by_class ? &report->classes : &report->pictures;
    drop_unseen_classes(&report->classes);
    sac_mask_combine(from->items, from->count, combined);
    if (!eval->by_class || from->count == 0)
        return;
    /* Each class counts the same, however many pictures it is in. */
    double                 iou = 0;
    struct sac_mask_scores sum, equal;
    sac_mask_scores_clear(&sum, "");
    for (size_t i = 0; i < from->count; i++) {
        iou += from->items[i].iou;
        equal = from->items[i];
        equal.pictures = 1;
        sac_mask_scores_add(&sum, &equal);
    }
    sum.iou = iou / (double)from->count;
    sum.pictures = (int64_t)report->pictures.count;
    memcpy(sum.name, combined->name, sizeof sum.name);
    *combined = sum;
}

static sac_result score_all(struct evaluation *eval)
{
    sac_result res = pair_up(eval);
    if (res == SAC_OK)
        res = settle(eval);
    for (size_t i = 0; i < eval->gt.count && res == SAC_OK; i++)
        if (eval->mask_of[i] != SAC_MASK_NONE)
            res = score_pair(eval, i);
    if (res != SAC_OK)
        return res;
    doubt(&eval->gt);
    doubt(&eval->masks);
    combine(eval);
    return SAC_OK;
}

static sac_result add_flicker(struct evaluation *eval)
{
    sac_mask_report *report = eval->report;
    if (!eval->gt.path) {
        sac_result res = choose_all(eval);
        if (res != SAC_OK)
            return res;
        eval->wanted_masks = persons(eval, &eval->masks, &eval->person_masks);
        for (size_t i = 0; i < eval->masks.count; i++) {
            const char *name = eval->masks.entries[i].sequence;
            const bool  begins = i == 0 || strcmp(name, eval->masks.entries[i - 1].sequence) != 0;
            if (begins && !add_row(&report->sequences, name))
                return no_memory(eval);
            report->sequences.items[report->sequences.count - 1].pictures++;
            report->combined.pictures++;
        }
    }
    return sac_mask_flicker(&eval->masks, &eval->wanted_masks, eval->params.video,
                            &report->combined, report->sequences.items, report->sequences.count,
                            &report->missing.frames);
}

static sac_result evaluate(struct evaluation *eval, const char *gt, const char *masks)
{
    sac_result res = open_set(eval, masks, eval->params.mask_values, &eval->masks);
    sac_mask_scores_clear(&eval->report->combined, "combined");
    if (res == SAC_OK && gt)
        res = open_set(eval, gt, eval->params.gt_values, &eval->gt);
    if (res == SAC_OK && gt)
        res = score_all(eval);
    if (res == SAC_OK && eval->params.video)
        res = add_flicker(eval);
    if (eval->report->sequences.count == 1)
        eval->report->sequences.count = 0;
    return res;
}

static sac_result check(sac_context *ctx, const char *gt, const struct sac_mask_eval_params *p)
{
    if (!gt && !p->video)
        return SAC_FAIL(ctx, SAC_ERR_ARG,
                        "masks are scored against ground truth, or their flicker by their video");
    return sac_mask_params_check(ctx, p);
}

sac_result sac_mask_evaluate(sac_context *ctx, const char *gt, const char *masks,
                             const struct sac_mask_eval_params *params, sac_mask_report **out)
{
    SAC_NEEDS(ctx, masks);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "mask evaluation parameters");
    struct evaluation eval = {.ctx = ctx};
    eval.params = params ? *params : sac_mask_eval_params_default();
    sac_result res = check(ctx, gt, &eval.params);
    if (res != SAC_OK)
        return res;
    eval.report = sac_new(sac_mask_report);
    res = eval.report ? evaluate(&eval, gt, masks) : no_memory(&eval);
    sac_mask_set_close(&eval.gt);
    sac_mask_set_close(&eval.masks);
    sac_free(eval.mask_of);
    sac_free(eval.chosen);
    sac_free(eval.class_ids);
    for (int i = 0; i < 3; i++)
        sac_free(eval.planes[i]);
    if (res == SAC_OK)
        *out = eval.report;
    else
        sac_mask_report_destroy(&eval.report);
    return res;
}

/* ---- the report ---- */

void sac_mask_report_destroy(sac_mask_report **report)
{
    if (!report || !*report)
        return;
    sac_free((*report)->pictures.items);
    sac_free((*report)->sequences.items);
    sac_free((*report)->classes.items);
    sac_free(*report);
    *report = NULL;
}

const struct sac_mask_scores *sac_mask_report_combined(const sac_mask_report *report)
{
    return report ? &report->combined : NULL;
}

const struct sac_mask_scores *sac_mask_report_list(const sac_mask_report *report,
                                                   enum sac_mask_group group, size_t *count)
{
    const struct rows *list = NULL;
    switch (report ? (int)group : -1) {
    case SAC_MASK_PICTURES: list = &report->pictures; break;
    case SAC_MASK_SEQUENCES: list = &report->sequences; break;
    case SAC_MASK_CLASSES: list = &report->classes; break;
    default: break;
    }
    if (count)
        *count = list ? list->count : 0;
    return list ? list->items : NULL;
}

struct sac_mask_missing sac_mask_report_missing(const sac_mask_report *report)
{
    return report ? report->missing : (struct sac_mask_missing){0};
}
