/* SPDX-License-Identifier: Apache-2.0 */
/* Fast kernels: what a device, or an accelerator plug-in, offers for the operators.
 *
 * The planner asks each provider of the device in turn (plug-in first, then the device's own, then the
 * reference row) for each node whose shapes are known: supports, then prepare. What prepare makes, run
 * uses and release frees. A fused group is a node like any other (domain "saccade").
 */
#ifndef SAC_ENGINE_KERNEL_H
#define SAC_ENGINE_KERNEL_H

#include <saccade/model.h>

#include "device/device.h"
#include "engine/op.h"

enum { SAC_KERNEL_ABI = 4 };

/* Constants on a device whose memory is not the host's, one copy for all plans of a model: kernels keep
 * weights in the form that they read. fill writes `bytes` of the form into host memory; it is called when
 * no plan has made it yet. Valid as long as the model; entries tell apart by data and form. */
struct sac_weights;
struct sac_weights_ops {
    sac_result (*get)(struct sac_weights *w, const void *data, const char *form, size_t bytes,
                      void (*fill)(void *arg, void *host), void *arg, void **device);
};
struct sac_weights {
    const struct sac_weights_ops *ops;
};

enum { SAC_KERNEL_CHOICE_MAX = 512 };

/* What the planner and a kernel settle for one node. Dims in call.in/out are the logical ones (ONNX
 * order) whatever the layout. */
struct sac_kernel_plan {
    struct sac_op_call *call;    /* shapes; data of constants, in host memory, as the file has them */
    enum sac_precision  precision; /* never SAC_PRECISION_DEFAULT */
    struct sac_weights *weights; /* NULL: run may read constants where they are */
    /* in: what prepare wrote into chosen for the same node, shapes, device and libraries (it comes from a
     * plan file, so text that makes no sense must do no harm): take that variant and measure nothing.
     * NULL: none. Then, with measure, prepare may try its variants on the device; the caller holds no
     * lock that kernels need and nothing else of this model runs. Without: the likely best one. */
    const char         *choice;
    bool                measure;
    /* out of prepare: one printable line that says which variant it took; empty: it has but one. */
    char                chosen[SAC_KERNEL_CHOICE_MAX];
    /* out of prepare: a constant that the state has taken (through weights): run's pointer is NULL. Of the
     * others the planner puts a copy in in_layout on the device. */
    bool                in_taken[SAC_OP_INPUTS_MAX];
    enum sac_layout     in_layout[SAC_OP_INPUTS_MAX];   /* in: as they are; kernels may ask for others in supports */
    enum sac_layout     out_layout[SAC_OP_OUTPUTS_MAX];
    /* out of supports: output 0 may lie in any layout, whatever out_layout[0] says until prepare. */
    bool                writes_any;
    /* Concat by placement: a CHANNELS_LAST operand may be a slice of the channels (or of the outermost
     * spatial axis) of a wider value. strided (out of supports): run takes such inputs and outputs.
     * Then, from prepare on, these are the elements from one pixel and from one sample to the next;
     * 0: dense. */
    bool                strided;
    int64_t             in_pixel[SAC_OP_INPUTS_MAX], in_sample[SAC_OP_INPUTS_MAX];
    int64_t             out_pixel[SAC_OP_OUTPUTS_MAX], out_sample[SAC_OP_OUTPUTS_MAX];
    /* From prepare on: addresses are multiples of so many bytes (parts may begin anywhere). */
    int                 in_align[SAC_OP_INPUTS_MAX], out_align[SAC_OP_OUTPUTS_MAX];
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
    const char *name;        /* "onednn 2.6.3": with the library's version, as plan files are keyed by
                                it; complete once open was called */
    /* Before any kernel of this device (of the CPU: once for all of them), with the sentence of what is
     * missing; and when the device closes, with all work done and all states released. NULL: nothing. */
    sac_result (*open)(struct sac_device *dev);
    void       (*close)(struct sac_device *dev);
    const struct sac_kernel *const *kernels; /* [SAC_OP_COUNT], NULL where it has none */
};
/* A plug-in exports `const struct sac_kernel_provider *sac_kernel_provider_v1(void)`. */

/* On a device whose memory is not the host's (sac_device_ops.providers) run queues its work on the stream
 * and returns; it allocates nothing, waits for nothing and copies nothing from or to the host, so a plan's
 * steps can be captured into one graph that is launched again and again. Operands of float32 come and go
 * in the layouts that supports asked for: with FP16 a kernel should take the *_HALF ones. */

/* The plug-in is looked for in the folders of SACCADE_PLUGIN_PATH (separated by ':'), or else beside
 * the library: in its own folder, in saccade/ under it, and where the build puts it. */

/* The providers of a device in the order in which they are asked, opened on first use, when the log
 * says which they are (at debug; where one is missing, at info); *count of them. The reference rows come
 * after all of them and are not listed. Any thread. */
const struct sac_kernel_provider *const *sac_kernel_providers(struct sac_device *dev, int *count);
/* What computes on a device, in words: "avx512 kernels and onednn 2.6.3", or why there is no oneDNN. Any
 * thread. */
void sac_engine_describe(struct sac_device *dev, char *out, size_t size);
/* After that: why a provider of the device is not there, or NULL when all are. */
const char *sac_kernel_plugin_missing(struct sac_device *dev);
/* What a network runs in on a device when this was asked for. Never SAC_PRECISION_DEFAULT. */
enum sac_precision sac_engine_precision(const struct sac_device *dev, enum sac_precision asked);

#endif
