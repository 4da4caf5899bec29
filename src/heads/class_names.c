/* SPDX-License-Identifier: Apache-2.0 */
/* A network's classes by the names that people give, and the names for people. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "heads/heads.h"

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

int sac_contract_find_class(const struct sac_model_contract *contract, const char *name)
{
    char *end;
    int   count = contract->class_count;
    long  number = strtol(name, &end, 10);
    if (end != name && !*end && number >= 0 && number < (count ? count : INT_MAX))
        return (int)number;
    for (int i = 0; i < count; i++)
        if (!strcmp(contract->classes[i], name))
            return i;
    return -1;
}

/* The classes that a wrong name may mean: those it is part of, else the one that is few typing
 * slips away. */
static void suggest(const struct sac_model_contract *contract, const char *name,
                    struct sentence *out)
{
    struct sac_nearest best = {0};
    int                parts = 0;
    for (int i = 0; i < contract->class_count; i++) {
        const char *known = contract->classes[i];
        sac_nearest_offer(&best, name, known);
        if (strlen(name) >= 3 && strcasestr(known, name) && parts++ < SHOWN_MAX)
            add(out, "%s'%s'", parts > 1 ? ", " : "did you mean ", known);
    }
    if (!parts && best.word)
        add(out, "did you mean '%s'", best.word);
    if (parts || best.word)
        add(out, "? ");
}

static void list_names(const struct sac_model_contract *contract, const int *classes, int count,
                       struct sentence *out)
{
    for (int i = 0; i < count && i < SHOWN_MAX; i++) {
        const int class_id = classes ? classes[i] : i;
        if (class_id < contract->class_count)
            add(out, "%s%s", i ? ", " : "", contract->classes[class_id]);
        else
            add(out, "%sclass %d", i ? ", " : "", class_id);
    }
    add(out, "%s", count > SHOWN_MAX ? ", ..." : "");
}

/* The sentence for a name that is none, with those that it may mean. */
static sac_result refuse_class(sac_context *ctx, const char *path,
                               const struct sac_model_contract *contract, const char *name)
{
    char            text[1024] = "";
    struct sentence more = {text, sizeof text, 0};
    const int       count = contract->class_count;
    if (count) {
        suggest(contract, name, &more);
        add(&more, "it has %d: ", count);
        list_names(contract, NULL, count, &more);
    } else {
        add(&more, "it names none: give numbers");
    }
    return SAC_FAIL(ctx, SAC_ERR_ARG, "%s has no class '%s'; %s", path, name, text);
}

sac_result sac_contract_choose_classes(sac_context *ctx, const char *path,
                                       const struct sac_model_contract *contract, const char *list,
                                       void *user, sac_result (*want)(void *user, int class_id))
{
    char      *copy = sac_strdup(list), *save = NULL;
    sac_result res = copy ? SAC_OK : SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for the classes");
    for (char *name = copy ? strtok_r(copy, ",", &save) : NULL; name && res == SAC_OK;
         name = strtok_r(NULL, ",", &save)) {
        name += strspn(name, " "); /* "person, car" */
        const int class_id = sac_contract_find_class(contract, name);
        res = class_id < 0 ? refuse_class(ctx, path, contract, name) : want(user, class_id);
    }
    sac_free(copy);
    return res;
}

void sac_contract_describe_classes(const struct sac_model_contract *contract, const int *classes,
                                   int count, int of, char *out, size_t size)
{
    struct sentence text = {out, size, 0};
    add(&text, "%s", "");
    if (classes || of == 1) {
        list_names(contract, classes, count, &text);
        if (of > 1)
            add(&text, " (%d of %d)", count, of);
    } else if (of) {
        add(&text, "all %d", of);
    } else {
        add(&text, "all");
    }
}
