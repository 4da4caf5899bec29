/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/parity/trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/test.h"

#include "engine/kernel/layout.h"
#include "engine/ops/half.h"
#include "tests/parity/ask.h"
#include "tests/parity/gpu_weights.h"

/* How operands in channels last lie: dense, or as slices of wider values, where vectors fit or
 * not. */
enum part { PART_NONE, PART_EVEN, PART_ODD, PART_COUNT };
static const struct {
    int64_t more, offset; /* channels of the wider value, and of those before ours */
} parts[PART_COUNT] = {[PART_EVEN] = {16, 8}, [PART_ODD] = {3, 1}};

/* What a node's inputs were before: where no operand has channels, or none is a float, several
 * layouts are the same. */
struct poses {
    enum sac_layout in[SAC_LAYOUT_COUNT][SAC_OP_INPUTS_MAX];
    int             count;
};

/* One node as one kernel is asked to run it. */
struct attempt {
    struct trial             *t;
    const struct parity_case *pc;
    const struct subject     *s;
    const struct sac_kernel  *k;
    struct sac_kernel_plan    plan;
    struct sac_kernel_offer   offer;
    enum sac_layout           arrive;
    enum part                 part;
    void                     *first[SAC_OP_OUTPUTS_MAX]; /* of its first run, found right */
    struct poses             *before;
    bool                      extreme, failed;
};

