/* SPDX-License-Identifier: Apache-2.0 */
/* The ONNX project's node tests that must pass (pass.txt), packed by pack.py, on a device: in full
 * precision with each case's own tolerance or that of the GPU's sums, whichever is wider; in half
 * precision with one that is stated below. usage: test_nodes PACK [cuda|cpu|far [NAME|PART/PARTS]]
 * (far: engine/far.h, with BODIES under the kernels of parity/bodies.h; NAME: one case; of PARTS,
 * the one numbered PART has every PARTS-th) */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "tests/engine/far.h"
#include "tests/gpu.h"
#ifdef BODIES
#include "tests/parity/bodies.h"
#endif

enum {
    PORTS_MAX = 16,
    NAMES_MAX = 60 /* failures shown */,
    LOST_MAX = 20 /* in a row: the GPU is gone */
};

static struct {
    uint8_t *at, *end;
    int      count;
} pack;
static sac_device *dev;
static const char *device_name = "cuda", *only;
static int         part, parts = 1;

/* ---- the pack ---- */

static const void *take(size_t bytes)
{
    const void *p = pack.at;
    if ((size_t)(pack.end - pack.at) < bytes)
        fail_msg("the pack ends early");
    pack.at += bytes;
    return p;
}

static uint32_t take_u32(void)
{
    uint32_t v;
    memcpy(&v, take(4), 4);
    return v;
}

static double take_f64(void)
{
    double v;
    memcpy(&v, take(8), 8);
    return v;
}

struct packed {
    struct sac_tensor_desc desc;
    const void            *bytes;
};
struct node_case {
    char          name[160];
    double        rtol, atol;
    const void   *model;
    size_t        size;
    int           in_count, out_count;
    struct packed in[PORTS_MAX], out[PORTS_MAX];
};

static int take_tensors(struct packed *list)
{
    const uint32_t count = take_u32();
    assert_in_range(count, 0, PORTS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct sac_tensor_desc *d = &list[i].desc;
        *d = (struct sac_tensor_desc){.dtype = (enum sac_dtype)take_u32()};
        d->rank = (int)take_u32();
        assert_in_range(d->rank, 0, SAC_RANK_MAX);
        memcpy(d->shape, take((size_t)d->rank * 8), (size_t)d->rank * 8);
        const uint32_t bytes = take_u32();
        list[i].bytes = take(bytes);
        assert_int_equal(bytes, sac_tensor_desc_bytes(d));
    }
    return (int)count;
}

static void take_case(struct node_case *c)
{
    const uint32_t length = take_u32();
    assert_in_range(length, 1, sizeof c->name - 1);
    memcpy(c->name, take(length), length);
    c->name[length] = '\0';
    c->rtol = take_f64();
    c->atol = take_f64();
    c->size = take_u32();
    c->model = take(c->size);
    c->in_count = take_tensors(c->in);
    c->out_count = take_tensors(c->out);
}

/* ---- one case ---- */

static bool is_real(enum sac_dtype dtype)
{
    return dtype == SAC_F32 || dtype == SAC_F64 || dtype == SAC_F16 || dtype == SAC_BF16;
}

/* What the numbers may be off: |got - want| <= atol + rtol |want|. In half precision every number
 * that is read and stored is rounded to 11 bits, so sums are off by some of the largest that goes
 * in: atol is a part of the largest of the output. A file of float16 computes so too. Integers are
 * indices and counts: one step, as a
 * rounded number may count otherwise. */
static void tolerance(const struct node_case *c, int i, bool half, double largest, double *rtol,
                      double *atol)
{
    const enum sac_dtype dtype = c->out[i].desc.dtype;
    *rtol = c->rtol;
    *atol = c->atol;
    if (is_real(dtype) && !strcmp(dev->ops->name, "cuda")) {
        *rtol = fmax(*rtol, 1e-3);
        *atol = fmax(*atol, 1e-5 * largest);
    }
    if (dtype == SAC_BF16)
        *rtol = fmax(*rtol, ldexp(1, -6));
    if ((dtype == SAC_F32 || dtype == SAC_F16) && half) {
        *rtol = 1e-2;
        *atol = fmax(1e-2 * largest, 1e-3);
    }
    if (!is_real(dtype) && half)
        *atol = 1;
}

