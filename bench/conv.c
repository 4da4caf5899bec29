/* SPDX-License-Identifier: Apache-2.0 */
/* The convolutions of known networks on a GPU, each with bias, activation and residual as one step,
 * against the time that their bytes and multiplications need. Equal layers are measured once and
 * counted.
 * usage: bench_conv [NETWORK|LAYER [BATCH]] [--likely] [--fp32] [--ways] [--json FILE]
 *   NETWORK  yolox_s, resnet50_reid, deeplabv3, convnext_t, efficientnet_b0 and segformer_b0 (of
 *            these three the depthwise layers), windows (depthwise ones of many sizes), or all
 *            (default)
 *   LAYER    one, as IN,OUT,KERNEL,STRIDE,SIZE[,none|relu|gelu], else with SiLU: 512,128,1,1,40
 *   BATCH    default: 1, 8, 32 (and 128 for ReID; 1 for a LAYER)
 *   --likely measure no variants, take what the heuristics name first
 *   --fp32   instead of FP16
 *   --ways   print every layer, and the time of each way that is tried for it */
#include <stdio.h>
#include <string.h>

#include "engine/cuda/products/conv_spec.h"
#include "tests/parity/ask.h"
#include "tests/parity/gpu_weights.h"

enum { LAYERS_MAX = 160, WORST = 3 };
/* One H200, measured: a copy's bytes read and written, and a product of large float16 matrices. */
static const double BYTES_PER_US = 4.2e6, FLOPS_PER_US = 700e6;

struct layer {
    int in, out, kernel, stride, pad, dilation, h, w; /* h, w of the input */
    int act, residual, groups, times;
};
struct network {
    const char  *name;
    struct layer layers[LAYERS_MAX];
    int          count;
};
struct result {
    double us, roof_us, prepare_ms;
    char   implementation[64], choice[SAC_KERNEL_CHOICE_MAX];
};

static sac_context       *ctx;
static sac_device        *dev;
static bool               likely, all_ways;
static enum sac_precision precision = SAC_PRECISION_FP16;
static FILE              *json;

static void must(sac_result res)
{
    char why[512];
    if (res == SAC_OK)
        return;
    sac_context_last_error(ctx, why, sizeof why);
    fprintf(stderr, "bench_conv: %s\n", why);
    exit(1);
}

/* ---- networks ---- */

static void add(struct network *n, struct layer l)
{
    l.times = 1;
    l.dilation = SAC_MAX(l.dilation, 1);
    l.stride = SAC_MAX(l.stride, 1);
    l.groups = SAC_MAX(l.groups, 1);
    for (int i = 0; i < n->count; i++) {
        struct layer *have = &n->layers[i];
        l.times = have->times;
        if (memcmp(have, &l, sizeof l) == 0) {
            have->times++;
            return;
        }
        l.times = 1;
    }
    if (n->count < LAYERS_MAX)
        n->layers[n->count++] = l;
}

static void conv(struct network *n, int in, int out, int kernel, int stride, int h, int act,
                 int residual)
{
    add(n, (struct layer){.in = in,
                          .out = out,
                          .kernel = kernel,
                          .stride = stride,
                          .pad = kernel / 2,
                          .h = h,
                          .w = h,
                          .act = act,
                          .residual = residual});
}

static void csp(struct network *n, int in, int out, int turns, bool add_input, int h)
{
    const int half = out / 2;
    conv(n, in, half, 1, 1, h, SAC_ACT_SILU, 0);
    conv(n, in, half, 1, 1, h, SAC_ACT_SILU, 0);
    for (int i = 0; i < turns; i++) {
        conv(n, half, half, 1, 1, h, SAC_ACT_SILU, 0);
        conv(n, half, half, 3, 1, h, SAC_ACT_SILU, add_input ? SAC_RESIDUAL_AFTER : 0);
    }
    conv(n, out, out, 1, 1, h, SAC_ACT_SILU, 0);
}

