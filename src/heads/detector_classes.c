/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a detector's classes are kept, by the names that people give. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "heads/detector.h"

enum { SHOWN_MAX = 8 }; /* names in a sentence */

/* A sentence that grows in a buffer, and is cut at its end. */
struct sentence {
    char  *text;
    size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void add(struct sentence *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = s->used < s->size ? vsnprintf(s->text + s->used, s->size - s->used, format, args) : 0;
    va_end(args);
    s->used += (size_t)SAC_MAX(n, 0);
}

/* By name, or by number where there is such a class; without any names every number may be one. */
static int class_of_name(const struct sac_detector *det, const char *name)
{
    char *end;
    int   count = det->contract.class_count;
    long  number = strtol(name, &end, 10);
    if (end != name && !*end && number >= 0 && number < (count ? count : INT_MAX))
        return (int)number;
    for (int i = 0; i < count; i++)
        if (!strcmp(det->contract.classes[i], name))
            return i;
    return -1;
}

/* The classes that a wrong name may mean: those it is part of, else the one that is few typing
 * slips away. */
static void suggest(const struct sac_detector *det, const char *name, struct sentence *out)
{
    struct sac_nearest best = {0};
    int                parts = 0;
    for (int i = 0; i < det->contract.class_count; i++) {
        const char *known = det->contract.classes[i];
        sac_nearest_offer(&best, name, known);
        if (strlen(name) >= 3 && strcasestr(known, name) && parts++ < SHOWN_MAX)
            add(out, "%s'%s'", parts > 1 ? ", " : "did you mean ", known);
    }
    if (!parts && best.word)
        add(out, "did you mean '%s'", best.word);
    if (parts || best.word)
        add(out, "? ");
}

static void list_names(const struct sac_detector *det, const int *classes, int count,
                       struct sentence *out)
{
    for (int i = 0; i < count && i < SHOWN_MAX; i++) {
        const int class_id = classes ? classes[i] : i;
        if (class_id < det->contract.class_count)
            add(out, "%s%s", i ? ", " : "", det->contract.classes[class_id]);
        else
            add(out, "%sclass %d", i ? ", " : "", class_id);
    }
    add(out, "%s", count > SHOWN_MAX ? ", ..." : "");
}

static sac_result refuse_class(const struct sac_detector *det, const char *name)
{
    char            text[1024] = "";
    struct sentence more = {text, sizeof text, 0};
    const int       count = det->contract.class_count;
    if (count) {
        suggest(det, name, &more);
        add(&more, "it has %d: ", count);
        list_names(det, NULL, count, &more);
    } else {
        add(&more, "it names none: give numbers");
    }
    return SAC_FAIL(det->dev->ctx, SAC_ERR_ARG, "%s has no class '%s'; %s",
                    sac_model_path(det->model), name, text);
}

static sac_result want_class(struct sac_detector *det, const char *name)
{
    int class_id = class_of_name(det, name);
    if (class_id < 0)
        return refuse_class(det, name);
    for (size_t i = 0; i < det->wanted_count; i++)
        if (det->wanted[i] == class_id)
            return SAC_OK;
    if (!sac_grow((void **)&det->wanted, &det->wanted_capacity, det->wanted_count + 1,
                  sizeof *det->wanted))
        return SAC_FAIL(det->dev->ctx, SAC_ERR_MEMORY, "no memory for the classes");
    det->wanted[det->wanted_count++] = class_id;
    return SAC_OK;
}

sac_result sac_detector_choose_classes(struct sac_detector *det, const char *list)
{
    if (list && !strcmp(list, "auto"))
        list = class_of_name(det, "person") >= 0 ? "person" : NULL;
    else if (list && !strcmp(list, "all"))
        list = NULL;
    char *copy = list ? sac_strdup(list) : NULL, *save = NULL;
    if (list && !copy)
        return SAC_FAIL(det->dev->ctx, SAC_ERR_MEMORY, "no memory for the classes");
    sac_result res = SAC_OK;
    for (char *name = copy ? strtok_r(copy, ",", &save) : NULL; name && res == SAC_OK;
         name = strtok_r(NULL, ",", &save))
        res = want_class(det, name + strspn(name, " ")); /* "person, car" */
    sac_free(copy);
    return res;
}

/* ---- questions ---- */

const char *sac_detector_class_name(const sac_detector *det, int class_id)
{
    if (!det)
        return "unknown";
    bool known = class_id >= 0 && class_id < det->contract.class_count;
    return known ? det->contract.classes[class_id] : "unknown";
}

int sac_detector_kept_classes(const sac_detector *det)
{
    if (!det)
        return 0;
    return det->wanted ? (int)det->wanted_count : det->contract.class_count;
}

int sac_detector_keeps_only(const sac_detector *det, const char *name)
{
    if (!det || !name)
        return 0;
    if (sac_detector_kept_classes(det) != 1)
        return 0;
    return strcmp(sac_detector_class_name(det, det->wanted ? det->wanted[0] : 0), name) == 0;
}

void sac_detector_describe_classes(const sac_detector *det, char *out, size_t size)
{
    if (!det || !out)
        return;
    const int       count = det->contract.class_count, kept = sac_detector_kept_classes(det);
    struct sentence text = {out, size, 0};
    add(&text, "%s", "");
    if (det->wanted || count == 1) {
        list_names(det, det->wanted, kept, &text);
        if (count > 1)
            add(&text, " (%d of %d)", kept, count);
    } else if (count) {
        add(&text, "all %d", count);
    } else {
        add(&text, "all");
    }
}
