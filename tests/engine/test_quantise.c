/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising: the file that is written loses what it says, and one that loses too much is not
 * written; networks that are written are read again as they were. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/quantise.h"
#include "tests/engine/device.h"
#include "tests/engine/proto.h"
#include "tests/test.h"

static char                 folder[64], out[128];
static struct sac_quantised told;
static int                  told_kept, told_faster; /* layers that stay; as they are faster so */

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/saccade-quantise-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(out, sizeof out, "%s/net.plan", folder);
    return 0;
}

static int end(void **state)
{
    unlink(out);
    rmdir(folder);
    return close_device(state);
}

static void note(void *user, const struct sac_quantised *q)
{
    (void)user;
    told = *q;
    told_kept = q->kept_count;
    told_faster = 0;
    for (int i = 0; i < q->kept_count; i++)
        told_faster += strstr(q->kept[i], ": faster as it is") != NULL;
}

static struct sac_build_params params_of(enum sac_precision precision)
{
    struct sac_build_params params = sac_build_params_default();
    params.model.precision = precision;
    params.on_quantised = note;
    params.width = params.height = 0;
    told = (struct sac_quantised){.layers = 0};
    return params;
}

static sac_result build(const char *model, const struct sac_build_params *params, const char *to)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", MODELS_DIR, model);
    return sac_model_build(device(), path, params, to, NULL, NULL);
}

/* All outputs of a run on the same picture, one after the other; the caller frees them. */
static float *results(const char *path, enum sac_precision precision, int64_t *count)
{
    struct sac_model_params params = sac_model_params_default();
    struct sac_tensor_desc  desc = {.dtype = SAC_F32, .rank = 4, .shape = {1, 3, 64, 64}};
    sac_model              *m = NULL;
    sac_tensor             *in = NULL, *y[8] = {NULL};
    float                  *all = NULL;
    params.precision = precision;
    assert_sac_ok(sac_model_load(device(), path, &params, &m));
    assert_int_equal(sac_model_precision(m), precision ? precision : SAC_PRECISION_FP32);
    assert_sac_ok(sac_tensor_create(device(), &desc, "test", &in));
    for (int64_t i = 0; i < sac_tensor_desc_elements(&desc); i++)
        ((float *)sac_tensor_data(in))[i] = 0.5f + 0.5f * sinf((float)i * 0.01f);
    assert_sac_ok(sac_model_run(m, &in, y));
    *count = 0;
    for (int k = 0; k < sac_model_output_count(m); k++) {
        const int64_t n = sac_tensor_desc_elements(sac_tensor_describe(y[k]));
        all = realloc(all, (size_t)(*count + n) * sizeof *all);
        memcpy(all + *count, sac_tensor_data(y[k]), (size_t)n * sizeof *all);
        *count += n;
        sac_tensor_unref(&y[k]);
    }
    sac_tensor_unref(&in);
    sac_model_unref(&m);
    return all;
}

static double off_by(const float *got, const float *want, int64_t n)
{
    double off = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        off += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        all += (double)want[i] * want[i];
    }
    return sqrt(off / all);
}

static void check_quantised(const char *model, double limit)
{
    char                    path[256];
    struct sac_build_params params = params_of(SAC_PRECISION_INT8);
    struct sac_model_info   info;
    sac_model              *m = NULL;
    int64_t                 n, same;
    params.loss_max = limit;
    snprintf(path, sizeof path, "%s/%s", MODELS_DIR, model);
    assert_sac_ok(build(model, &params, out));
    assert_true(told.layers > 0 && told.quantised + told_kept == told.layers);
    assert_true(told.measured == SAC_QUALITY_NUMBERS && told.loss <= told.loss_max);
    assert_true(fabs(told.quality + told.loss - 1) < 1e-9 && told.loss > 0);
    assert_true(told.weights_bytes < told.weights_bytes_before / 2 && told.ms > 0);
    float *got = results(out, SAC_PRECISION_INT8, &n);
    float *want = results(path, SAC_PRECISION_DEFAULT, &same);
    assert_int_equal(n, same);
    const double off = off_by(got, want, n);
    if (!(off <= 3 * limit))
        fail_msg("%s is off by %g", model, off);
    assert_sac_ok(sac_model_load(device(), out, NULL, &m));
    sac_model_inspect(m, &info);
    assert_non_null(strstr(info.quantised, "int8"));
    sac_model_unref(&m);
    free(got);
    free(want);
}

static void a_quantised_network_gives_almost_the_same(void **state)
{
    (void)state;
    check_quantised("resnet50.onnx", 0.1);
    check_quantised("yolov8.onnx", 0.1);
}

static void each_method_has_a_name_and_works(void **state)
{
    enum sac_calibration_method method;
    (void)state;
    for (int i = SAC_CALIBRATION_MIN_MAX; i <= SAC_CALIBRATION_ENTROPY; i++) {
        struct sac_build_params params = params_of(SAC_PRECISION_INT8);
        params.method = (enum sac_calibration_method)i;
        params.loss_max = 0.3;
        assert_sac_ok(build("osnet.onnx", &params, out));
        const char *name = sac_calibration_method_name(params.method);
        assert_sac_ok(sac_calibration_method_parse(name, &method));
        assert_int_equal(method, i);
    }
    assert_int_equal(sac_calibration_method_parse("guess", &method), SAC_ERR_ARG);
}

