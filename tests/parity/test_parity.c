/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of every provider against the reference row, on the nodes of cases.c: with random
 * and with extreme numbers, from each layout that the inputs may arrive in, and in place where the
 * kernel offers it. Outputs and scratch are fenced, so that a write beyond them shows. The
 * reference itself must give the same with and without workers.
 * usage: test_parity [kernels]     without the references alone, which are the same on each CPU */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/parity/ask.h"
#include "tests/parity/subject.h"
#include "tests/test.h"

#include "engine/kernel/kernel.h"
#include "engine/kernel/layout.h"
#include "engine/ops/util.h"

static sac_device *device;

/* ---- comparing ---- */

static void compare(const struct subject *s, int output, const void *got, const char *what)
{
    const struct sac_op *op = s->node.op;
    struct sac_operand   want = s->call->out[output], have = want;
    want.data = s->want[output];
    have.data = (void *)got;
    if (memcmp(got, want.data, sac_operand_bytes(&want)) == 0)
        return;
    const double  most = subject_most(op, &want);
    const int64_t elements = sac_operand_elements(&want);
    for (int64_t i = 0; i < elements; i++) {
        const double a = subject_number(&have, i), b = subject_number(&want, i);
        const bool   same = a == b || (isnan(a) && isnan(b));
        if (!same && !(fabs(a - b) <= subject_bound(op, want.dtype, most, b)))
            fail_msg("%s of %s: output %d, element %lld is %.9g, the reference has %.9g", what,
                     op->name, output, (long long)i, a, b);
    }
}

static void fence(void *p, size_t bytes)
{
    memset((char *)p + bytes, 0xa5, SUBJECT_FENCE);
}

static void check_fence(const void *p, size_t bytes, const char *what)
{
    for (int i = 0; i < SUBJECT_FENCE; i++)
        if (((const unsigned char *)p)[bytes + (size_t)i] != 0xa5)
            fail_msg("%s was written past its end", what);
}

static void *fenced(size_t bytes)
{
    char *p = sac_alloc_aligned(64, bytes + SUBJECT_FENCE);
    assert_non_null(p);
    memset(p, 0xff, bytes); /* NaNs: what is not written shows */
    fence(p, bytes);
    return p;
}

/* ---- one kernel on one subject ---- */

static bool can_be(const struct sac_operand *o, enum sac_layout layout)
{
    return layout == SAC_LAYOUT_PLAIN || (o->rank >= 3 && o->rank <= 5);
}

static void *in_layout(const struct sac_operand *o, enum sac_layout layout)
{
    void *p = fenced(sac_layout_bytes(o, layout));
    sac_layout_convert(o, p, layout, o->data, SAC_LAYOUT_PLAIN);
    return p;
}

static void run_and_compare(const struct subject *s, const struct sac_kernel *k,
                            const struct sac_kernel_plan *plan, int in_place)
{
    const struct sac_op_call *c = s->call;
    void                     *in[SAC_OP_INPUTS_MAX] = {NULL}, *out[SAC_OP_OUTPUTS_MAX] = {NULL};
    void                     *scratch = fenced(plan->scratch_bytes), *plain;
    for (int i = 0; i < c->in_count; i++)
        if (c->in[i].present)
            in[i] = in_layout(&c->in[i], plan->in_layout[i]);
    for (int i = 0; i < c->out_count; i++)
        out[i] = i == 0 && in_place >= 0
                     ? in[in_place]
                     : fenced(sac_layout_bytes(&c->out[i], plan->out_layout[i]));
    assert_sac_ok(k->run(device, plan->state, in, out, scratch, NULL));
    for (int i = 0; i < c->out_count; i++) {
        size_t bytes = sac_layout_bytes(&c->out[i], plan->out_layout[i]);
        check_fence(out[i], bytes, "an output");
        plain = fenced(sac_operand_bytes(&c->out[i]));
        sac_layout_convert(&c->out[i], plain, SAC_LAYOUT_PLAIN, out[i], plan->out_layout[i]);
        compare(s, i, plain, plan->implementation);
        sac_free(plain);
        if (i > 0 || in_place < 0)
            sac_free(out[i]);
    }
    check_fence(scratch, plan->scratch_bytes, "scratch");
    sac_free(scratch);
    for (int i = 0; i < c->in_count; i++)
        sac_free(in[i]);
}