static bool equal(const struct node_case *c, int i, void *got, bool half, char *why, size_t size)
{
    const enum sac_dtype     dtype = c->out[i].desc.dtype;
    const struct sac_operand x = {.dtype = dtype, .data = got},
                             y = {.dtype = dtype, .data = (void *)c->out[i].bytes};
    const int64_t count = sac_tensor_desc_elements(&c->out[i].desc);
    double        rtol, atol, largest = 0;
    for (int64_t k = 0; k < count; k++) {
        const double v = fabs(sac_operand_get(&y, k));
        largest = isfinite(v) ? fmax(largest, v) : largest;
    }
    tolerance(c, i, half, largest, &rtol, &atol);
    for (int64_t k = 0; k < count; k++) {
        const double u = sac_operand_get(&x, k), v = sac_operand_get(&y, k);
        const bool   beyond =
            half && dtype == SAC_F32 && fabs(v) > 65504 && fabs(u) >= 65504; /* infinite
                                                                                there
                                                                              */
        if (u == v || (isnan(u) && isnan(v)) || fabs(u - v) <= atol + rtol * fabs(v) || beyond)
            continue;
        snprintf(why, size, "output %d, number %lld: %.7g, not %.7g", i, (long long)k, u, v);
        return false;
    }
    return true;
}

static bool check_output(const struct node_case *c, int i, sac_tensor *t, bool half, char *why,
                         size_t size)
{
    const struct sac_tensor_desc *d = sac_tensor_describe(t), *want = &c->out[i].desc;
    if (d->dtype != want->dtype || d->rank != want->rank ||
        memcmp(d->shape, want->shape, (size_t)d->rank * sizeof d->shape[0]) != 0) {
        snprintf(why, size, "output %d: another dtype or shape", i);
        return false;
    }
    void *host = malloc((size_t)sac_tensor_desc_bytes(d) + 1);
    bool  good = sac_tensor_download(t, host) == SAC_OK;
    if (!good)
        sac_context_last_error(test_context(), why, size);
    good = good && equal(c, i, host, half, why, size);
    free(host);
    return good;
}

static sac_result send(const struct node_case *c, sac_model *m, sac_tensor **in)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < c->in_count && i < sac_model_input_count(m) && res == SAC_OK; i++) {
        res = sac_tensor_create(dev, &c->in[i].desc, "test", &in[i]);
        if (res == SAC_OK)
            res = sac_tensor_upload(in[i], c->in[i].bytes);
    }
    return res;
}

/* Twice into the same tensors, so that the second run is a captured one. *host: nodes that ran
 * there. */
static bool run_case(const struct node_case *c, enum sac_precision precision, int *host, char *why,
                     size_t size)
{
    struct sac_model_params params = sac_model_params_default();
    sac_tensor             *in[PORTS_MAX] = {NULL}, *out[PORTS_MAX] = {NULL};
    sac_model              *m = NULL;
    params.precision = precision;
    params.free_batch = 0;
    params.tune = 0;
    sac_result res = sac_model_load_memory(dev, c->model, c->size, c->name, &params, &m);
    if (res == SAC_OK)
        res = send(c, m, in);
    for (int run = 0; run < 2 && res == SAC_OK; run++)
        res = sac_model_run_on(m, NULL, in, out);
    bool good = res == SAC_OK;
    if (!good)
        sac_context_last_error(test_context(), why, size);
    for (int i = 0; i < c->out_count && good; i++)
        good = check_output(c, i, out[i], precision == SAC_PRECISION_FP16, why, size);
    for (int i = 0; m && i < SAC_PLANS_MAX; i++)
        *host += m->plans[i] ? m->plans[i]->host_steps + (int)m->plans[i]->tail_count : 0;
    for (int i = 0; i < PORTS_MAX; i++) {
        sac_tensor_unref(&in[i]);
        sac_tensor_unref(&out[i]);
    }
    sac_model_unref(&m);
    return good;
}

/* Numbers near 10,000 are four apart in float16: what one off makes in e^x is no fault. */
static bool beyond_half(const struct node_case *c)
{
    return strstr(c->name, "softmax_large_number") != NULL;
}

/* ---- all of them ---- */

static const char *volatile running = "no case";

