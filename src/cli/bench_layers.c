/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shape_text.h"
#include "wrap.h"

/* ---- collecting ---- */

static void forget(struct layer *l)
{
    free(l->name);
    free(l->operator_name);
    free(l->kernel);
}

/* NULL: no memory. */
static struct layer *add(struct layers *layers, const char *name, const char *operator_name,
                         const char *kernel)
{
    struct layer *items = realloc(layers->items, (layers->count + 1) * sizeof *items);
    layers->items = items ? items : layers->items;
    struct layer l = {.name = strdup(name),
                      .operator_name = strdup(operator_name),
                      .kernel = strdup(kernel),
                      .count = 1};
    if (!items || !l.name || !l.operator_name || !l.kernel) {
        layers->failed = true;
        forget(&l);
        return NULL;
    }
    items[layers->count] = l;
    return &items[layers->count++];
}

static void add_step(void *user, const struct sac_model_step *step)
{
    struct layers *layers = user;
    struct layer  *l = add(layers, step->name, step->operator_name, step->kernel);
    if (!l)
        return;
    l->place = layers->count - 1;
    l->ms = step->ms;
    l->bytes = (double)(step->bytes_read + step->bytes_written);
    l->flops = (double)step->flops;
    l->made = (double)step->bytes_written;
    l->dynamic = step->output.rank < 0;
    if (!l->dynamic)
        shape_text(&step->output, l->output, sizeof l->output);
    layers->ms += l->ms;
}