static const char *last_error(void)
{
    static char why[2048];
    sac_context_last_error(test_context(), why, sizeof why);
    return why;
}

static void what_loses_too_much_is_not_written(void **state)
{
    struct sac_build_params params = params_of(SAC_PRECISION_INT8);
    (void)state;
    unlink(out);
    params.loss_max = 1e-7;
    assert_int_equal(build("mobilenetv3.onnx", &params, out), SAC_ERR_FORMAT);
    assert_int_equal(access(out, F_OK), -1);
    assert_int_equal(told.layers, 0);
    assert_non_null(strstr(last_error(), "1e-07 is allowed"));
    assert_non_null(strstr(last_error(), "off most by themselves: layer "));
}

static void layers_that_lose_most_stay(void **state)
{
    struct sac_build_params params = params_of(SAC_PRECISION_INT8);
    (void)state;
    params.loss_max = 0.5;
    assert_sac_ok(build("osnet.onnx", &params, out));
    assert_int_equal(told_kept, 0);
    params.loss_max = told.loss * 0.98;
    params.layers_min = 1;
    assert_sac_ok(build("osnet.onnx", &params, out));
    assert_true(told_kept > 0 && told.loss <= params.loss_max);
}

/* A device that measures its kernels tries which layers are faster as they are. */
static void layers_that_are_faster_as_they_are_stay(void **state)
{
    struct sac_device           *dev = device();
    const struct sac_device_ops *ops = dev->ops;
    struct sac_device_ops        measures = *ops;
    struct sac_build_params      params = params_of(SAC_PRECISION_INT8);
    int64_t                      count = 0;
    (void)state;
    measures.measures_kernels = true;
    params.loss_max = 0.2;
    params.batch_max = 4;
    dev->ops = &measures;
    const sac_result res = build("osnet.onnx", &params, out);
    dev->ops = ops;
    assert_sac_ok(res);
    assert_true(told.layers > 0);
    assert_int_equal(told.quantised + told_kept, told.layers);
    assert_int_equal(told_faster, told_kept);
    assert_true(told.quantised > 0);
    free(results(out, SAC_PRECISION_INT8, &count));
    assert_true(count > 0);
}

/* Three products of x and one of what the first makes, whose largest weights are 1, 8, 2 and 4. The
 * model reads `kept`. */
static sac_model *four_products(struct proto *kept)
{
    static const float      most[] = {1, 8, 2, 4};
    struct sac_model_params params = sac_model_params_default();
    struct proto            graph = {0}, none = {0};
    sac_model              *m = NULL;
    for (int i = 0; i < 4; i++) {
        char  name[8], inputs[16], output[8];
        float w[16] = {0};
        w[i + 3] = -most[i];
        snprintf(name, sizeof name, "w%d", i);
        snprintf(inputs, sizeof inputs, "%s w%d", i < 3 ? "x" : "y0", i);
        snprintf(output, sizeof output, "y%d", i);
        proto_initializer(&graph, name, 1, "4 4", w, sizeof w);
        proto_node(&graph, "MatMul", inputs, output, &none);
        proto_output(&graph, output, 1, "3 4");
    }
    proto_input(&graph, "x", 1, "3 4");
    proto_model(kept, &graph, 19);
    params.optimise = false;
    assert_sac_ok(
        sac_model_load_memory(device(), kept->bytes, kept->size, "four.onnx", &params, &m));
    return m;
}

/* In float8 products of one input have one scale; those of another, or that stay, their own. */
static void float8_products_of_one_input_share_a_scale(void **state)
{
    static const struct {
        bool  use[4];
        float most[4];
    } want[] = {{{true, true, true, true}, {8, 8, 8, 4}},
                {{true, false, true, true}, {2, 0, 2, 4}}};
    (void)state;
    for (size_t k = 0; k < SAC_COUNT(want); k++) {
        struct proto                 kept = {0};
        sac_model                   *m = four_products(&kept);
        const struct sac_quant_rules rules = {.float8 = true, .multiple = 1};
        struct sac_quant_map         map;
        assert_sac_ok(sac_quant_map_init(&map, m->graph, &rules));
        assert_int_equal(map.count, 4);
        struct sac_quant_scale *scales = sac_calloc((size_t)m->graph->id_count, sizeof *scales);
        for (int i = 0; i < m->graph->id_count; i++)
            scales[i].scale = 1;
        assert_sac_ok(sac_quant_apply(&map, want[k].use, SAC_F8, scales));
        for (size_t i = 0, layer = 0; i < m->graph->node_count; i++) {
            const struct sac_node *n = m->graph->nodes[i], *w;
            if (strcmp(n->op_type, "MatMul") != 0)
                continue;
            w = n->inputs[1]->producer;
            assert_int_equal(w != NULL, want[k].use[layer]);
            for (int c = 0; w && c < 4; c++)
                assert_true(((const float *)w->inputs[1]->data)[c] == want[k].most[layer] / 448);
            layer++;
        }
        sac_free(scales);
        sac_quant_map_finish(&map);
        sac_model_unref(&m);
        proto_free(&kept);
    }
}

