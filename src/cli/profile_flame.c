/* SPDX-License-Identifier: Apache-2.0 */
/* Call stacks as a flame graph, which needs no script, as tables of functions and as a file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "whole_file.h"

enum {
    WIDTH = 1280,
    ROW_H = 18,
    LETTER_W = 7,         /* of 11 pixels */
    FUNCTIONS_MAX = 8192, /* in the tables; places are a power of two */
    PLACES = 4 * FUNCTIONS_MAX
};
static const double SHOWN_W = 1; /* narrower than this nothing is drawn */

/* ---- the file ---- */

static void put_folded(const void *user, FILE *out)
{
    const sac_stacks *stacks = user;
    struct sac_stack  stack;
    for (int i = 0; i < sac_stacks_count(stacks); i++)
        if (sac_stacks_get(stacks, i, &stack) == SAC_OK)
            fprintf(out, "%s %" PRIu64 "\n", stack.text, stack.samples);
}

int profile_write_folded(const struct profile *p, struct fault *fault)
{
    return whole_file_write(p->folded, put_folded, p->stacks, fault);
}

/* ---- the tree ---- */

struct node {
    const char *name;                /* [length] of a stack's text */
    int         length, child, next; /* 0: none */
    uint64_t    samples;
};

struct tree {
    struct node *nodes; /* [count]; the first is of all */
    int          count, capacity, depth;
    bool         failed;
};

static int add_node(struct tree *t, const char *name, int length)
{
    if (t->count == t->capacity) {
        const int    capacity = t->capacity ? 2 * t->capacity : 1024;
        struct node *nodes = realloc(t->nodes, (size_t)capacity * sizeof *nodes);
        t->failed |= !nodes;
        if (!nodes)
            return 0;
        t->nodes = nodes;
        t->capacity = capacity;
    }
    t->nodes[t->count] = (struct node){.name = name, .length = length};
    return t->count++;
}

static int child_of(struct tree *t, int node, const char *name, int length)
{
    for (int c = t->nodes[node].child; c; c = t->nodes[c].next)
        if (t->nodes[c].length == length && memcmp(t->nodes[c].name, name, (size_t)length) == 0)
            return c;
    const int c = add_node(t, name, length);
    if (c) {
        t->nodes[c].next = t->nodes[node].child;
        t->nodes[node].child = c;
    }
    return c;
}

static void add_stack(struct tree *t, const struct sac_stack *s)
{
    int node = 0, depth = 0;
    t->nodes[0].samples += s->samples;
    for (const char *at = s->text; *at && !t->failed; depth++) {
        const int length = (int)strcspn(at, ";");
        node = child_of(t, node, at, length);
        t->nodes[node].samples += node ? s->samples : 0;
        at += length + (at[length] == ';');
    }
    t->depth = depth > t->depth ? depth : t->depth;
}

/* ---- the drawing ---- */

static void put_part(FILE *out, const char *name, int length)
{
    char text[256];
    snprintf(text, sizeof text, "%.*s", length, name);
    profile_put_text(out, text);
}

/* Warm ones by name; of threads, and of what has no name, grey ones. */
static void put_colour(FILE *out, const struct node *n, int depth)
{
    unsigned hash = 5381;
    for (int i = 0; i < n->length; i++)
        hash = hash * 33 + (unsigned char)n->name[i];
    if (depth == 0 || n->name[0] == '[')
        fprintf(out, "#d1d5db");
    else
        fprintf(out, "hsl(%u,%u%%,%u%%)", 8 + hash % 44, 78 + hash / 44 % 16, 66 + hash / 704 % 10);
}

static void put_box(FILE *out, const struct tree *t, const struct node *n, double x, int depth)
{
    const double all = (double)t->nodes[0].samples, w = WIDTH * (double)n->samples / all;
    const int    letters = (int)((w - 6) / LETTER_W);
    fprintf(out, "<rect x=%.1f y=%d width=%.1f height=%d fill=\"", x, depth * ROW_H,
            w > 1 ? w - 0.5 : w, ROW_H - 1);
    put_colour(out, n, depth);
    fputs("\"><title>", out);
    put_part(out, n->name, n->length);
    fprintf(out, " %.2f %%</title></rect>", 100 * (double)n->samples / all);
    if (letters < 3)
        return;
    fprintf(out, "<text x=%.1f y=%d>", x + 3, depth * ROW_H + 13);
    put_part(out, n->name, n->length < letters ? n->length : letters - 1);
    fputs(n->length < letters ? "</text>" : "&#8230;</text>", out);
}