static void complain(struct attempt *a, const char *fmt, ...) SAC_PRINTF(2, 3);
static void complain(struct attempt *a, const char *fmt, ...)
{
    va_list ap;
    if (a->failed)
        return;
    a->failed = true;
    printf("FAIL %s %s { %s } %s, from %s to %s%s%s: ", a->pc->op, a->pc->inputs, a->pc->attrs,
           sac_precision_name(a->plan.precision), sac_layout_name(a->arrive),
           sac_layout_name(a->plan.out_layout[0]),
           a->part == PART_EVEN  ? ", parts"
           : a->part == PART_ODD ? ", odd parts"
                                 : "",
           a->extreme ? ", extreme numbers" : "");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

/* ---- comparing ---- */

/* Within the row's tolerance; in float16 the result's own rounding comes on top, and over its range
 * lies infinity. */
static void compare(struct attempt *a, int output, const void *got)
{
    const struct sac_op *op = a->s->node.op;
    const bool           half = sac_layout_is_half(a->plan.out_layout[output]);
    struct sac_operand   want = a->s->call->out[output], have = want;
    want.data = a->s->want[output];
    have.data = (void *)got;
    const int64_t elements = sac_operand_elements(&want);
    if (memcmp(want.data, got, sac_operand_bytes(&want)) == 0)
        return;
    const double most = subject_most(op, &want);
    const bool   reads_half = a->plan.precision == SAC_PRECISION_FP16 && want.dtype == SAC_F32;
    double       bound = 0, relative = 0; /* beside the row's */
    if (half || reads_half) {
        bound += 0x1p-11 * (op->flags & SAC_OP_ELEMENTWISE ? 0x1p-12 : most);
        relative += 0x1p-10;
    }
    for (int64_t i = 0; i < elements && !a->failed; i++) {
        const double x = subject_number(&have, i), y = subject_number(&want, i);
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        const bool   over = half && isinf(x) && fabs(y) >= 65500 && (x > 0) == (y > 0);
        const double may = subject_bound(op, want.dtype, most, y) + bound + relative * fabs(y);
        if (!over && !(fabs(x - y) <= may))
            complain(a, "output %d, element %lld is %.9g, the reference has %.9g", output,
                     (long long)i, x, y);
    }
}

/* ---- memory on the device, with a fence behind it ---- */

static void expect(struct attempt *a, sac_result res, const char *what)
{
    char why[512];
    if (res == SAC_OK)
        return;
    sac_context_last_error(test_context(), why, sizeof why);
    complain(a, "%s: %s: %s", what, sac_result_name(res), why);
    a->t->broken |= res == SAC_ERR_DEVICE;
}

static char *fenced_bytes(size_t bytes)
{
    char *host = sac_alloc(bytes + SUBJECT_FENCE);
    assert_non_null(host);
    memset(host, 0xff, bytes); /* NaNs: what is not written, or must not be read, shows */
    memset(host + bytes, 0xa5, SUBJECT_FENCE);
    return host;
}

/* Takes what fenced_bytes() gave. */
static sac_tensor *on_device(struct attempt *a, char *host, size_t bytes)
{
    struct sac_tensor_desc desc = {
        .dtype = SAC_U8, .rank = 1, .shape = {(int64_t)bytes + SUBJECT_FENCE}};
    sac_tensor *tensor = NULL;
    expect(a, sac_tensor_create(a->t->dev, &desc, "trial", &tensor), "memory");
    if (tensor)
        expect(a, sac_tensor_upload(tensor, host), "upload");
    sac_free(host);
    return tensor;
}

static sac_tensor *fenced(struct attempt *a, size_t bytes)
{
    return on_device(a, fenced_bytes(bytes), bytes);
}

/* The bytes, for the caller to free; complains about a broken fence. */
static char *fetch(struct attempt *a, const sac_tensor *tensor, size_t bytes, const char *what)
{
    char *host = sac_alloc(bytes + SUBJECT_FENCE);
    assert_non_null(host);
    expect(a, sac_tensor_download(tensor, host), "download");
    for (int i = 0; i < SUBJECT_FENCE; i++)
        if ((unsigned char)host[bytes + (size_t)i] != 0xa5) {
            complain(a, "%s was written past its end", what);
            break;
        }
    return host;
}

/* ---- parts: the channels of each pixel stand among others ---- */

static bool can_be(const struct sac_operand *o, enum sac_layout layout)
{
    return (!sac_layout_is_last(layout) || (o->rank >= 3 && o->rank <= 5)) &&
           (!sac_layout_is_half(layout) || o->dtype == SAC_F32);
}

static bool is_part(const struct attempt *a, const struct sac_operand *o, enum sac_layout layout)
{
    return a->part != PART_NONE && sac_layout_is_last(layout) &&
           can_be(o, SAC_LAYOUT_CHANNELS_LAST);
}

static bool has_parts(const struct attempt *a)
{
    const struct sac_op_call *c = a->s->call;
    bool                      any = false;
    for (int i = 0; i < c->in_count; i++)
        any |= c->in[i].present && is_part(a, &c->in[i], a->plan.in_layout[i]);
    for (int i = 0; i < c->out_count; i++)
        any |= c->out[i].present && is_part(a, &c->out[i], a->plan.out_layout[i]);
    return any;
}

/* Bytes of a channel run, of the way to the next pixel's, before the first; and how many pixels
 * there are. */
struct lie {
    size_t  run, step, before;
    int64_t pixels;
};
static struct lie lie_of(const struct attempt *a, const struct sac_operand *o,
                         enum sac_layout layout)
{
    const size_t size = sac_dtype_bytes(sac_layout_dtype(o->dtype, layout));
    struct lie   l = {sac_layout_bytes(o, layout), sac_layout_bytes(o, layout), 0, 1};
    if (!is_part(a, o, layout))
        return l;
    l.pixels = sac_operand_elements(o) / SAC_MAX(o->dims[1], 1);
    l.run = (size_t)o->dims[1] * size;
    l.step = l.run + (size_t)parts[a->part].more * size;
    l.before = (size_t)parts[a->part].offset * size;
    return l;
}

static size_t lie_bytes(const struct lie *l)
{
    return l->step * (size_t)l->pixels;
}

/* Of an address so far behind the beginning of a tensor. */
static int align_behind(size_t bytes)
{
    enum { ALIGN_MAX = 256 };
    return bytes % ALIGN_MAX ? (int)(bytes & -bytes) : ALIGN_MAX;
}

/* What the planner says of slices. */
static void set_steps(struct attempt *a)
{
    const struct sac_op_call *c = a->s->call;
    for (int i = 0; i < c->in_count + c->out_count; i++) {
        const bool                in = i < c->in_count;
        const int                 k = in ? i : i - c->in_count;
        const struct sac_operand *o = in ? &c->in[k] : &c->out[k];
        const enum sac_layout     layout = in ? a->plan.in_layout[k] : a->plan.out_layout[k];
        if (!o->present || !is_part(a, o, layout))
            continue;
        *(in ? &a->plan.in_align[k] : &a->plan.out_align[k]) =
            align_behind(lie_of(a, o, layout).before);
        const int64_t pixel = o->dims[1] + parts[a->part].more;
        *(in ? &a->plan.in_pixel[k] : &a->plan.out_pixel[k]) = pixel;
        *(in ? &a->plan.in_sample[k] : &a->plan.out_sample[k]) =
            pixel * (sac_operand_elements(o) / SAC_MAX(o->dims[0] * o->dims[1], 1));
    }
}

static sac_tensor *input_tensor(struct attempt *a, int i)
{
    const struct sac_operand *o = &a->s->call->in[i];
    const enum sac_layout     layout = a->plan.in_layout[i];
    const struct lie          l = lie_of(a, o, layout);
    char                     *wide = fenced_bytes(lie_bytes(&l));
    if (l.step == l.run) {
        sac_layout_convert(o, wide, layout, o->data, SAC_LAYOUT_PLAIN);
        return on_device(a, wide, lie_bytes(&l));
    }
    char *dense = sac_alloc(SAC_MAX(sac_layout_bytes(o, layout), 1));
    assert_non_null(dense);
    sac_layout_convert(o, dense, layout, o->data, SAC_LAYOUT_PLAIN);
    for (int64_t p = 0; p < l.pixels; p++)
        memcpy(wide + (size_t)p * l.step + l.before, dense + (size_t)p * l.run, l.run);
    sac_free(dense);
    return on_device(a, wide, lie_bytes(&l));
}

/* The output's own bytes; complains when those around them changed. */
static char *own_bytes(struct attempt *a, const struct lie *l, char *wide)
{
    if (l->step == l->run)
        return wide;
    char *dense = sac_alloc(l->run * (size_t)l->pixels + 1);
    assert_non_null(dense);
    for (int64_t p = 0; p < l->pixels; p++) {
        char *at = wide + (size_t)p * l->step;
        memcpy(dense + (size_t)p * l->run, at + l->before, l->run);
        memset(at + l->before, 0xff, l->run);
        for (size_t k = 0; k < l->step; k++)
            if ((unsigned char)at[k] != 0xff)
                complain(a, "it wrote between its channels, pixel %lld", (long long)p);
    }
    sac_free(wide);
    return dense;
}

/* ---- running ---- */

struct memory {
    sac_tensor *in[SAC_OP_INPUTS_MAX], *out[SAC_OP_OUTPUTS_MAX], *scratch;
    void       *in_at[SAC_OP_INPUTS_MAX], *out_at[SAC_OP_OUTPUTS_MAX];
};

static void give_inputs(struct attempt *a, struct memory *m)
{
    const struct sac_op_call *c = a->s->call;
    memset(m, 0, sizeof *m);
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].present && !a->plan.in_taken[i]) {
            m->in[i] = input_tensor(a, i);
            m->in_at[i] = m->in[i] ? (char *)sac_tensor_data(m->in[i]) +
                                         lie_of(a, &c->in[i], a->plan.in_layout[i]).before
                                   : NULL;
        }
}