static void refuses_in_a_sentence(void **state)
{
    struct sac_model_params eight = {.optimise = 1, .precision = SAC_PRECISION_INT8};
    struct sac_build_params params = params_of(SAC_PRECISION_FP8);
    sac_model              *m = NULL;
    char                    onnx[140];
    (void)state;
    assert_int_equal(build("osnet.onnx", &params, out), SAC_ERR_UNSUPPORTED);
    assert_non_null(strstr(last_error(), "fp8 needs a GPU"));
    assert_int_equal(sac_model_load(device(), MODELS_DIR "/osnet.onnx", &eight, &m),
                     SAC_ERR_UNSUPPORTED);
    assert_non_null(strstr(last_error(), "no layers in int8"));
    snprintf(onnx, sizeof onnx, "%s/net.onnx", folder);
    params = params_of(SAC_PRECISION_INT8);
    params.loss_max = 0.5;
    assert_sac_ok(build("osnet.onnx", &params, onnx));
    assert_sac_ok(sac_model_load(device(), onnx, &eight, &m));
    sac_model_unref(&m);
    assert_int_equal(sac_model_build(device(), onnx, &params, out, NULL, NULL),
                     SAC_ERR_UNSUPPORTED);
    assert_non_null(strstr(last_error(), "quantised already"));
    unlink(onnx);
    params = params_of(SAC_PRECISION_DEFAULT);
    assert_int_equal(build("osnet.onnx", &params, out), SAC_ERR_UNSUPPORTED);
}

static void limits_that_are_none_are_refused(void **state)
{
    const double losses[] = {-0.1, 1.5, (double)NAN, (double)INFINITY};
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(losses); i++) {
        struct sac_build_params params = params_of(SAC_PRECISION_INT8);
        params.loss_max = losses[i];
        assert_int_equal(build("osnet.onnx", &params, out), SAC_ERR_ARG);
        assert_non_null(strstr(last_error(), "loss_max"));
    }
    struct sac_build_params params = params_of(SAC_PRECISION_INT8);
    params.layers_min = 101;
    assert_int_equal(build("osnet.onnx", &params, out), SAC_ERR_ARG);
    assert_non_null(strstr(last_error(), "layers_min is 101"));
    params.layers_min = 0;
    params.method = (enum sac_calibration_method)99;
    assert_int_equal(build("osnet.onnx", &params, out), SAC_ERR_ARG);
}

/* ---- the writer ---- */

static sac_result rewrite(const void *bytes, size_t size, uint8_t **again, size_t *again_size)
{
    struct sac_model_params params = sac_model_params_default();
    sac_model              *m = NULL;
    params.optimise = 0;
    params.free_batch = 0;
    sac_result res = bytes ? sac_model_load_memory(device(), bytes, size, "again", &params, &m)
                           : sac_model_load(device(), out, &params, &m);
    if (res == SAC_OK)
        res = sac_onnx_write(&m->onnx, NULL, 0, again, again_size);
    sac_model_unref(&m);
    return res;
}

static void what_is_written_is_read_as_it_was(void **state)
{
    static const char *const models[] = {"rtdetr", "segformer", "yolo11", "nanodet", "modnet"};
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(models); i++) {
        struct sac_model_params params = {.free_batch = 0};
        uint8_t                *once = NULL, *twice = NULL;
        size_t                  size, same;
        char                    path[256];
        sac_model              *m = NULL;
        snprintf(path, sizeof path, "%s/%s.onnx", MODELS_DIR, models[i]);
        assert_sac_ok(sac_model_load(device(), path, &params, &m));
        assert_sac_ok(sac_onnx_write(&m->onnx, NULL, 0, &once, &size));
        sac_model_unref(&m);
        assert_sac_ok(rewrite(once, size, &twice, &same));
        assert_int_equal(size, same);
        assert_memory_equal(once, twice, size);
        sac_free(once);
        sac_free(twice);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quantised_network_gives_almost_the_same),
        cmocka_unit_test(each_method_has_a_name_and_works),
        cmocka_unit_test(what_loses_too_much_is_not_written),
        cmocka_unit_test(layers_that_lose_most_stay),
        cmocka_unit_test(layers_that_are_faster_as_they_are_stay),
        cmocka_unit_test(float8_products_of_one_input_share_a_scale),
        cmocka_unit_test(refuses_in_a_sentence),
        cmocka_unit_test(limits_that_are_none_are_refused),
        cmocka_unit_test(what_is_written_is_read_as_it_was),
    };
    return cmocka_run_group_tests_name("engine/quantise", tests, begin, end);
}
