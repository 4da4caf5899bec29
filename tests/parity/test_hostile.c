/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that a damaged or lying model could hold: the cases of cases.c with a few things changed at
 * random. A row refuses them with a sentence, or takes them and computes within its outputs; the
 * sanitizers watch. */
#include <stdio.h>
#include <string.h>

#include "tests/parity/subject.h"
#include "tests/test.h"

/* Under the sanitizers a node takes ten times as long: fewer, and all parts stay in their
 * minutes. */
enum { MUTANTS = TEST_SANITIZED ? 40 : 300, BYTES_MAX = 1 << 20, LARGE = 50000, LONG = 4000000 };

static int64_t odd_number(void)
{
    static const int64_t numbers[] = {0,  1,       -1,        2,         3,         7,   64,
                                      -2, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN, -100};
    return numbers[subject_random() % SAC_COUNT(numbers)];
}

static size_t below(size_t n)
{
    return n ? (size_t)(subject_random() % n) : 0;
}

/* A new shape, or dtype; the numbers are made anew so that they fill it. */
static void change_operand(struct subject *s, struct sac_operand *o)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 8, 17};
    switch (below(4)) {
    case 0:
        o->rank = (int)below(SAC_RANK_MAX + 1);
        for (int d = 0; d < o->rank; d++)
            o->dims[d] = sizes[below(4)];
        break;
    case 1: o->dtype = (enum sac_dtype)(1 + below(SAC_DTYPE_COUNT - 1)); break;
    default:
        if (o->rank)
            o->dims[below((size_t)o->rank)] = sizes[below(SAC_COUNT(sizes))];
    }
    o->data = subject_keep(s, sac_operand_bytes(o));
    const int64_t elements = sac_operand_elements(o);
    for (int64_t i = 0; i < elements; i++)
        sac_operand_set(o, i, (double)(subject_random() % 9) - 2);
}

static void change_attr(struct sac_attr *a)
{
    if (a->kind == SAC_ATTR_INT)
        a->i = odd_number();
    else if (a->kind == SAC_ATTR_FLOAT)
        a->f = (float)odd_number();
    else if (a->kind == SAC_ATTR_STRING)
        a->s = below(2) ? "" : "SAME_UPPER";
    else if (a->kind == SAC_ATTR_INTS && a->count && below(3))
        ((int64_t *)a->ints)[below(a->count)] = odd_number();
    else
        a->count = below(a->count + 1);
}

static void mutate(struct subject *s)
{
    struct sac_op_call *c = s->call;
    struct sac_operand *o = c->in_count ? &c->in[below((size_t)c->in_count)] : NULL;
    switch (below(6)) {
    case 0:
        if (s->node.attr_count)
            change_attr(&s->attrs[below((size_t)s->node.attr_count)]);
        break;
    case 1: /* an attribute goes */
        if (s->node.attr_count)
            s->attrs[below((size_t)s->node.attr_count)].name = "?";
        break;
    case 2: /* one odd number among the data: an index, an axis, a size */
        if (o && o->present && sac_operand_elements(o))
            sac_operand_set(o, (int64_t)below((size_t)sac_operand_elements(o)),
                            (double)odd_number());
        break;
    case 3:
        if (o && o - c->in >= s->node.op->input_min)
            *o = (struct sac_operand){0};
        break;
    case 4: s->node.opset = 1 + (int)below(SAC_OPSET_NEWEST); break;
    default:
        if (o && o->present)
            change_operand(s, o);
    }
}

/* Sizes whose computing would take long, not whose refusal is in question. */
static bool too_much(const struct sac_op_call *c)
{
    for (int i = 0; i < c->out_count; i++) {
        int64_t bytes = (int64_t)sac_dtype_bytes(c->out[i].dtype);
        for (int d = 0; d < c->out[i].rank; d++)
            if (__builtin_mul_overflow(bytes, SAC_MAX(c->out[i].dims[d], 1), &bytes) ||
                bytes > BYTES_MAX)
                return true;
    }
    return false;
}

static void check_fences(const struct subject *s)
{
    for (int i = 0; i < s->call->out_count; i++) {
        const unsigned char *end =
            (unsigned char *)s->want[i] + sac_operand_bytes(&s->call->out[i]);
        for (int k = 0; k < SUBJECT_FENCE; k++)
            if (end[k] != 0)
                fail_msg("%s wrote past output %d", s->node.op->name, i);
    }
}

static int run_mutant(const struct parity_case *pc)
{
    struct subject s;
    subject_init(&s, pc, FILL_RANDOM);
    for (size_t n = 1 + below(3); n > 0; n--)
        mutate(&s);
    int                  ran = 0;
    const struct sac_op *op = s.node.op;
    sac_result res = s.node.opset >= op->opset_min ? op->shape(s.call) : SAC_ERR_UNSUPPORTED;
    assert_int_not_equal(res, SAC_AGAIN); /* everything is known */
    if (res == SAC_OK && !too_much(s.call)) {
        for (int i = 0; i < s.call->out_count; i++) {
            assert_int_not_equal(s.call->out[i].dtype, SAC_DTYPE_NONE);
            s.want[i] = subject_keep(&s, sac_operand_bytes(&s.call->out[i]));
            s.call->out[i].data = s.want[i];
        }
        ran = op->ref(s.call) == SAC_OK; /* indices out of range are found only now */
        check_fences(&s);
    }
    subject_finish(&s);
    return ran;
}

/* Of a case whose operands are large, or whose sums are long, for the devices' fast kernels, there
 * are fewer: the plain code that is called here has the same operator's small cases. */
static int mutants_of(const struct parity_case *pc)
{
    struct subject s;
    int64_t        elements = 0;
    subject_init(&s, pc, FILL_RANDOM);
    for (int i = 0; i < s.call->in_count; i++)
        elements += s.call->in[i].present ? sac_operand_elements(&s.call->in[i]) : 0;
    assert_sac_ok(subject_shape(&s));
    const int64_t flops = s.node.op->flops ? s.node.op->flops(s.call) : 0;
    subject_finish(&s);
    return elements < LARGE && flops < LONG ? MUTANTS : MUTANTS / 10;
}

static void check_case(void **state)
{
    const struct parity_case *pc = *state;
    int                       ran = 0;
    const int                 mutants = mutants_of(pc);
    subject_seed_of(pc);
    for (int i = 0; i < mutants || (!ran && i < 10 * MUTANTS); i++)
        ran += run_mutant(pc);
    assert_true(ran > 0); /* else nothing was tested but refusals */
}

int main(void)
{
    struct CMUnitTest *tests = sac_calloc((size_t)parity_case_count, sizeof *tests);
    if (!tests)
        return 1;
    for (int i = 0; i < parity_case_count; i++)
        tests[i] = (struct CMUnitTest){.name = parity_cases[i].op,
                                       .test_func = check_case,
                                       .initial_state = (void *)&parity_cases[i]};
    int failed =
        _cmocka_run_group_tests("parity/hostile", tests, (size_t)parity_case_count, NULL, NULL);
    sac_free(tests);
    return failed;
}