static void give_outputs(struct attempt *a, struct memory *m, bool in_place)
{
    const struct sac_op_call *c = a->s->call;
    for (int i = 0; i < c->out_count; i++) {
        const struct lie l = lie_of(a, &c->out[i], a->plan.out_layout[i]);
        m->out[i] = i == 0 && in_place ? sac_tensor_ref(m->in[a->offer.in_place])
                                       : fenced(a, lie_bytes(&l));
        m->out_at[i] = m->out[i] ? (char *)sac_tensor_data(m->out[i]) + l.before : NULL;
    }
    m->scratch = fenced(a, a->plan.scratch_bytes);
}

static void take_outputs(const struct attempt *a, struct memory *m)
{
    sac_tensor_unref(&m->scratch);
    for (int i = 0; i < a->s->call->out_count; i++)
        sac_tensor_unref(&m->out[i]);
}

/* Compares, unless these are the bytes that the first run gave. */
static void check_output(struct attempt *a, const struct memory *m, int i)
{
    const struct sac_operand *o = &a->s->call->out[i];
    const enum sac_layout     layout = a->plan.out_layout[i];
    const struct lie          l = lie_of(a, o, layout);
    char *got = own_bytes(a, &l, fetch(a, m->out[i], lie_bytes(&l), "an output"));
    char *plain = got;
    if (!a->first[i] || memcmp(got, a->first[i], sac_layout_bytes(o, layout)) != 0) {
        if (layout != SAC_LAYOUT_PLAIN) {
            plain = sac_alloc(sac_operand_bytes(o) + 1);
            assert_non_null(plain);
            sac_layout_convert(o, plain, SAC_LAYOUT_PLAIN, got, layout);
        }
        compare(a, i, plain);
    }
    if (plain != got)
        sac_free(plain);
    if (a->first[i])
        sac_free(got);
    else
        a->first[i] = got;
}

static void check(struct attempt *a, const struct memory *m)
{
    for (int i = 0; i < a->s->call->out_count; i++)
        check_output(a, m, i);
    sac_free(fetch(a, m->scratch, a->plan.scratch_bytes, "scratch"));
}