static void yolox_s(struct network *n)
{
    static const int widths[] = {128, 256, 512};
    n->name = "yolox_s";
    add(n, (struct layer){.in = 3,
                          .out = 32,
                          .kernel = 6,
                          .stride = 2,
                          .pad = 2,
                          .h = 640,
                          .w = 640,
                          .act = SAC_ACT_SILU});
    conv(n, 32, 64, 3, 2, 320, SAC_ACT_SILU, 0);
    csp(n, 64, 64, 1, true, 160);
    conv(n, 64, 128, 3, 2, 160, SAC_ACT_SILU, 0);
    csp(n, 128, 128, 3, true, 80);
    conv(n, 128, 256, 3, 2, 80, SAC_ACT_SILU, 0);
    csp(n, 256, 256, 3, true, 40);
    conv(n, 256, 512, 3, 2, 40, SAC_ACT_SILU, 0);
    conv(n, 512, 256, 1, 1, 20, SAC_ACT_SILU, 0);
    conv(n, 1024, 512, 1, 1, 20, SAC_ACT_SILU, 0);
    csp(n, 512, 512, 1, false, 20);
    conv(n, 512, 256, 1, 1, 20, SAC_ACT_SILU, 0);
    csp(n, 512, 256, 1, false, 40);
    conv(n, 256, 128, 1, 1, 40, SAC_ACT_SILU, 0);
    csp(n, 256, 128, 1, false, 80);
    conv(n, 128, 128, 3, 2, 80, SAC_ACT_SILU, 0);
    csp(n, 256, 256, 1, false, 40);
    conv(n, 256, 256, 3, 2, 40, SAC_ACT_SILU, 0);
    csp(n, 512, 512, 1, false, 20);
    for (int level = 0; level < 3; level++) {
        const int h = 80 >> level;
        conv(n, widths[level], 128, 1, 1, h, SAC_ACT_SILU, 0);
        for (int i = 0; i < 4; i++)
            conv(n, 128, 128, 3, 1, h, SAC_ACT_SILU, 0);
        conv(n, 128, 80, 1, 1, h, 0, 0);
        conv(n, 128, 4, 1, 1, h, 0, 0);
        conv(n, 128, 1, 1, 1, h, 0, 0);
    }
}

struct stage {
    int blocks, width, stride, dilation;
};

static void resnet50(struct network *n, int h, int w, const struct stage stages[4])
{
    int in = 64;
    add(n, (struct layer){.in = 3,
                          .out = 64,
                          .kernel = 7,
                          .stride = 2,
                          .pad = 3,
                          .h = h,
                          .w = w,
                          .act = SAC_ACT_RELU});
    h /= 4;
    w /= 4;
    for (int s = 0; s < 4; s++)
        for (int b = 0; b < stages[s].blocks; b++) {
            const int width = stages[s].width, stride = b == 0 ? stages[s].stride : 1,
                      d = stages[s].dilation;
            add(n, (struct layer){
                       .in = in, .out = width, .kernel = 1, .h = h, .w = w, .act = SAC_ACT_RELU});
            add(n, (struct layer){.in = width,
                                  .out = width,
                                  .kernel = 3,
                                  .stride = stride,
                                  .pad = d,
                                  .dilation = d,
                                  .h = h,
                                  .w = w,
                                  .act = SAC_ACT_RELU});
            if (b == 0)
                add(n,
                    (struct layer){
                        .in = in, .out = 4 * width, .kernel = 1, .stride = stride, .h = h, .w = w});
            h /= stride;
            w /= stride;
            add(n, (struct layer){.in = width,
                                  .out = 4 * width,
                                  .kernel = 1,
                                  .h = h,
                                  .w = w,
                                  .act = SAC_ACT_RELU,
                                  .residual = SAC_RESIDUAL_BEFORE});
            in = 4 * width;
        }
}

static void resnet50_reid(struct network *n)
{
    static const struct stage stages[] = {
        {3, 64, 1, 1}, {4, 128, 2, 1}, {6, 256, 2, 1}, {3, 512, 2, 1}};
    n->name = "resnet50_reid";
    resnet50(n, 256, 128, stages);
}

static void deeplabv3(struct network *n)
{
    static const struct stage stages[] = {
        {3, 64, 1, 1}, {4, 128, 2, 1}, {6, 256, 1, 2}, {3, 512, 1, 4}};
    n->name = "deeplabv3";
    resnet50(n, 512, 512, stages);
    conv(n, 2048, 256, 1, 1, 64, SAC_ACT_RELU, 0);
    for (int d = 12; d <= 36; d += 12)
        add(n, (struct layer){.in = 2048,
                              .out = 256,
                              .kernel = 3,
                              .pad = d,
                              .dilation = d,
                              .h = 64,
                              .w = 64,
                              .act = SAC_ACT_RELU});
    conv(n, 1280, 256, 1, 1, 64, SAC_ACT_RELU, 0);
    conv(n, 256, 256, 3, 1, 64, SAC_ACT_RELU, 0);
    conv(n, 256, 21, 1, 1, 64, 0, 0);
}