/* With the layouts settled. SAC_ERR_UNSUPPORTED: the kernel does not take this node after all. */
static sac_result prepare_and_run(const struct subject *s, const struct sac_kernel *k,
                                  struct sac_kernel_plan plan, int in_place)
{
    const sac_result res = k->prepare(device, &plan);
    if (res == SAC_ERR_UNSUPPORTED)
        return res;
    assert_sac_ok(res);
    run_and_compare(s, k, &plan, -1);
    run_and_compare(s, k, &plan, -1); /* nothing may be left over from the first run */
    if (in_place >= 0)
        run_and_compare(s, k, &plan, in_place);
    k->release(plan.state);
    return SAC_OK;
}

/* False: the kernel does not take this node. A kernel that writes any layout does so, too. */
static bool try_kernel(const struct subject *s, const struct sac_kernel *k, enum sac_layout arrive)
{
    struct sac_kernel_plan plan = {.call = NULL};
    struct sac_op_call    *c = sac_alloc(sizeof *c);
    assert_non_null(c);
    *c = *s->call;
    plan.call = c;
    bool any = arrive == SAC_LAYOUT_PLAIN; /* does it arrive so? */
    for (int i = 0; i < c->in_count; i++) {
        plan.in_layout[i] =
            !s->constant[i] && can_be(&c->in[i], arrive) ? arrive : SAC_LAYOUT_PLAIN;
        any |= c->in[i].present && plan.in_layout[i] == arrive;
        if (!s->constant[i])
            c->in[i].data = NULL;
    }
    for (int i = 0; i < c->out_count; i++)
        c->out[i].data = NULL;
    sac_result                    res = SAC_ERR_UNSUPPORTED;
    const struct sac_kernel_offer offer = ask_kernel(device, k, &plan);
    if (offer.taken && any)
        res = prepare_and_run(s, k, plan, offer.in_place);
    for (int l = SAC_LAYOUT_PLAIN; l <= SAC_LAYOUT_CHANNELS_LAST && res == SAC_OK; l++)
        if (offer.writes_any && l != (int)offer.out_layout[0] &&
            can_be(&c->out[0], (enum sac_layout)l)) {
            plan.out_layout[0] = (enum sac_layout)l;
            assert_sac_ok(prepare_and_run(s, k, plan, -1));
        }
    sac_free(c);
    return res == SAC_OK;
}

/* What the reference gives, in s->want. */
static void ask_reference(struct subject *s)
{
    assert_sac_ok(s->node.op->ref(s->call));
}

/* The reference alone: workers change nothing, and nothing is written past an output. */
static void check_reference(struct subject *s)
{
    struct sac_op_call *c = s->call;
    for (int i = 0; i < c->out_count; i++)
        fence(s->want[i], sac_operand_bytes(&c->out[i]));
    ask_reference(s);
    for (int i = 0; i < c->out_count; i++) {
        check_fence(s->want[i], sac_operand_bytes(&c->out[i]), "the reference's output");
        c->out[i].data = fenced(sac_operand_bytes(&c->out[i]));
    }
    c->workers = device->workers;
    assert_sac_ok(s->node.op->ref(c));
    for (int i = 0; i < c->out_count; i++) {
        assert_memory_equal(c->out[i].data, s->want[i], sac_operand_bytes(&c->out[i]));
        sac_free(c->out[i].data);
        c->out[i].data = s->want[i];
    }
}

/* ---- the tests: one per operator and provider ---- */

struct parity_test {
    const struct sac_op              *op;
    const struct sac_kernel_provider *provider; /* NULL: the reference */
    char                              name[96];
};