/* In a signal's handler. */
static void say_running(const char *what)
{
    const char *const words[] = {what, running, "\n"};
    for (size_t i = 0; i < SAC_COUNT(words); i++)
        if (write(STDERR_FILENO, words[i], strlen(words[i])) < 0)
            _exit(1);
}

/* Whoever stops it, as it takes too long, learns which case did not end. */
static void say_where(int signal_number)
{
    say_running("stopped in ");
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* A case takes milliseconds; after this many seconds it is named, and goes on. */
enum { LONG_S = 20 };
static void say_long(int signal_number)
{
    (void)signal_number;
    say_running("takes long: ");
}

static void run_all(enum sac_precision precision)
{
    static struct node_case c;
    uint8_t *const          begin = pack.at;
    int                     passed = 0, failed = 0, host_cases = 0, lost = 0;
    char                    host_names[1500] = "";
    for (int i = 0; i < pack.count && lost < LOST_MAX; i++) {
        char why[400] = "";
        int  host = 0;
        take_case(&c);
        if ((only && strcmp(only, c.name) != 0) || i % parts != part ||
            (precision == SAC_PRECISION_FP16 && beyond_half(&c)))
            continue;
        running = c.name;
        alarm(LONG_S);
        const bool good = run_case(&c, precision, &host, why, sizeof why);
        alarm(0);
        passed += good;
        failed += !good;
        lost =
            good ? 0 : lost + (strstr(why, "CUDA error") || strstr(why, "illegal memory") ? 1 : 0);
        if (!good && failed <= NAMES_MAX)
            print_message("%s %s: %s\n", sac_precision_name(precision), c.name, why);
        host_cases += host > 0;
        if (host > 0 && strlen(host_names) + strlen(c.name) + 2 < sizeof host_names)
            strcat(strcat(host_names, " "), c.name + 5); /* test_ */
    }
    pack.at = begin;
    print_message("%s on %s: %d cases pass, %d fail; of %d some node runs on the host\n",
                  sac_precision_name(precision), sac_device_name(dev), passed, failed, host_cases);
    if (host_cases > 0 && precision == SAC_PRECISION_FP32)
        print_message("on the host, e.g.:%s\n", host_names);
    assert_int_equal(failed, 0);
}

static void need_device(void)
{
    if (!pack.at) {
        if (getenv("SACCADE_TEST_GPU"))
            fail_msg("the packed node tests are not here: tests/conformance/pack.py makes them");
        print_message(
            "skipped: the packed node tests are not here; tests/conformance/pack.py makes them\n");
        skip();
    }
    if (!dev && !strcmp(device_name, "cuda"))
        dev = gpu_open(NULL);
    else if (!dev && !strcmp(device_name, "far"))
        assert_sac_ok(far_open(test_context(), NULL, &dev));
    else if (!dev)
        assert_sac_ok(sac_device_open(test_context(), device_name, NULL, &dev));
}

static void nodes_in_fp32(void **state)
{
    (void)state;
    need_device();
    run_all(SAC_PRECISION_FP32);
}

static void nodes_in_fp16(void **state)
{
    (void)state;
    need_device();
    if (!strcmp(device_name, "cpu"))
        skip();
    run_all(SAC_PRECISION_FP16);
}

static int close_device(void **state)
{
    (void)state;
    sac_device_unref(&dev);
    return 0;
}

static void read_pack(const char *path)
{
    struct stat st;
    FILE       *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st) != 0)
        return;
    uint8_t *bytes = malloc((size_t)st.st_size);
    if (fread(bytes, 1, (size_t)st.st_size, f) == (size_t)st.st_size && st.st_size > 12 &&
        !memcmp(bytes, "SACNODE1", 8)) {
        pack.at = bytes + 8;
        pack.end = bytes + st.st_size;
        pack.count = (int)take_u32();
    }
    fclose(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_in_fp32),
                                       cmocka_unit_test(nodes_in_fp16)};
    if (argc < 2)
        return 2;
#ifdef BODIES
    far_first = &bodies;
#endif
    device_name = argc > 2 ? argv[2] : device_name;
    if (argc > 3 && sscanf(argv[3], "%d/%d", &part, &parts) != 2)
        only = argv[3];
    read_pack(argv[1]);
    signal(SIGTERM, say_where);
    signal(SIGALRM, say_long);
    return cmocka_run_group_tests_name("conformance/nodes", tests, NULL, close_device);
}