static void depthwise(struct network *n, int channels, int kernel, int stride, int h, int act,
                      int times)
{
    for (int i = 0; i < times; i++)
        add(n, (struct layer){.in = channels,
                              .out = channels,
                              .groups = channels,
                              .kernel = kernel,
                              .stride = stride,
                              .pad = kernel / 2,
                              .h = h,
                              .w = h,
                              .act = act});
}

static void convnext_t(struct network *n)
{
    n->name = "convnext_t";
    depthwise(n, 96, 7, 1, 56, 0, 3);
    depthwise(n, 192, 7, 1, 28, 0, 3);
    depthwise(n, 384, 7, 1, 14, 0, 9);
    depthwise(n, 768, 7, 1, 7, 0, 3);
}

static void efficientnet_b0(struct network *n)
{
    n->name = "efficientnet_b0";
    depthwise(n, 32, 3, 1, 112, SAC_ACT_SILU, 1);
    depthwise(n, 96, 3, 2, 112, SAC_ACT_SILU, 1);
    depthwise(n, 144, 3, 1, 56, SAC_ACT_SILU, 1);
    depthwise(n, 144, 5, 2, 56, SAC_ACT_SILU, 1);
    depthwise(n, 240, 5, 1, 28, SAC_ACT_SILU, 1);
    depthwise(n, 240, 3, 2, 28, SAC_ACT_SILU, 1);
    depthwise(n, 480, 3, 1, 14, SAC_ACT_SILU, 2);
    depthwise(n, 480, 5, 1, 14, SAC_ACT_SILU, 1);
    depthwise(n, 672, 5, 1, 14, SAC_ACT_SILU, 2);
    depthwise(n, 672, 5, 2, 14, SAC_ACT_SILU, 1);
    depthwise(n, 1152, 5, 1, 7, SAC_ACT_SILU, 3);
    depthwise(n, 1152, 3, 1, 7, SAC_ACT_SILU, 1);
}

static void segformer_b0(struct network *n)
{
    n->name = "segformer_b0";
    depthwise(n, 128, 3, 1, 128, 0, 2);
    depthwise(n, 256, 3, 1, 64, 0, 2);
    depthwise(n, 640, 3, 1, 32, 0, 2);
    depthwise(n, 1024, 3, 1, 16, 0, 2);
}

static void windows(struct network *n)
{
    n->name = "windows";
    for (int kernel = 3; kernel <= 11; kernel += 2)
        for (int stride = 1; stride <= 2; stride++)
            depthwise(n, 128, kernel, stride, 64, SAC_ACT_RELU, 1);
    add(n, (struct layer){.in = 256,
                          .out = 256,
                          .groups = 256,
                          .kernel = 3,
                          .pad = 6,
                          .dilation = 6,
                          .h = 64,
                          .w = 64,
                          .act = SAC_ACT_RELU});
    depthwise(n, 67, 3, 1, 64, SAC_ACT_RELU, 1);
}

/* ---- one layer ---- */

struct ready {
    const struct sac_kernel *k;
    struct sac_kernel_plan   plan;
    struct sac_buffer       *in, *out, *residual, *scratch;
};

static void queue(const struct ready *r, struct sac_device_stream *stream)
{
    void *in[SAC_OP_INPUTS_MAX] = {sac_buffer_data(r->in)},
         *out[SAC_OP_OUTPUTS_MAX] = {sac_buffer_data(r->out)};
    in[3] = r->residual ? sac_buffer_data(r->residual) : NULL;
    must(r->k->run(dev, r->plan.state, in, out, r->scratch ? sac_buffer_data(r->scratch) : NULL,
                   stream));
}

/* The least microseconds of one turn, of several in one graph. */
static double time_of(const struct ready *r, struct sac_device_stream *stream, double expected_us)
{
    const int                turns = (int)SAC_CLAMP(500 / expected_us, 1.0, 40.0);
    struct sac_device_graph *graph = NULL;
    double                   best = 1e30;
    queue(r, stream);
    must(dev->ops->stream_wait(stream));
    must(dev->ops->capture_begin(dev, stream));
    for (int i = 0; i < turns; i++)
        queue(r, stream);
    must(dev->ops->capture_end(dev, stream, &graph));
    for (int round = 0; round < 6; round++) {
        const int     launches = 4;
        const int64_t began = sac_time_ns();
        for (int i = 0; i < launches; i++)
            must(dev->ops->graph_launch(dev, stream, graph));
        must(dev->ops->stream_wait(stream));
        if (round > 0)
            best = SAC_MIN(best, (double)(sac_time_ns() - began) * 1e-3 / launches / turns);
    }
    dev->ops->graph_destroy(dev, &graph);
    return best;
}

