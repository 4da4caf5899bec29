/* SPDX-License-Identifier: Apache-2.0 */
/* A range of shapes that was planned at some of them: which pages serve the shapes between. */
#include <math.h>
#include <string.h>

#include "engine/plan/planbook.h"

enum { INPUTS_MAX = 16, NEAR_MAX = 256 };

/* ---- shapes, read back from a page's ---- */

struct shapes {
    struct sac_operand inputs[INPUTS_MAX];
    int                count;
};

static bool read_dtype(const char **at, enum sac_dtype *out)
{
    for (int d = SAC_DTYPE_NONE + 1; d < SAC_DTYPE_COUNT; d++) {
        const char  *name = sac_dtype_name((enum sac_dtype)d);
        const size_t n = strlen(name);
        if (strncmp(*at, name, n) == 0 && (*at)[n] == '[') {
            *at += n + 1;
            *out = (enum sac_dtype)d;
            return true;
        }
    }
    return false;
}

/* "1,3,416,416]" */
static bool read_dims(const char **at, struct sac_operand *o)
{
    for (; **at && **at != ']'; o->rank++) {
        char           *end;
        const long long dim = strtoll(*at, &end, 10);
        if (end == *at || dim < 0 || o->rank == SAC_RANK_MAX || (*end != ',' && *end != ']'))
            return false;
        o->dims[o->rank] = dim;
        *at = end + (*end == ',');
    }
    return *(*at)++ == ']';
}

/* false: the text is of something else, as "batch of 1 opened" is. */
static bool read_shapes(const char *text, struct shapes *out)
{
    out->count = 0;
    for (const char *at = text; *at; out->count++) {
        struct sac_operand *o = &out->inputs[out->count];
        if (out->count == INPUTS_MAX)
            return false;
        *o = (struct sac_operand){.present = true};
        if ((out->count && *at++ != ' ') || !read_dtype(&at, &o->dtype) || !read_dims(&at, o))
            return false;
    }
    return out->count > 0;
}

/* Is no size of a above b's, in inputs of the same types and ranks? */
static bool at_most(const struct shapes *a, const struct shapes *b)
{
    bool good = a->count == b->count;
    for (int i = 0; i < a->count && good; i++) {
        const struct sac_operand *x = &a->inputs[i], *y = &b->inputs[i];
        good = x->dtype == y->dtype && x->rank == y->rank;
        for (int d = 0; d < x->rank && good; d++)
            good = x->dims[d] <= y->dims[d];
    }
    return good;
}

/* Twice as large is as far as half as large. The elements count beside their sides: 16 by 64 is
 * nearer to 32 by 32 than to 64 by 64. */
static double distance(const struct shapes *a, const struct shapes *b)
{
    double sum = 0;
    for (int i = 0; i < a->count; i++) {
        double elements = 0;
        for (int d = 0; d < a->inputs[i].rank; d++) {
            const double side = log2((double)SAC_MAX(a->inputs[i].dims[d], (int64_t)1) /
                                     (double)SAC_MAX(b->inputs[i].dims[d], (int64_t)1));
            sum += fabs(side);
            elements += side;
        }
        sum += fabs(elements);
    }
    return sum;
}

/* ---- the range ---- */

bool sac_book_set_range(struct sac_plan_book *book, const char *least, const char *greatest)
{
    struct shapes low, high;
    sac_free(book->least);
    sac_free(book->greatest);
    book->least = book->greatest = NULL;
    if (!least || !greatest || !read_shapes(least, &low) || !read_shapes(greatest, &high) ||
        !at_most(&low, &high))
        return false;
    book->least = sac_strdup(least);
    book->greatest = sac_strdup(greatest);
    if (book->least && book->greatest)
        return true;
    return sac_book_set_range(book, NULL, NULL);
}

struct lender {
    const struct sac_book_page *page;
    double                      distance;
};

/* The pages in the range, the nearest first; of two at one distance the one that was there first.
 */
static size_t find_lenders(const struct sac_plan_book *book, const struct shapes *wanted,
                           const struct shapes *low, const struct shapes *high,
                           struct lender out[NEAR_MAX])
{
    size_t        n = 0;
    struct shapes have;
    for (size_t i = 0; i < book->count && n < NEAR_MAX; i++) {
        const struct sac_book_page *page = &book->pages[i];
        if (!read_shapes(page->shapes, &have) || !at_most(low, &have) || !at_most(&have, high))
            continue;
        const double far = distance(&have, wanted);
        size_t       at = n++;
        for (; at > 0 && out[at - 1].distance > far; at--)
            out[at] = out[at - 1];
        out[at] = (struct lender){page, far};
    }
    return n;
}

static size_t values_of(const struct lender *lenders, size_t n)
{
    int most = -1;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < lenders[i].page->count; c++)
            most = SAC_MAX(most, lenders[i].page->values[c]);
    return (size_t)(most + 1);
}

static void lend(const struct sac_book_page *page, const char **choices)
{
    for (size_t c = 0; c < page->count; c++) {
        const int value = page->values[c];
        if (value >= 0 && page->choices[c] && !choices[value])
            choices[value] = page->choices[c];
    }
}

const struct sac_book_page *sac_book_lend(const struct sac_plan_book *book, const char *shapes,
                                          const char ***choices, size_t *count)
{
    struct shapes wanted, low, high;
    struct lender lenders[NEAR_MAX];
    if (!book->least || !read_shapes(shapes, &wanted) || !read_shapes(book->least, &low) ||
        !read_shapes(book->greatest, &high) || !at_most(&low, &wanted) || !at_most(&wanted, &high))
        return NULL;
    const size_t n = find_lenders(book, &wanted, &low, &high, lenders);
    *count = values_of(lenders, n);
    *choices = *count ? sac_calloc(*count, sizeof **choices) : NULL;
    for (size_t i = 0; i < n && *choices; i++)
        lend(lenders[i].page, *choices);
    return *choices ? lenders[0].page : NULL;
}