static void check_op(void **state)
{
    const struct parity_test *t = *state;
    int                       taken = 0;
    for (int i = 0; i < parity_case_count; i++)
        for (int fill = 0; fill < FILL_COUNT && strcmp(parity_cases[i].op, t->op->name) == 0;
             fill++) {
            struct subject s;
            subject_seed_of(&parity_cases[i]);
            subject_init(&s, &parity_cases[i], (enum fill)fill);
            assert_sac_ok(subject_shape(&s));
            if (!t->provider)
                check_reference(&s);
            else
                ask_reference(&s);
            for (int layout = SAC_LAYOUT_PLAIN; t->provider && layout <= SAC_LAYOUT_CHANNELS_LAST;
                 layout++)
                taken += try_kernel(&s, t->provider->kernels[t->op->id], (enum sac_layout)layout);
            subject_finish(&s);
        }
    if (t->provider && !taken) {
        print_message("%s takes none of its cases here\n", t->name);
        skip();
    }
}

/* Rows that cannot stand alone: they run subgraphs, or draw random numbers. */
static void every_row_has_a_case(void **state)
{
    (void)state;
    for (int id = 0; id < SAC_OP_COUNT; id++) {
        const struct sac_op *op = sac_op_row((enum sac_op_id)id);
        bool                 found = !op->ref || op->flags & (SAC_OP_CONTROL | SAC_OP_RANDOM);
        for (int i = 0; i < parity_case_count && !found; i++)
            found = strcmp(parity_cases[i].op, op->name) == 0;
        if (!found)
            fail_msg("%s has no case in tests/parity/cases.c", op->name);
    }
}

static void provider_is_there(void **state)
{
    const char                              *wanted = *state;
    int                                      count;
    const struct sac_kernel_provider *const *list = sac_kernel_providers(device, &count);
    for (int i = 0; i < count; i++)
        if (strncmp(list[i]->name, wanted, strlen(wanted)) == 0)
            return;
    print_message("no provider '%s' on this machine\n", wanted);
    skip();
}

static int add_tests(struct CMUnitTest *tests, struct parity_test *list, int n,
                     const struct sac_kernel_provider *provider)
{
    for (int id = 0; id < SAC_OP_COUNT; id++) {
        const struct sac_op *op = sac_op_row((enum sac_op_id)id);
        if (provider ? !provider->kernels[id] : !op->ref || op->flags & SAC_OP_RANDOM)
            continue;
        list[n] = (struct parity_test){op, provider, ""};
        snprintf(list[n].name, sizeof list[n].name, "%s of %s", op->name,
                 provider ? provider->name : "reference");
        tests[n] = (struct CMUnitTest){
            .name = list[n].name, .test_func = check_op, .initial_state = &list[n]};
        n++;
    }
    return n;
}

enum { PROVIDERS_MAX = 4, TESTS_MAX = (PROVIDERS_MAX + 1) * SAC_OP_COUNT + 8 };

int main(int argc, char **argv)
{
    const bool                kernels_only = argc > 1 && strcmp(argv[1], "kernels") == 0;
    static struct CMUnitTest  tests[TESTS_MAX];
    static struct parity_test list[TESTS_MAX];
    int                       n = 0, count;
    if (sac_device_open(test_context(), "cpu", NULL, &device) != SAC_OK)
        return 1;
    if (!kernels_only)
        n = add_tests(tests, list, n, NULL);
    const struct sac_kernel_provider *const *providers = sac_kernel_providers(device, &count);
    for (int i = 0; i < SAC_MIN(count, (int)PROVIDERS_MAX); i++)
        n = add_tests(tests, list, n, providers[i]);
    tests[n++] =
        (struct CMUnitTest){.name = "every row has a case", .test_func = every_row_has_a_case};
    static char expected[][8] = {"cpu", "onednn"};
    for (size_t i = 0; i < SAC_COUNT(expected); i++)
        tests[n++] = (struct CMUnitTest){
            .name = expected[i], .test_func = provider_is_there, .initial_state = expected[i]};
    int failed = _cmocka_run_group_tests("parity/parity", tests, (size_t)n, NULL, NULL);
    sac_device_unref(&device);
    return failed;
}