static struct sac_buffer *buffer(size_t bytes)
{
    struct sac_buffer *b = NULL;
    if (bytes)
        must(sac_buffer_create(dev, bytes, "bench", &b));
    return b;
}

/* A FusedConv of this shape, whose weights are random and whose maps lie on the device alone. */
struct node {
    struct sac_node    node;
    struct sac_attr    attrs[6];
    int64_t            pads[4], strides[2], dilations[2];
    struct sac_op_call call;
};

static float *random_numbers(size_t count)
{
    static uint64_t state = 0x9e3779b97f4a7c15u;
    float          *v = sac_alloc(count * sizeof *v);
    for (size_t i = 0; v && i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        v[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
    return v;
}

static void set_operand(struct sac_operand *o, int rank, int64_t d0, int64_t d1, int64_t d2,
                        int64_t d3)
{
    *o = (struct sac_operand){
        .dtype = SAC_F32, .rank = rank, .dims = {d0, d1, d2, d3}, .present = true};
}

static void make_node(struct node *n, const struct layer *l, int batch)
{
    const int reach = (l->kernel - 1) * l->dilation + 1;
    *n = (struct node){.pads = {l->pad, l->pad, l->pad, l->pad},
                       .strides = {l->stride, l->stride},
                       .dilations = {l->dilation, l->dilation}};
    n->attrs[0] =
        (struct sac_attr){.name = "pads", .kind = SAC_ATTR_INTS, .count = 4, .ints = n->pads};
    n->attrs[1] =
        (struct sac_attr){.name = "strides", .kind = SAC_ATTR_INTS, .count = 2, .ints = n->strides};
    n->attrs[2] = (struct sac_attr){
        .name = "dilations", .kind = SAC_ATTR_INTS, .count = 2, .ints = n->dilations};
    n->attrs[3] =
        (struct sac_attr){.name = "activation", .kind = SAC_ATTR_INT, .count = 1, .i = l->act};
    n->attrs[4] =
        (struct sac_attr){.name = "residual", .kind = SAC_ATTR_INT, .count = 1, .i = l->residual};
    n->attrs[5] =
        (struct sac_attr){.name = "group", .kind = SAC_ATTR_INT, .count = 1, .i = l->groups};
    const struct sac_op *op = sac_op_find("saccade", "FusedConv");
    n->node = (struct sac_node){.op = op,
                                .name = "",
                                .op_type = op->name,
                                .domain = op->domain,
                                .opset = op->opset_max,
                                .attrs = n->attrs,
                                .attr_count = 6,
                                .input_count = l->residual ? 4 : 3,
                                .output_count = 1};
    struct sac_op_call *c = &n->call;
    c->ctx = ctx;
    c->node = &n->node;
    c->in_count = n->node.input_count;
    c->out_count = 1;
    set_operand(&c->in[0], 4, batch, l->in, l->h, l->w);
    set_operand(&c->in[1], 4, l->out, l->in / l->groups, l->kernel, l->kernel);
    set_operand(&c->in[2], 1, l->out, 0, 0, 0);
    if (l->residual)
        set_operand(&c->in[3], 4, batch, l->out, (l->h + 2 * l->pad - reach) / l->stride + 1,
                    (l->w + 2 * l->pad - reach) / l->stride + 1);
    c->in[1].data = random_numbers((size_t)sac_operand_elements(&c->in[1]));
    c->in[2].data = random_numbers((size_t)l->out);
    c->out[0].present = true;
    must(op->shape(c));
}

static void measure_node(struct ready *r, struct node *n, struct sac_device_stream *stream,
                         struct result *out)
{
    struct sac_op_call           *c = &n->call;
    struct conv_spec              spec;
    char                          why[200];
    const struct sac_kernel_offer offer = ask_kernel(dev, r->k, &r->plan);
    snprintf(why, sizeof why, "%s", offer.why);
    if (!offer.taken || !conv_spec_read(&r->plan, &spec, why, sizeof why)) {
        fprintf(stderr, "bench_conv: %s\n", why);
        exit(1);
    }
    const int64_t began = sac_time_ns();
    must(r->k->prepare(dev, &r->plan));
    out->prepare_ms = (double)(sac_time_ns() - began) * 1e-6;
    out->roof_us = SAC_MAX((double)conv_spec_bytes(&spec) / BYTES_PER_US,
                           (double)conv_spec_flops(&spec) / FLOPS_PER_US);
    const size_t in_bytes = (size_t)sac_operand_elements(&c->in[0]) * conv_element(&spec),
                 out_bytes = (size_t)sac_operand_elements(&c->out[0]) * conv_element(&spec);
    r->in = buffer(in_bytes);
    r->out = buffer(out_bytes);
    r->residual = c->in_count > 3 ? buffer(out_bytes) : NULL;
    r->scratch = buffer(r->plan.scratch_bytes);
    out->us = time_of(r, stream, SAC_MAX(out->roof_us, 3));
    snprintf(out->implementation, sizeof out->implementation, "%s", r->plan.implementation);
    snprintf(out->choice, sizeof out->choice, "%s", r->plan.chosen);
    sac_buffer_unref(&r->in);
    sac_buffer_unref(&r->out);
    sac_buffer_unref(&r->residual);
    sac_buffer_unref(&r->scratch);
    r->k->release(r->plan.state);
}

static void measure(const struct sac_kernel_provider *p, struct sac_device_stream *stream,
                    const struct layer *l, int batch, struct result *out)
{
    static struct gpu_weights weights;
    static struct node        n;
    make_node(&n, l, batch);
    gpu_weights_init(&weights, dev);
    struct ready r = {
        .k = p->kernels[SAC_OP_FusedConv],
        .plan = {
            .call = &n.call, .precision = precision, .weights = &weights.base, .measure = !likely}};
    measure_node(&r, &n, stream, out);
    gpu_weights_finish(&weights);
    sac_free(n.call.in[1].data);
    sac_free(n.call.in[2].data);
}

/* ---- tables ---- */

static void print_layer(const struct layer *l, const struct result *r)
{
    printf("    %2dx %4d->%4d %dx%d/%d%s%s %dx%d %s: %.1f us, roof %.1f, %s\n", l->times, l->in,
           l->out, l->kernel, l->kernel, l->stride, l->groups > 1 ? " by groups" : "",
           l->residual ? " +res" : "", l->h, l->w,
           l->act == SAC_ACT_SILU   ? "silu"
           : l->act == SAC_ACT_RELU ? "relu"
                                    : "-",
           r->us, r->roof_us, r->implementation);
}

static void print_worst(const struct network *n, const struct result *results)
{
    bool shown[LAYERS_MAX] = {false};
    for (int k = 0; k < WORST; k++) {
        int worst = -1;
        for (int i = 0; i < n->count; i++) {
            const double lost = n->layers[i].times * (results[i].us - results[i].roof_us);
            if (!shown[i] && (worst < 0 || lost > n->layers[worst].times *
                                                      (results[worst].us - results[worst].roof_us)))
                worst = i;
        }
        if (worst < 0)
            return;
        shown[worst] = true;
        print_layer(&n->layers[worst], &results[worst]);
    }
}

static void write_json(const struct network *n, int batch, const struct result *results)
{
    for (int i = 0; i < n->count && json; i++) {
        const struct layer *l = &n->layers[i];
        fprintf(json,
                "{\"network\":\"%s\",\"batch\":%d,\"times\":%d,\"in\":%d,\"out\":%d,\"kernel\":%d,"
                "\"stride\":%d,\"dilation\":%d,\"h\":%d,\"w\":%d,\"act\":%d,\"residual\":%d,\"us\":"
                "%.2f,\"roof_us\":%.2f,\"prepare_ms\":%.0f,\"choice\":\"%s\"}\n",
                n->name, batch, l->times, l->in, l->out, l->kernel, l->stride, l->dilation, l->h,
                l->w, l->act, l->residual, results[i].us, results[i].roof_us, results[i].prepare_ms,
                results[i].choice);
    }
    if (json)
        fflush(json);
}

static void run_network(const struct sac_kernel_provider *p, struct sac_device_stream *stream,
                        const struct network *n, int batch)
{
    static struct result results[LAYERS_MAX];
    double               sum = 0, roof = 0, prepare = 0, ways[4] = {0};
    int                  layers = 0;
    for (int i = 0; i < n->count; i++) {
        measure(p, stream, &n->layers[i], batch, &results[i]);
        if (all_ways)
            print_layer(&n->layers[i], &results[i]);
        const double us = n->layers[i].times * results[i].us;
        sum += us;
        roof += n->layers[i].times * results[i].roof_us;
        prepare += results[i].prepare_ms;
        layers += n->layers[i].times;
        const char *way = results[i].implementation;
        ways[strncmp(way, "fused", 5) == 0 ? 0 : strncmp(way, "plain", 5) == 0 ? 1 : 2] += us;
    }
    printf("%s %s b%d: %.3f ms, roof %.3f, %d layers (%d kinds); fused %.3f, two passes %.3f, own "
           "%.3f ms; chosen in %.1f s\n",
           n->name, sac_precision_name(precision), batch, sum * 1e-3, roof * 1e-3, layers, n->count,
           ways[0] * 1e-3, ways[1] * 1e-3, ways[2] * 1e-3, prepare * 1e-3);
    print_worst(n, results);
    write_json(n, batch, results);
    fflush(stdout);
}

static const struct sac_kernel_provider *provider(void)
{
    int                                      count;
    const struct sac_kernel_provider *const *list = sac_kernel_providers(dev, &count);
    for (int i = 0; i < count; i++)
        if (strncmp(list[i]->name, "products", 8) == 0)
            return list[i];
    fprintf(stderr, "bench_conv: no cuDNN here: %s\n", sac_kernel_plugin_missing(dev));
    exit(1);
}

static bool read_layer(const char *text, struct network *n)
{
    static const struct {
        const char *name;
        int         kind;
    } acts[] = {{"", SAC_ACT_SILU},
                {",none", SAC_ACT_NONE},
                {",relu", SAC_ACT_RELU},
                {",gelu", SAC_ACT_GELU}};
    int in, out, kernel, stride, size, end = 0;
    *n = (struct network){.name = text};
    if (sscanf(text, "%d,%d,%d,%d,%d%n", &in, &out, &kernel, &stride, &size, &end) != 5 || in < 1 ||
        out < 1 || kernel < 1 || stride < 1 || size < 1)
        return false;
    for (size_t i = 0; i < SAC_COUNT(acts); i++)
        if (strcmp(text + end, acts[i].name) == 0) {
            conv(n, in, out, kernel, stride, size, acts[i].kind, 0);
            return true;
        }
    return false;
}

/* Ways that were tried and left out because their numbers are wrong; with --ways all. */
static void say_wrong(void *user, enum sac_log_level level, const char *message)
{
    (void)user;
    if (strstr(message, "wrong numbers") || strstr(message, "slow kernel") ||
        (all_ways && level == SAC_LOG_TRACE && strncmp(message, "products: ", 10) == 0))
        printf("    %s\n", message);
}

int main(int argc, char **argv)
{
    static void (*const makers[])(struct network *) = {
        yolox_s, resnet50_reid, deeplabv3, convnext_t, efficientnet_b0, segformer_b0, windows};
    static const int          batches[] = {1, 8, 32, 128};
    const char               *wanted = "all";
    int                       batch = 0, words = 0;
    struct sac_device_stream *stream = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--likely") == 0)
            likely = true;
        else if (strcmp(argv[i], "--fp32") == 0)
            precision = SAC_PRECISION_FP32;
        else if (strcmp(argv[i], "--ways") == 0)
            all_ways = true;
        else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            json = fopen(argv[++i], "w");
        else if (words++ == 0)
            wanted = argv[i];
        else
            batch = atoi(argv[i]);
    }
    struct sac_context_params log = sac_context_params_default();
    log.log_fn = say_wrong;
    log.log_level = all_ways ? SAC_LOG_TRACE : SAC_LOG_DEBUG;
    must(sac_context_create(&log, &ctx));
    must(sac_device_open(ctx, "cuda", NULL, &dev));
    must(dev->ops->stream_create(dev, &stream));
    const struct sac_kernel_provider *p = provider();
    printf("%s, %s\n", sac_device_description(dev), p->name);
    static struct network n;
    if (read_layer(wanted, &n))
        run_network(p, stream, &n, batch ? batch : 1);
    for (size_t k = 0; k < SAC_COUNT(makers); k++) {
        n.count = 0;
        makers[k](&n);
        if (strcmp(wanted, "all") != 0 && strcmp(wanted, n.name) != 0)
            continue;
        for (size_t b = 0; b < SAC_COUNT(batches); b++)
            if (batch ? b == 0 : batches[b] <= 32 || makers[k] == resnet50_reid)
                run_network(p, stream, &n, batch ? batch : batches[b]);
    }
    dev->ops->stream_destroy(&stream);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    if (json)
        fclose(json);
    return 0;
}
