/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the reader share: faults and operator sets. */
#include "engine/onnx/reader.h"

sac_result sac_onnx_damaged(struct sac_onnx_reader *r, const char *what, const struct sac_wire *w)
{
    return SAC_FAIL(r->ctx, SAC_ERR_FORMAT, "%s is damaged at byte %zu of %zu", what,
                    (size_t)(w->at - (const uint8_t *)r->source->bytes), r->source->size);
}

sac_result sac_onnx_no_memory(struct sac_onnx_reader *r)
{
    return SAC_FAIL(r->ctx, SAC_ERR_MEMORY, "no memory to read the model");
}

/* "ai.onnx" is the long name of the domain "". */
struct sac_wire sac_onnx_plain_domain(struct sac_wire domain)
{
    return sac_wire_is(domain, "ai.onnx") ? (struct sac_wire){0} : domain;
}

int sac_onnx_opset_of(const struct sac_onnx_opsets *opsets, struct sac_wire domain)
{
    for (int i = 0; i < opsets->count; i++)
        if (sac_wire_equals(opsets->items[i].domain, domain))
            return (int)SAC_CLAMP(opsets->items[i].version, 1, 1 << 20);
    return 1;
}

sac_result sac_onnx_read_opsets(struct sac_onnx_reader *r, struct sac_wire w, uint32_t number,
                                struct sac_onnx_opsets *out)
{
    struct sac_wire inside;
    while (sac_wire_next_bytes(&w, number, &inside) > 0) {
        struct sac_field f;
        if (out->count == SAC_ONNX_DOMAINS_MAX)
            return SAC_FAIL(r->ctx, SAC_ERR_UNSUPPORTED, "more than %d operator sets",
                            SAC_ONNX_DOMAINS_MAX);
        struct sac_onnx_opset *o = &out->items[out->count++];
        *o = (struct sac_onnx_opset){.domain =
                                         sac_onnx_plain_domain(sac_wire_last_bytes(inside, 1))};
        while (sac_wire_next(&inside, &f) > 0)
            if (f.number == 2)
                o->version = (int64_t)f.value;
    }
    return SAC_OK;
}
