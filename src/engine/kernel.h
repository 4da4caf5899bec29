/* SPDX-License-Identifier: Apache-2.0 */
/* Fast kernels: what a device, or an accelerator plug-in, offers for the operators.
 *
 * The planner asks each provider of the device in turn (plug-in first, then the device's own, then the
 * reference row) for each node whose shapes are known: supports, then prepare. What prepare makes, run
 * uses and release frees. A fused group is a node like any other (domain "saccade").
 */
#ifndef SAC_ENGINE_KERNEL_H
#define SAC_ENGINE_KERNEL_H

#include "device/device.h"
#include "engine/op.h"

enum { SAC_KERNEL_ABI = 1 };

/* What the planner and a kernel settle for one node. Dims in call.in/out are the logical ones (ONNX
 * order) whatever the layout. */
struct sac_kernel_plan {
    struct sac_op_call *call;    /* shapes; data of constants */
    enum sac_layout     in_layout[SAC_OP_INPUTS_MAX];   /* in: as they are; kernels may ask for others in supports */
    enum sac_layout     out_layout[SAC_OP_OUTPUTS_MAX];
    /* Concat by placement: a CHANNELS_LAST operand may be a slice of the channels (or of the outermost
     * spatial axis) of a wider value. strided (out of supports): run takes such inputs and outputs.
     * Then, from prepare on, these are the elements from one pixel and from one sample to the next;
     * 0: dense. */
    bool                strided;
    int64_t             in_pixel[SAC_OP_INPUTS_MAX], in_sample[SAC_OP_INPUTS_MAX];
    int64_t             out_pixel[SAC_OP_OUTPUTS_MAX], out_sample[SAC_OP_OUTPUTS_MAX];
    size_t              scratch_bytes;       /* out: from the arena, during run only */
    int                 in_place;            /* out: input whose memory out[0] may take over when nobody
                                                else needs it (same bytes; run then sees equal
                                                pointers); -1: none. Default: of elementwise rows the
                                                first input that fits */
    void               *state;               /* out */
    char                implementation[64];  /* out: for inspect: "jit:avx512_core", "avx512" */
};

struct sac_kernel {
    enum sac_op_id id;
    /* Can it run with these shapes and dtypes? Fills wanted layouts. why: for inspect and debug. */
    bool       (*supports)(struct sac_device *dev, struct sac_kernel_plan *plan, char *why,
                           size_t why_size);
    sac_result (*prepare)(struct sac_device *dev, struct sac_kernel_plan *plan);
    sac_result (*run)(struct sac_device *dev, void *state, void *const *in, void *const *out,
                      void *scratch, struct sac_stream *stream);
    void       (*release)(void *state);
};

struct sac_kernel_provider {
    uint32_t    abi;         /* SAC_KERNEL_ABI */
    uint32_t    struct_size; /* sizeof (struct sac_kernel_provider) */
    uint32_t    op_count;    /* SAC_OP_COUNT it was built with: ids must agree */
    const char *name;        /* "onednn 2.6.3" */
    sac_result (*open)(struct sac_device *dev); /* NULL: nothing to do; once, before any kernel */
    const struct sac_kernel *const *kernels; /* [SAC_OP_COUNT], NULL where it has none */
};
/* A plug-in exports `const struct sac_kernel_provider *sac_kernel_provider_v1(void)`. */

/* The plug-in is looked for in the folders of SACCADE_PLUGIN_PATH (separated by ':'), or else beside
 * the library: in its own folder, in saccade/ under it, and where the build puts it. */

/* The providers of a device in the order in which they are asked, opened on first use, when the log
 * says which they are (at debug; where oneDNN is missing, at info); *count of them. The reference rows come after all of them and are not listed. Any thread. */
const struct sac_kernel_provider *const *sac_kernel_providers(struct sac_device *dev, int *count);
/* What computes on a device, in words: "avx512 kernels and onednn 2.6.3", or why there is no oneDNN. Any
 * thread. */
void sac_engine_describe(struct sac_device *dev, char *out, size_t size);
/* After that: why there is no plug-in, or NULL when there is one. */
const char *sac_kernel_plugin_missing(void);

#endif