static void run(struct attempt *a, struct memory *m, bool in_place)
{
    give_outputs(a, m, in_place);
    if (!a->failed)
        expect(a,
               a->k->run(a->t->dev, a->plan.state, m->in_at, m->out_at, sac_tensor_data(m->scratch),
                         NULL),
               "run");
    if (!a->failed)
        check(a, m);
    take_outputs(a, m);
}

/* From the same inputs: who writes to them, except in place, gets other numbers the second time. */
static void run_thrice(struct attempt *a)
{
    struct memory m;
    give_inputs(a, &m);
    run(a, &m, false);
    run(a, &m, false); /* nothing may be left over from the first run */
    if (a->offer.in_place >= 0)
        run(a, &m, true);
    for (int i = 0; i < a->s->call->in_count; i++)
        sac_tensor_unref(&m.in[i]);
    for (int i = 0; i < a->s->call->out_count; i++) {
        sac_free(a->first[i]);
        a->first[i] = NULL;
    }
}

static void pose(struct attempt *a, struct sac_op_call *c)
{
    *c = *a->s->call;
    a->plan.call = c;
    for (int i = 0; i < c->in_count; i++) {
        enum sac_layout l = a->s->constant[i] ? SAC_LAYOUT_PLAIN : a->arrive;
        if (!can_be(&c->in[i], l)) /* at least as precise */
            l = sac_layout_is_half(l) && c->in[i].dtype == SAC_F32 ? SAC_LAYOUT_PLAIN_HALF
                                                                   : SAC_LAYOUT_PLAIN;
        a->plan.in_layout[i] = l;
        if (!a->s->constant[i])
            c->in[i].data = NULL;
    }
    for (int i = 0; i < c->out_count; i++)
        c->out[i].data = NULL;
}

static bool is_new(struct poses *before, const struct sac_kernel_plan *plan)
{
    for (int i = 0; i < before->count; i++)
        if (memcmp(before->in[i], plan->in_layout, sizeof before->in[i]) == 0)
            return false;
    memcpy(before->in[before->count++], plan->in_layout, sizeof before->in[0]);
    return true;
}

/* With the layouts settled. */
static sac_result prepare_and_run(struct attempt *a)
{
    if (a->part != PART_NONE && !has_parts(a))
        return SAC_OK; /* as it ran without */
    if (a->part != PART_NONE) {
        set_steps(a);
        a->offer.in_place = -1;
    }
    sac_result res = a->k->prepare(a->t->dev, &a->plan);
    if (res == SAC_OK) {
        run_thrice(a);
        a->k->release(a->plan.state);
    } else if (res != SAC_ERR_UNSUPPORTED)
        expect(a, res, "prepare");
    return res;
}

/* A kernel that writes any layout does so instead of the one that it said. */
static void write_others(struct attempt *a, const struct sac_kernel_plan *settled)
{
    const struct sac_operand *out = &a->s->call->out[0];
    for (int l = SAC_LAYOUT_PLAIN; l < SAC_LAYOUT_COUNT && a->offer.writes_any && !a->failed; l++) {
        const bool half = sac_layout_is_half((enum sac_layout)l);
        if (l == (int)settled->out_layout[0] || !can_be(out, (enum sac_layout)l) ||
            (half && settled->precision != SAC_PRECISION_FP16))
            continue;
        a->plan = *settled;
        a->plan.out_layout[0] = (enum sac_layout)l;
        a->offer.in_place = -1;
        prepare_and_run(a);
    }
}

/* False: the kernel does not take this node. */
static bool try_kernel(struct attempt *a)
{
    struct sac_op_call *c = sac_alloc(sizeof *c);
    sac_result          res = SAC_ERR_UNSUPPORTED;
    assert_non_null(c);
    pose(a, c);
    if (a->part == PART_NONE && !is_new(a->before, &a->plan)) {
        sac_free(c);
        return false;
    }
    a->offer = ask_kernel(a->t->dev, a->k, &a->plan);
    if (a->offer.taken && (a->offer.strided || a->part == PART_NONE)) {
        const struct sac_kernel_plan settled = a->plan;
        res = prepare_and_run(a);
        if (res == SAC_OK)
            write_others(a, &settled);
    }
    sac_free(c);
    if (res == SAC_OK || a->failed)
        a->t->run++;
    a->t->failed += a->failed;
    return res == SAC_OK;
}