static int by_time(const void *a, const void *b)
{
    const struct layer *x = a, *y = b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

static void sort(struct layers *layers)
{
    if (layers->count)
        qsort(layers->items, layers->count, sizeof *layers->items, by_time);
}

bool layers_read(struct layers *layers, sac_model *model, const struct sac_device_rates *rates)
{
    *layers = (struct layers){.rates = *rates};
    sac_model_list_steps(model, add_step, layers);
    sort(layers);
    return !layers->failed;
}

void layers_finish(struct layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        forget(&layers->items[i]);
    free(layers->items);
    *layers = (struct layers){0};
}

/* The sums of each operator; false: no memory. */
static bool sum_operators(const struct layers *layers, struct layers *sums)
{
    *sums = (struct layers){.rates = layers->rates, .ms = layers->ms};
    for (size_t i = 0; i < layers->count; i++) {
        const struct layer *l = &layers->items[i];
        struct layer       *sum = NULL;
        for (size_t k = 0; k < sums->count && !sum; k++)
            if (strcmp(sums->items[k].operator_name, l->operator_name) == 0)
                sum = &sums->items[k];
        if (sum)
            sum->count++;
        else
            sum = add(sums, "", l->operator_name, "");
        if (!sum)
            return false;
        sum->ms += l->ms;
        sum->bytes += l->bytes;
        sum->flops += l->flops;
    }
    sort(sums);
    return true;
}

/* ---- figures ---- */

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static double bytes_per_s(const struct layer *l)
{
    return ratio(l->bytes, l->ms / 1e3);
}

static double flops_per_s(const struct layer *l)
{
    return ratio(l->flops, l->ms / 1e3);
}

enum bound layer_bound(const struct layers *layers, const struct layer *l, double *least_ms)
{
    const struct sac_device_rates *r = &layers->rates;
    const double                   need_ms[BOUND_COUNT] = {
                          [BOUND_LAUNCH] = r->step_ms,
                          [BOUND_MEMORY] = 1e3 * ratio(l->bytes, r->bytes_per_s),
                          [BOUND_MATRIX] = 1e3 * ratio(l->flops, r->flops_per_s),
    };
    enum bound most = BOUND_LAUNCH;
    for (int i = 1; i < BOUND_COUNT; i++)
        most = need_ms[i] > need_ms[most] ? (enum bound)i : most;
    if (least_ms)
        *least_ms = need_ms[most];
    return most;
}

const char *layer_bound_name(enum bound bound)
{
    static const char *const names[BOUND_COUNT] = {"launch", "memory", "matrix"};
    return names[bound];
}

/* ---- text ---- */

enum { NAME_COLUMNS = 36, OPERATOR_COLUMNS = 18, KERNEL_COLUMNS = 28 };

/* The end of a name that is too long tells it from others; the beginning of a kernel. */
static void print_cell(const char *text, int columns, bool end)
{
    char         cell[64];
    const size_t length = strlen(text), room = (size_t)columns;
    if (length <= room)
        snprintf(cell, sizeof cell, "%s", text);
    else if (end)
        snprintf(cell, sizeof cell, "..%s", text + length - (room - 2));
    else
        snprintf(cell, sizeof cell, "%.*s..", columns - 2, text);
    print_clean(stdout, cell);
    printf("%*s", columns + 2 - (int)strlen(cell), "");
}

/* Three digits that count. */
static void print_figure(double v, int columns)
{
    const int decimals = v >= 99.95 ? 0 : v >= 9.995 ? 1 : v >= 0.9995 ? 2 : 3;
    printf("%*.*f", columns, decimals, v);
}

static void print_heads(void)
{
    printf("  %-*s  %-*s  %-*s  %9s  %6s  %8s  %8s  %7s  %5s  %8s  %5s  %s\n", NAME_COLUMNS,
           "layer", OPERATOR_COLUMNS, "operator", KERNEL_COLUMNS, "kernel", "ms", "share", "MB",
           "GFLOP", "GB/s", "of it", "TFLOP/s", "of it", "bound by");
}

static void print_layer(const struct layers *layers, const struct layer *l)
{
    const struct sac_device_rates *r = &layers->rates;
    printf("  ");
    print_cell(l->name, NAME_COLUMNS, true);
    print_cell(l->operator_name, OPERATOR_COLUMNS, false);
    print_cell(l->kernel, KERNEL_COLUMNS, false);
    if (l->dynamic) {
        puts("shapes known only while running, not measured");
        return;
    }
    printf("%9.4f  %5.1f%%  ", l->ms, 100 * ratio(l->ms, layers->ms));
    print_figure(l->bytes / 1e6, 8);
    printf("  ");
    print_figure(l->flops / 1e9, 8);
    printf("  ");
    print_figure(bytes_per_s(l) / 1e9, 7);
    printf("  %4.0f%%  ", 100 * ratio(bytes_per_s(l), r->bytes_per_s));
    print_figure(flops_per_s(l) / 1e12, 8);
    printf("  %4.0f%%  %s\n", 100 * ratio(flops_per_s(l), r->flops_per_s),
           layer_bound_name(layer_bound(layers, l, NULL)));
}

static void print_sum(const struct layers *sums, const struct layer *sum)
{
    printf("  ");
    print_cell(sum->operator_name, OPERATOR_COLUMNS, false);
    printf("%6d  %9.4f  %5.1f%%  ", sum->count, sum->ms, 100 * ratio(sum->ms, sums->ms));
    print_figure(sum->bytes / 1e6, 8);
    printf("  ");
    print_figure(sum->flops / 1e9, 8);
    putchar('\n');
}

void layers_print(const struct layers *layers)
{
    struct layers sums;
    char          all_name[] = "all";
    int           left_out = 0;
    print_heads();
    for (size_t i = 0; i < layers->count; i++) {
        print_layer(layers, &layers->items[i]);
        left_out += layers->items[i].dynamic;
    }
    printf("\n  %-*s  %6s  %9s  %6s  %8s  %8s\n", OPERATOR_COLUMNS, "operator", "layers", "ms",
           "share", "MB", "GFLOP");
    if (sum_operators(layers, &sums)) {
        struct layer all = {.operator_name = all_name, .ms = layers->ms};
        for (size_t i = 0; i < sums.count; i++) {
            print_sum(&sums, &sums.items[i]);
            all.count += sums.items[i].count;
            all.bytes += sums.items[i].bytes;
            all.flops += sums.items[i].flops;
        }
        print_sum(&sums, &all);
    }
    if (left_out)
        printf(
            "  without %d layer%s whose shapes are known only while running: a run takes as much "
            "longer as they do\n",
            left_out, left_out == 1 ? "" : "s");
    putchar('\n');
    layers_finish(&sums);
}

/* ---- JSON ---- */

static void json_cost(const struct layers *layers, const struct layer *l, struct sac_json *json)
{
    sac_json_real(json, "ms", l->ms);
    sac_json_real(json, "share", ratio(l->ms, layers->ms));
    sac_json_int(json, "bytes", (int64_t)l->bytes);
    sac_json_int(json, "flops", (int64_t)l->flops);
}

static void json_layer(const struct layers *layers, const struct layer *l, struct sac_json *json)
{
    sac_json_open(json, NULL, '{');
    sac_json_string(json, "name", l->name);
    sac_json_string(json, "operator", l->operator_name);
    sac_json_string(json, "kernel", l->kernel);
    sac_json_bool(json, "measured", !l->dynamic);
    if (!l->dynamic) {
        sac_json_string(json, "output", l->output);
        json_cost(layers, l, json);
        sac_json_real(json, "bytes_per_s", bytes_per_s(l));
        sac_json_real(json, "bandwidth_share", ratio(bytes_per_s(l), layers->rates.bytes_per_s));
        sac_json_real(json, "flops_per_s", flops_per_s(l));
        sac_json_real(json, "matrix_share", ratio(flops_per_s(l), layers->rates.flops_per_s));
        sac_json_string(json, "bound_by", layer_bound_name(layer_bound(layers, l, NULL)));
    }
    sac_json_close(json, '}');
}

void layers_json(const struct layers *layers, struct sac_json *json)
{
    struct layers sums;
    sac_json_open(json, "layers", '[');
    for (size_t i = 0; i < layers->count; i++)
        json_layer(layers, &layers->items[i], json);
    sac_json_close(json, ']');
    sac_json_open(json, "operators", '[');
    const bool all = sum_operators(layers, &sums);
    for (size_t i = 0; i < sums.count && all; i++) {
        sac_json_open(json, NULL, '{');
        sac_json_string(json, "operator", sums.items[i].operator_name);
        sac_json_int(json, "layers", sums.items[i].count);
        json_cost(&sums, &sums.items[i], json);
        sac_json_close(json, '}');
    }
    sac_json_close(json, ']');
    layers_finish(&sums);
}
