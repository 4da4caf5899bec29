/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model: read, inspected, planned and, when small, run. Whatever the file says, we
 * stay within a few megabytes and end with a result or a sentence. */
#include <stdlib.h>
#include <string.h>

#include <saccade/model.h>

enum { PORTS_MAX = 16, BYTES_MAX = 1 << 22, FLOPS_MAX = 20000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A Loop may take a million turns; that is allowed, but not worth a fuzzer's time. */
static int has_control_flow(const struct sac_model_info *info)
{
    for (int i = 0; i < info->operator_count; i++)
        if (strcmp(info->operators[i].name, "Loop") == 0 ||
            strcmp(info->operators[i].name, "Scan") == 0)
            return 1;
    return 0;
}

static sac_result make_input(sac_device *dev, const struct sac_model_port *port, int64_t batch,
                             sac_tensor **out)
{
    struct sac_tensor_desc desc = port->desc;
    desc.rank = desc.rank < 0 ? 1 : desc.rank;
    for (int d = 0; d < desc.rank; d++)
        if (desc.shape[d] == SAC_DIM_UNKNOWN || port->desc.rank < 0)
            desc.shape[d] = d == 0 ? batch : 3;
    int64_t bytes = sac_tensor_desc_bytes(&desc);
    if (bytes < 0 || bytes > BYTES_MAX || desc.dtype == SAC_DTYPE_NONE)
        return SAC_ERR_LIMIT;
    sac_result res = sac_tensor_create(dev, &desc, "fuzz", out);
    if (res == SAC_OK)
        memset(sac_tensor_data(*out), desc.dtype == SAC_BOOL ? 1 : 0x3f, (size_t)bytes);
    return res;
}

static void run(sac_device *dev, sac_model *model, int64_t batch)
{
    sac_tensor *in[PORTS_MAX] = {NULL}, *out[PORTS_MAX] = {NULL};
    int         inputs = sac_model_input_count(model), outputs = sac_model_output_count(model);
    sac_result  res = inputs <= PORTS_MAX && outputs <= PORTS_MAX ? SAC_OK : SAC_ERR_LIMIT;
    for (int i = 0; i < inputs && res == SAC_OK; i++)
        res = make_input(dev, sac_model_input(model, i), batch, &in[i]);
    if (res == SAC_OK)
        res = sac_model_run(model, in, out);
    for (int i = 0; i < PORTS_MAX; i++) {
        if ((res == SAC_OK && i < outputs) != (out[i] != NULL))
            abort(); /* all outputs or none */
        sac_tensor_unref(&in[i]);
        sac_tensor_unref(&out[i]);
    }
}

static void count_line(void *user, const char *line)
{
    *(size_t *)user += strlen(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sac_context      *ctx;
    static sac_device       *dev;
    struct sac_device_params one = sac_device_params_default();
    struct sac_model_params  params = sac_model_params_default();
    sac_model               *model = NULL;
    one.threads = 1;
    params.memory_limit_bytes = BYTES_MAX;
    if ((!ctx && sac_context_create(NULL, &ctx) != SAC_OK) ||
        (!dev && sac_device_open(ctx, "cpu", &one, &dev) != SAC_OK))
        abort();
    sac_result res = sac_model_load_memory(dev, data, size, "fuzz.onnx", &params, &model);
    char       why[64];
    if (res != SAC_OK && sac_context_last_error(ctx, why, sizeof why) == 0)
        abort(); /* a fault without a sentence */
    if (res == SAC_OK) {
        struct sac_model_info info;
        size_t                chars = 0;
        sac_model_inspect(model, &info);
        sac_model_dump_steps(model, count_line, &chars);
        for (int64_t batch = 1; batch <= 2; batch++)
            if (info.flops < FLOPS_MAX && !has_control_flow(&info))
                run(dev, model, batch);
    }
    sac_model_unref(&model);
    return 0;
}