/* Constants lie in float32, but for those that a kernel asks for in float16. */
static bool is_rounded(const struct subject *s, int input)
{
    const bool layer = s->node.op->id == SAC_OP_Excitation && input % 2 == 1;
    return !s->constant[input] || layer;
}

/* Numbers that float16 holds, so that the reference sees what the kernel will. */
static void round_inputs(struct subject *s)
{
    for (int i = 0; i < s->call->in_count; i++) {
        struct sac_operand *o = &s->call->in[i];
        const bool          rounds = o->present && o->dtype == SAC_F32 && is_rounded(s, i);
        const int64_t       elements = rounds ? sac_operand_elements(o) : 0;
        for (int64_t k = 0; k < elements; k++) {
            float *v = (float *)o->data + k;
            *v = SAC_CLAMP(*v, -60000.0f, 60000.0f);
            *v = sac_half_value(sac_half_of(*v));
        }
    }
}

static bool keeps_weights(const struct trial *t, const struct sac_op *op)
{
    return t->weights && (op->id == SAC_OP_QuantConv || op->id == SAC_OP_QuantMatMul);
}

static int try_case(struct trial *t, const struct parity_case *pc, enum fill fill, bool half)
{
    struct subject     s;
    struct poses       before = {.count = 0};
    struct gpu_weights weights;
    int                taken = 0;
    gpu_weights_init(&weights, t->dev);
    subject_seed_of(pc);
    subject_init(&s, pc, fill);
    if (half)
        round_inputs(&s);
    assert_sac_ok(subject_shape(&s));
    assert_sac_ok(s.node.op->ref(s.call));
    for (int layout = SAC_LAYOUT_PLAIN; layout < SAC_LAYOUT_COUNT && !t->broken; layout++) {
        struct attempt a = {.t = t,
                            .pc = pc,
                            .s = &s,
                            .k = t->provider->kernels[s.node.op->id],
                            .arrive = (enum sac_layout)layout,
                            .before = &before,
                            .extreme = fill == FILL_EXTREME};
        for (int part = PART_NONE;
             part <
             (sac_layout_is_last(a.arrive) && fill == FILL_RANDOM ? PART_COUNT : PART_NONE + 1);
             part++) {
            a.plan = (struct sac_kernel_plan){
                .precision = half ? SAC_PRECISION_FP16 : SAC_PRECISION_FP32,
                .weights = keeps_weights(t, s.node.op) ? &weights.base : NULL};
            a.part = (enum part)part;
            a.failed = false;
            if ((half || !sac_layout_is_half(a.arrive)) && !t->broken)
                taken += try_kernel(&a);
        }
    }
    gpu_weights_finish(&weights);
    subject_finish(&s);
    return taken;
}

static bool wants(const struct trial *t, const struct sac_op *op, const struct parity_case *pc,
                  int number)
{
    return !t->broken && strcmp(pc->op, op->name) == 0 && !(t->small && pc->large) &&
           (t->parts == 0 || number % t->parts == t->part);
}

static void try_op(struct trial *t, const struct sac_op *op)
{
    int taken = 0, cases = 0;
    for (int i = 0; i < parity_case_count; i++)
        for (int k = 0; k < 2 * FILL_COUNT && wants(t, op, &parity_cases[i], i); k++, cases++)
            taken += try_case(t, &parity_cases[i], (enum fill)(k / 2), k % 2);
    for (int i = 0; i < trial_larger_count; i++)
        for (int half = 0; half < 2 && wants(t, op, &trial_larger[i], i); half++, cases++)
            taken += try_case(t, &trial_larger[i], FILL_RANDOM, half);
    if (cases && !taken && !t->broken && t->parts == 0)
        printf("%s takes no case of %s\n", t->provider->name, op->name);
}

const char *trial_all(struct trial *t)
{
    int  missing = 0;
    bool begun = !t->after;
    for (int id = 0; id < SAC_OP_COUNT; id++) {
        const struct sac_op *op = sac_op_row((enum sac_op_id)id);
        const bool           wanted = begun && (!t->only || strcmp(t->only, op->name) == 0);
        begun |= t->after && strcmp(t->after, op->name) == 0;
        missing += !t->provider->kernels[id];
        if (!wanted || !t->provider->kernels[id])
            continue;
        try_op(t, op);
        if (t->broken)
            return op->name;
    }
    printf("%s: %d nodes tried, %d wrong; %d of %d rows have no kernel\n", t->provider->name,
           t->run, t->failed, missing, SAC_OP_COUNT);
    return NULL;
}
