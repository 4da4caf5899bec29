/* SPDX-License-Identifier: Apache-2.0 */
/* A deterministic device gives the same bits in every process: whichever model came first, and
 * whatever was measured there before. Processes of their own, as a GPU's driver outlives no fork.
 * usage: test_pipeline_deterministic [FOLDER]     the models of that folder, or those we publish */
#include <glob.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/model/model.h"
#include "tests/gpu.h"

enum { MODELS_MAX = 16, SIZES = 2, NO_DEVICE = 77 };
static const char *models[MODELS_MAX] = {"person_det_fast", "person_det", "person_reid",
                                         "person_seg"};
static int         model_count = 4;
static const int   sizes[SIZES] = {3, 8};

struct answers {
    uint64_t of[MODELS_MAX][SIZES];
};

/* ---- in a process of its own ---- */

static void must(sac_result res, const char *what)
{
    char why[512];
    if (res == SAC_OK)
        return;
    sac_context_last_error(test_context(), why, sizeof why);
    fprintf(stderr, "%s: %s\n", what, why);
    _exit(1);
}

static sac_device *open_or_leave(int deterministic)
{
    struct sac_device_params params = sac_device_params_default();
    sac_device              *dev = NULL;
    char                     why[512];
    params.deterministic = deterministic;
    if (sac_device_open(test_context(), "cuda", &params, &dev) == SAC_OK)
        return dev;
    sac_context_last_error(test_context(), why, sizeof why);
    fprintf(stderr, "%s\n", why);
    _exit(NO_DEVICE);
}

static sac_tensor *make_input(sac_device *dev, const sac_model *model, int n)
{
    struct sac_tensor_desc desc = sac_model_input(model, 0)->desc;
    sac_tensor            *in = NULL;
    uint32_t               seed = 1;
    desc.shape[0] = n;
    const size_t count = (size_t)sac_tensor_desc_elements(&desc);
    float       *v = malloc(count * sizeof *v);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        v[i] = (float)(seed >> 8) / 16777216.0f;
    }
    must(sac_tensor_create(dev, &desc, "test", &in), "input");
    must(sac_tensor_upload(in, v), "input");
    free(v);
    return in;
}

/* FNV-1a of all outputs. */
static uint64_t run(sac_device *dev, sac_model *model, int n)
{
    sac_tensor *out[8] = {NULL}, *in = make_input(dev, model, n);
    uint64_t    sum = 14695981039346656037u;
    must(sac_model_run(model, &in, out), "run");
    for (int i = 0; i < sac_model_output_count(model); i++) {
        const size_t bytes = (size_t)sac_tensor_desc_bytes(sac_tensor_describe(out[i]));
        uint8_t     *host = malloc(bytes);
        must(sac_tensor_download(out[i], host), "output");
        for (size_t k = 0; k < bytes; k++)
            sum = (sum ^ host[k]) * 1099511628211u;
        free(host);
        sac_tensor_unref(&out[i]);
    }
    sac_tensor_unref(&in);
    return sum;
}

static void run_model(sac_device *dev, int which, struct answers *out)
{
    sac_model *model = NULL;
    must(sac_model_load(dev, models[which], NULL, &model), models[which]);
    for (int s = 0; s < SIZES; s++)
        out->of[which][s] = run(dev, model, sizes[s]);
    sac_model_unref(&model);
}

/* measured: another device of this process chose by measurement before. */
static void answer(int to, bool backwards, bool measured)
{
    struct answers a = {0};
    if (measured) {
        sac_device *dev = open_or_leave(0);
        for (int i = 0; i < model_count; i++)
            run_model(dev, i, &a);
        sac_device_unref(&dev);
    }
    sac_device *dev = open_or_leave(1);
    for (int i = 0; i < model_count; i++)
        run_model(dev, backwards ? model_count - 1 - i : i, &a);
    sac_device_unref(&dev);
    _exit(write(to, &a, sizeof a) == sizeof a ? 0 : 1);
}

/* ---- here ---- */

static struct answers ask(bool backwards, bool measured)
{
    struct answers a;
    int            ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        answer(ends[1], backwards, measured);
    close(ends[1]);
    const ssize_t got = read(ends[0], &a, sizeof a);
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_DEVICE && !getenv("SACCADE_TEST_GPU"))
        skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(got, sizeof a);
    return a;
}

static void processes_agree(void **state)
{
    (void)state;
    const struct answers want = ask(false, false);
    for (int turn = 0; turn < 2; turn++) {
        const struct answers got = ask(turn == 0, turn == 1);
        for (int i = 0; i < model_count; i++)
            for (int s = 0; s < SIZES; s++)
                if (got.of[i][s] != want.of[i][s])
                    fail_msg("%s, batch %d: other numbers %s", models[i], sizes[s],
                             turn ? "after a measurement" : "in another order");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(processes_agree)};
    glob_t                  found = {0};
    char                    pattern[512];
    if (argc > 1) {
        snprintf(pattern, sizeof pattern, "%s/*.onnx", argv[1]);
        if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc > MODELS_MAX)
            return 1;
        model_count = (int)found.gl_pathc;
        for (int i = 0; i < model_count; i++)
            models[i] = found.gl_pathv[i];
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    globfree(&found);
    return failed;
}
