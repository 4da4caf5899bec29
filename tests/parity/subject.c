/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "engine/ops/half.h"
#include "tests/parity/subject.h"
#include "tests/test.h"

enum { NUMBERS_MAX = 64 };

void *subject_keep(struct subject *s, size_t bytes)
{
    void *p = sac_arena_alloc(&s->arena, bytes + SUBJECT_FENCE);
    assert_non_null(p);
    return p;
}

/* ---- numbers ---- */

static uint64_t random_state;

void subject_seed(uint64_t seed)
{
    random_state = seed | 1;
}

uint64_t subject_random(void)
{
    random_state ^= random_state << 13; /* xorshift64 */
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static uint64_t hashed(uint64_t hash, const char *text)
{
    for (; *text; text++) /* FNV-1a */
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

void subject_seed_of(const struct parity_case *pc)
{
    subject_seed(hashed(hashed(hashed(0xcbf29ce484222325u, pc->op), pc->inputs), pc->attrs));
}

static double uniform(void)
{
    return (double)(subject_random() >> 11) * 0x1p-53;
}

/* Sums of huge numbers differ with their order, so what adds up meets smaller ones; and where sums
 * of sums go into an exponential, what is lost of 1e6 in the first decides the result. */
static double extreme(const struct sac_op *op)
{
    static const double single[] = {0,    -0.0, 1e-40, -1e-38, 1e-5, -3e-3, -9.5,
                                    88.8, -104, 1e4,   -1e9,   3e38, -3e38};
    static const double summed[] = {0, -0.0, 1e-40, 1e-6, 1000, -1000, 1, -1};
    static const double twice[] = {0, -0.0, 1e-40, 1e-6, 1, -1};
    if (op->flags & SAC_OP_ELEMENTWISE)
        return single[subject_random() % SAC_COUNT(single)];
    const bool again = op->id == SAC_OP_Excitation || op->id == SAC_OP_RNN ||
                       op->id == SAC_OP_GRU || op->id == SAC_OP_LSTM ||
                       op->id == SAC_OP_FusedRecurrent;
    return again ? twice[subject_random() % SAC_COUNT(twice)]
                 : summed[subject_random() % SAC_COUNT(summed)];
}

/* What goes round in steps grows. */
static double size_for(const struct sac_op *op)
{
    return op->id == SAC_OP_FusedRecurrent ? 0.125 : 1;
}

static double any_number(const struct sac_operand *o, enum fill fill, bool positive,
                         int64_t modulus, const struct sac_op *op)
{
    if (o->dtype == SAC_BOOL)
        return (double)(subject_random() & 1);
    if (modulus)
        return (double)(subject_random() % (uint64_t)modulus);
    if (positive)
        return 0.1 + uniform();
    if (op->id == SAC_OP_MaxPool && sac_dtype_bytes(o->dtype) == 1) /* all there are */
        return (double)(subject_random() % 256) - (o->dtype == SAC_I8 ? 128 : 0);
    if (o->dtype == SAC_F8)
        return (fill == FILL_EXTREME ? 448 : 2) * (2 * uniform() - 1);
    if (!sac_dtype_is_float(o->dtype))
        return (double)(subject_random() % 100) -
               (o->dtype == SAC_I8 || o->dtype >= SAC_I16 ? 50 : 0);
    return size_for(op) * (fill == FILL_EXTREME ? extreme(op) : 4 * uniform() - 2);
}

/* What any_number() gives for most operands, which are all of the millions. */
static void fill_floats(float *v, int64_t elements, double size)
{
    for (int64_t i = 0; i < elements; i++)
        v[i] = (float)(size * (4 * uniform() - 2));
}

/* ---- reading a case ---- */

static enum sac_dtype read_dtype(const char **text)
{
    static const struct {
        const char    *name;
        enum sac_dtype dtype;
    } names[] = {{"f32", SAC_F32},   {"f16", SAC_F16}, {"f64", SAC_F64}, {"bf16", SAC_BF16},
                 {"i8", SAC_I8},     {"u8", SAC_U8},   {"i16", SAC_I16}, {"u16", SAC_U16},
                 {"i32", SAC_I32},   {"u32", SAC_U32}, {"i64", SAC_I64}, {"u64", SAC_U64},
                 {"bool", SAC_BOOL}, {"f8", SAC_F8}};
    size_t length = strcspn(*text, "[(=");
    for (size_t i = 0; i < SAC_COUNT(names); i++)
        if (length == strlen(names[i].name) && strncmp(*text, names[i].name, length) == 0) {
            *text += length;
            return names[i].dtype;
        }
    assert_int_equal(length, 0); /* no dtype: float32 */
    return SAC_F32;
}

static size_t read_numbers(const char **text, double *out)
{
    size_t n = 0;
    for (char *end; n < NUMBERS_MAX; *text = end + 1, n++) {
        out[n] = strtod(*text, &end);
        if (end == *text)
            break;
        if (*end != ',') {
            *text = end;
            return n + 1;
        }
    }
    return n;
}

static const char *read_input(struct subject *s, const char *text, enum fill fill)
{
    struct sac_operand *o = &s->call->in[s->call->in_count];
    double              numbers[NUMBERS_MAX];
    bool                positive = false;
    int64_t             modulus = 0;
    int                 input = s->call->in_count++;
    if (*text == '-' && (text[1] == ' ' || text[1] == 0))
        return text + 1;
    o->dtype = read_dtype(&text);
    char   kind = *text++;
    size_t n = read_numbers(&text, numbers);
    text += kind != '=';
    if (kind == '[') {
        o->rank = (int)n;
        for (size_t d = 0; d < n; d++)
            o->dims[d] = (int64_t)numbers[d];
    } else if (kind == '(') {
        o->rank = 1;
        o->dims[0] = (int64_t)n;
    }
    for (; *text && *text != ' '; text++) {
        if (*text == '!')
            s->constant[input] = true;
        else if (*text == '+')
            positive = true;
        else if (*text == '%')
            modulus = strtoll(text + 1, (char **)&text, 10), text--;
        else
            fail_msg("'%c' in an input", *text);
    }
    o->present = true;
    o->data = subject_keep(s, sac_operand_bytes(o));
    const int64_t elements = sac_operand_elements(o);
    if (kind == '[' && o->dtype == SAC_F32 && fill == FILL_RANDOM && !positive && !modulus)
        fill_floats(o->data, elements, size_for(s->node.op));
    else
        for (int64_t i = 0; i < elements; i++)
            sac_operand_set(o, i,
                            kind != '[' ? numbers[i]
                                        : any_number(o, fill, positive, modulus, s->node.op));
    return text;
}

static const char *read_attr(struct subject *s, const char *text)
{
    struct sac_attr *a = &s->attrs[s->node.attr_count++];
    double           numbers[NUMBERS_MAX];
    size_t           length = strcspn(text, "=");
    a->name = sac_arena_strndup(&s->arena, text, length);
    text += length + 1;
    if (*text == '\'') {
        length = strcspn(text + 1, "'");
        a->kind = SAC_ATTR_STRING;
        a->count = length;
        a->s = sac_arena_strndup(&s->arena, text + 1, length);
        return text + length + 2;
    }
    const char *start = text;
    a->count = read_numbers(&text, numbers);
    bool     floats = memchr(start, '.', (size_t)(text - start)) != NULL;
    float   *f = subject_keep(s, a->count * sizeof *f);
    int64_t *v = subject_keep(s, a->count * sizeof *v);
    for (size_t i = 0; i < a->count; i++) {
        f[i] = (float)numbers[i];
        v[i] = (int64_t)numbers[i];
    }
    /* Lists of one are lists where the specification says so. */
    static const char *const lists[] = {"pads", "strides",        "dilations", "kernel_shape",
                                        "axes", "output_padding", "perm",      "points"};
    bool                     list = a->count > 1;
    for (size_t i = 0; i < SAC_COUNT(lists); i++)
        list = list || strcmp(a->name, lists[i]) == 0;
    a->kind =
        floats ? (list ? SAC_ATTR_FLOATS : SAC_ATTR_FLOAT) : (list ? SAC_ATTR_INTS : SAC_ATTR_INT);
    if (list && floats)
        a->floats = f;
    else if (list)
        a->ints = v;
    else if (floats)
        a->f = f[0];
    else
        a->i = v[0];
    return text;
}

static const struct sac_op *row_of(const char *name)
{
    const struct sac_op *op = sac_op_find("", name);
    op = op ? op : sac_op_find("saccade", name);
    if (!op)
        fail_msg("no row for %s", name);
    return op;
}

void subject_init(struct subject *s, const struct parity_case *pc, enum fill fill)
{
    memset(s, 0, sizeof *s);
    const struct sac_op *op = row_of(pc->op);
    s->call = subject_keep(s, sizeof *s->call);
    s->call->ctx = test_context();
    s->call->node = &s->node;
    s->node = (struct sac_node){.op = op,
                                .name = "",
                                .op_type = op->name,
                                .domain = op->domain,
                                .opset = pc->opset ? pc->opset : op->opset_max,
                                .attrs = s->attrs};
    for (const char *t = pc->inputs; *t; t += *t == ' ')
        t = read_input(s, t, fill);
    for (const char *t = pc->attrs; *t; t += *t == ' ')
        t = read_attr(s, t);
    s->call->out_count = SAC_MAX(pc->outputs, 1);
    for (int i = 0; i < s->call->out_count; i++)
        s->call->out[i].present = true;
    /* Beyond what the row can have, operands are left over from other nodes. */
    for (int i = op->input_max; i < SAC_OP_INPUTS_MAX; i++)
        s->call->in[i].present = true;
    for (int i = op->output_max; i < SAC_OP_OUTPUTS_MAX; i++)
        s->call->out[i].present = true;
    s->node.input_count = s->call->in_count;
    s->node.output_count = s->call->out_count;
}

sac_result subject_shape(struct subject *s)
{
    SAC_TRY(s->node.op->shape(s->call));
    for (int i = 0; i < s->call->out_count; i++) {
        s->want[i] = subject_keep(s, sac_operand_bytes(&s->call->out[i]));
        s->call->out[i].data = s->want[i];
    }
    return SAC_OK;
}

void subject_round(const struct subject *s)
{
    for (int i = 0; i < s->call->in_count; i++) {
        const struct sac_operand *o = &s->call->in[i];
        float                    *v = (float *)(uintptr_t)o->data;
        const int64_t             elements = o->present ? sac_operand_elements(o) : 0;
        for (int64_t k = 0; k < elements; k++)
            v[k] = sac_half_value(sac_half_of(v[k]));
    }
}

void subject_finish(struct subject *s)
{
    sac_arena_finish(&s->arena);
}

double subject_largest(const struct sac_operand *o)
{
    const int64_t elements = sac_operand_elements(o);
    double        most = 0;
    for (int64_t i = 0; i < elements; i++) {
        const double v = fabs(subject_number(o, i));
        most = isfinite(v) ? fmax(most, v) : most;
    }
    return most;
}

double subject_most(const struct sac_op *op, const struct sac_operand *out)
{
    return op->flags & SAC_OP_ELEMENTWISE ? 1 : fmax(1, subject_largest(out));
}

/* float8 has three bits of mantissa, and nothing between multiples of 2^-9. */
double subject_bound(const struct sac_op *op, enum sac_dtype t, double most, double want)
{
    if (op->flags & SAC_OP_QUANTISES && sac_dtype_bytes(t) == 1)
        return t == SAC_F8 ? fmax(0x1p-9, fabs(want) / 8) : 1;
    return op->tolerance_abs * most + op->tolerance_rel * fabs(want);
}