static int largest_first(const void *a, const void *b)
{
    const struct node *x = *(const struct node *const *)a, *y = *(const struct node *const *)b;
    if (x->samples != y->samples)
        return x->samples < y->samples ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* What is under a node, beginning at x. Returns the deepest row. False memory: t->failed. */
static int put_under(FILE *out, struct tree *t, int node, double x, int depth, bool drawn)
{
    int deepest = depth - 1, n = 0;
    for (int c = t->nodes[node].child; c; c = t->nodes[c].next)
        n++;
    const struct node **order = malloc(((size_t)n + 1) * sizeof *order);
    t->failed |= !order;
    if (!order)
        return deepest;
    n = 0;
    for (int c = t->nodes[node].child; c; c = t->nodes[c].next)
        order[n++] = &t->nodes[c];
    qsort(order, (size_t)n, sizeof *order, largest_first);
    for (int i = 0; i < n; i++) {
        const double w = WIDTH * (double)order[i]->samples / (double)t->nodes[0].samples;
        if (w < SHOWN_W)
            break;
        if (drawn)
            put_box(out, t, order[i], x, depth);
        const int under = put_under(out, t, (int)(order[i] - t->nodes), x, depth + 1, drawn);
        deepest = under > deepest ? under : deepest;
        x += w;
    }
    free(order);
    return deepest;
}

static bool put_flame(FILE *out, const sac_stacks *stacks)
{
    struct tree      t = {0};
    struct sac_stack s;
    add_node(&t, "", 0);
    for (int i = 0; i < sac_stacks_count(stacks) && !t.failed; i++)
        if (sac_stacks_get(stacks, i, &s) == SAC_OK)
            add_stack(&t, &s);
    const int rows = t.failed ? 0 : put_under(out, &t, 0, 0, 0, false) + 1;
    if (!t.failed && rows > 0) {
        fprintf(out, "<div class=w><svg viewBox=\"0 0 %d %d\" class=t role=img>", WIDTH,
                rows * ROW_H);
        put_under(out, &t, 0, 0, 0, true);
        fputs("</svg></div>\n", out);
    }
    free(t.nodes);
    return !t.failed;
}

/* ---- the functions ---- */

struct function {
    const char *name;
    int         length, seen; /* seen: 1 + the last stack that it was in */
    uint64_t    own, total;
};

struct functions {
    struct function item[FUNCTIONS_MAX];
    int             count, place[PLACES]; /* 1 + its number; 0: free */
};

/* NULL: there are too many. */
static struct function *function_of(struct functions *f, const char *name, int length)
{
    unsigned at = 2166136261u;
    for (int i = 0; i < length; i++)
        at = (at ^ (unsigned char)name[i]) * 16777619u;
    for (at %= PLACES; f->place[at]; at = (at + 1) % PLACES) {
        struct function *item = &f->item[f->place[at] - 1];
        if (item->length == length && memcmp(item->name, name, (size_t)length) == 0)
            return item;
    }
    if (f->count == FUNCTIONS_MAX)
        return NULL;
    f->item[f->count] = (struct function){.name = name, .length = length};
    f->place[at] = ++f->count;
    return &f->item[f->count - 1];
}

/* A function that calls itself counts once. The first part is the thread. */
static void add_functions(struct functions *f, const struct sac_stack *s, int number)
{
    const char *at = strchr(s->text, ';');
    while (at) {
        const int        length = (int)strcspn(++at, ";");
        struct function *item = function_of(f, at, length);
        if (item && item->seen != number + 1)
            item->total += s->samples;
        if (item && !at[length])
            item->own += s->samples;
        if (item)
            item->seen = number + 1;
        at = at[length] ? at + length : NULL;
    }
}

static int by_own(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->own != y->own)
        return x->own < y->own ? 1 : -1;
    return (x->total < y->total) - (x->total > y->total);
}

static bool put_functions(FILE *out, const sac_stacks *stacks, uint64_t samples, int rows)
{
    struct functions *f = calloc(1, sizeof *f);
    struct sac_stack  s;
    if (!f)
        return false;
    for (int i = 0; i < sac_stacks_count(stacks); i++)
        if (sac_stacks_get(stacks, i, &s) == SAC_OK)
            add_functions(f, &s, i);
    qsort(f->item, (size_t)f->count, sizeof *f->item, by_own);
    fputs("<div class=w><table><tr><th>function</th><th class=n>of its own</th>"
          "<th class=n>with what it calls</th>"
          "</tr>\n",
          out);
    for (int i = 0; i < f->count && i < rows && f->item[i].own > 0; i++) {
        fputs("<tr><td>", out);
        put_part(out, f->item[i].name, f->item[i].length);
        fprintf(out, "</td><td class=n>%.1f %%</td><td class=n>%.1f %%</td></tr>\n",
                100 * (double)f->item[i].own / (double)samples,
                100 * (double)f->item[i].total / (double)samples);
    }
    fputs("</table></div>\n", out);
    free(f);
    return true;
}

/* ---- the part of the page ---- */

void profile_put_stacks(FILE *out, const sac_stacks *stacks, int rows)
{
    struct sac_stacks_summary s = {0};
    bool                      whole = true;
    sac_stacks_get_summary(stacks, &s);
    const double seen_s = (double)s.samples * s.interval_us * 1e-6;
    fprintf(
        out,
        "<h2>Call stacks</h2>\n<p>%" PRIu64 " samples, one after each %.0f ms of a thread's "
        "CPU time: %.2f of the %.2f s of CPU time that the process had in %.2f s. Sampling took "
        "%.2f %% of it.</p>\n",
        s.samples, s.interval_us * 1e-3, seen_s, s.cpu_s, s.elapsed_s,
        s.cpu_s > 0 ? 100 * s.cost_s / s.cpu_s : 0);
    if (s.lost || s.other)
        fprintf(out,
                "<p>%" PRIu64 " samples were lost, and %" PRIu64
                " are of stacks that there was no room for.</p>\n",
                s.lost, s.other);
    if (s.note[0]) {
        fputs("<p>Not all is there: ", out);
        profile_put_text(out, s.note);
        fputs(".</p>\n", out);
    }
    if (sac_stacks_count(stacks) == 0) {
        fputs("<p>There are no stacks to show.</p>\n", out);
        return;
    }
    whole = put_flame(out, stacks);
    whole &= put_functions(out, stacks, s.samples, rows);
    if (!whole)
        fputs(
            "<p>There was no memory to draw all of it; the folded stacks are in their file.</p>\n",
            out);
}
