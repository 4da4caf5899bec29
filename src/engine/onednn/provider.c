/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in's export, and functions that its kernels share. */
#include <stdio.h>
#include <string.h>

#include "engine/onednn/onednn.h"

dnnl_engine_t onednn_engine;
dnnl_stream_t onednn_stream;

static void create_engine(void *result)
{
    dnnl_status_t *res = result;
    *res = onednn_engine ? dnnl_success : dnnl_engine_create(&onednn_engine, dnnl_cpu, 0);
    if (*res == dnnl_success && !onednn_stream)
        *res = dnnl_stream_create(&onednn_stream, onednn_engine, dnnl_stream_default_flags);
}

/* Engine and thread are created once and kept, although devices open and close. */
static sac_result provider_open(struct sac_device *dev)
{
    dnnl_status_t made = dnnl_success;
    sac_result    res = worker_start(dev->ctx);
    if (res == SAC_OK)
        worker_call(dev->params.threads, create_engine, &made);
    return made == dnnl_success
               ? res
               : SAC_FAIL(dev->ctx, SAC_ERR_DEVICE, "oneDNN gives no CPU engine (status %d)", made);
}

sac_result onednn_fail(const struct sac_op_call *c, dnnl_status_t status, const char *doing)
{
    if (status == dnnl_out_of_memory)
        return SAC_OP_FAIL(c, SAC_ERR_MEMORY, "oneDNN has no memory for %s", doing);
    return SAC_OP_FAIL(c, SAC_ERR_DEVICE, "oneDNN fails at %s (status %d)", doing, status);
}

/* ---- primitives ---- */

static void primitive_destroy(void *arg)
{
    struct primitive *p = arg;
    dnnl_primitive_destroy(p->handle);
    dnnl_memory_destroy(p->src);
    dnnl_memory_destroy(p->weights);
    dnnl_memory_destroy(p->bias);
    dnnl_memory_destroy(p->dst);
    dnnl_memory_destroy(p->scratchpad);
    sac_free(p->packed);
    sac_free(p->numbers);
    *p = (struct primitive){0};
}

/* constant: plain weights described by `from`, packed here; NULL: they come with each run. */
static dnnl_status_t primitive_create(struct primitive *p, const_primitive_desc pd,
                                      memory_desc from, const void *constant, bool with_bias)
{
    dnnl_status_t res = dnnl_primitive_create(&p->handle, pd);
    if (res == dnnl_success && constant) {
        p->packed = sac_alloc_aligned(64, SAC_MAX(bytes_for(pd, dnnl_query_weights_md), 64));
        res = p->packed
                  ? reorder_weights(pd, onednn_engine, onednn_stream, from, constant, p->packed)
                  : dnnl_out_of_memory;
    }
    if (res != dnnl_success)
        return res;
    p->src = memory_for(pd, dnnl_query_src_md, onednn_engine, NULL);
    p->weights = memory_for(pd, dnnl_query_weights_md, onednn_engine, p->packed);
    p->dst = memory_for(pd, dnnl_query_dst_md, onednn_engine, NULL);
    p->scratchpad = memory_for(pd, dnnl_query_scratchpad_md, onednn_engine, NULL);
    if (with_bias) {
        dnnl_memory_t bias = NULL;
        res = dnnl_memory_create(&bias, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1),
                                 onednn_engine, NULL);
        p->bias = bias;
    }
    return res == dnnl_success && p->src && p->weights && p->dst && p->scratchpad
               ? dnnl_success
               : dnnl_out_of_memory;
}

dnnl_status_t primitive_run(struct primitive *p, const void *src, const void *weights,
                            const void *bias, void *dst, void *scratch)
{
    dnnl_exec_arg_t args[5] = {{DNNL_ARG_SRC, p->src},
                               {DNNL_ARG_WEIGHTS, p->weights},
                               {DNNL_ARG_DST, p->dst},
                               {DNNL_ARG_SCRATCHPAD, p->scratchpad},
                               {DNNL_ARG_BIAS, p->bias}};
    dnnl_memory_set_data_handle(p->src, (void *)src);
    dnnl_memory_set_data_handle(p->dst, dst);
    dnnl_memory_set_data_handle(p->scratchpad, scratch);
    if (!p->packed)
        dnnl_memory_set_data_handle(p->weights, (void *)weights);
    if (p->bias)
        dnnl_memory_set_data_handle(p->bias, p->numbers ? p->numbers : (void *)bias);
    dnnl_status_t res = dnnl_primitive_execute(p->handle, onednn_stream, p->bias ? 5 : 4, args);
    return res == dnnl_success ? dnnl_stream_wait(onednn_stream) : res;
}

void primitive_release(struct primitive *p, int threads)
{
    worker_call(threads, primitive_destroy, p);
}

memory_desc primitive_weights(const struct primitive *p)
{
    return weights_of(p->handle);
}

/* ---- from a node to a primitive ---- */

static void drop_desc(void *arg)
{
    struct making *m = arg;
    if (m->pd)
        dnnl_primitive_desc_destroy(m->pd);
    m->pd = NULL;
}

struct sac_kernel_offer making_offer(struct making *m, int threads, struct sac_kernel_offer offer)
{
    worker_call(threads, m->describe, m);
    if (m->status != dnnl_success || strncmp(implementation_of(m->pd), "ref", 3) == 0)
        offer =
            sac_kernel_refuse("oneDNN has only %s", m->pd ? implementation_of(m->pd) : "nothing");
    worker_call(threads, drop_desc, m);
    return offer;
}

static void make_on_worker(void *arg)
{
    struct making          *m = arg;
    struct sac_kernel_plan *plan = m->plan;
    m->describe(m);
    memory_desc from = m->weights(m);
    if (m->status == dnnl_success && m->shared &&
        strcmp(implementation_of(m->pd), plan->implementation) != 0)
        m->status = dnnl_unimplemented;
    if (m->status == dnnl_success)
        m->status = from ? primitive_create(m->primitive, m->pd, from,
                                            m->shared ? NULL : plan->call->in[1].data, m->has_bias)
                         : dnnl_out_of_memory;
    if (m->status == dnnl_success) {
        m->scratch_bytes = scratchpad_bytes(m->pd);
        snprintf(plan->implementation, sizeof plan->implementation, "%s", implementation_of(m->pd));
    }
    desc_destroy(&from);
    drop_desc(m);
}

dnnl_status_t making_primitive(struct making *m, int threads, struct primitive *p)
{
    m->primitive = p;
    worker_call(threads, make_on_worker, m);
    return m->status;
}

/* ---- the export ---- */

static const struct sac_kernel *const kernels[SAC_OP_COUNT] = {
    [SAC_OP_Conv] = &onednn_Conv,
    [SAC_OP_FusedConv] = &onednn_FusedConv,
    [SAC_OP_ConvTranspose] = &onednn_ConvTranspose,
};

__attribute__((visibility("default"))) const struct sac_kernel_provider *
sac_kernel_provider_v1(void);

const struct sac_kernel_provider *sac_kernel_provider_v1(void)
{
    static char                       name[32];
    static struct sac_kernel_provider provider = {.abi = SAC_KERNEL_ABI,
                                                  .struct_size = sizeof(struct sac_kernel_provider),
                                                  .op_count = SAC_OP_COUNT,
                                                  .name = name,
                                                  .open = provider_open,
                                                  .kernels = kernels};
    const dnnl_version_t             *v = dnnl_version();
    snprintf(name, sizeof name, "onednn %d.%d.%d", v->major, v->minor, v->patch);
    return &provider;
}
