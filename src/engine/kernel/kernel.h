/* SPDX-License-Identifier: Apache-2.0 */
/* Fast kernels: the contract between the planner and what a device, or an accelerator plug-in,
 * offers for the operators. cpu/, onednn/ and cuda/ are providers; plan/ asks them.
 *
 * A node's way: the planner asks each provider of the device in turn (plug-in first, then the
 * device's own, then the reference row) for each node whose shapes are known. supports answers a
 * question with an offer: the layouts that the kernel wants, or why it does not take the node. When
 * all operands have their places, prepare makes a state, which run uses and release frees. A fused
 * group is a node like any other (domain "saccade").
 *
 * Read first: question, offer and plan below; layout.h has how a value can lie in memory.
 */
#ifndef SAC_ENGINE_KERNEL_KERNEL_H
#define SAC_ENGINE_KERNEL_KERNEL_H

#include <string.h>

#include <saccade/model.h>

#include "device/device.h"
#include "engine/ops/op.h"

enum { SAC_KERNEL_ABI = 8 };

/* Constants on a device whose memory is not the host's, one copy for all plans of a model, in the
 * form that the kernel reads. fill writes `bytes` of that form to host memory; it is called when no
 * plan has done so before. The key is data and form. Valid as long as the model. */
struct sac_weights;
struct sac_weights_ops {
    sac_result (*get)(struct sac_weights *w, const void *data, const char *form, size_t bytes,
                      void (*fill)(void *arg, void *host), void *arg, void **device);
};
struct sac_weights {
    const struct sac_weights_ops *ops;
};

enum { SAC_KERNEL_CHOICE_MAX = 512 };

/* What the planner asks about a node. Dims in call->in and out are the logical ones (ONNX order)
 * whatever the layout. */
struct sac_kernel_question {
    const struct sac_op_call *call; /* shapes; data of constants, in host memory, as in the file */
    enum sac_precision        precision;                    /* never SAC_PRECISION_DEFAULT */
    struct sac_weights       *weights;                      /* NULL: run reads constants in place */
    enum sac_layout           in_layout[SAC_OP_INPUTS_MAX]; /* how the inputs lie now */
};

/* A kernel's answer: on which terms it takes the node, or why it does not. */
struct sac_kernel_offer {
    bool            taken;
    char            why[160];                     /* not taken: the reason, for inspect and debug */
    enum sac_layout in_layout[SAC_OP_INPUTS_MAX]; /* as it wants them */
    enum sac_layout out_layout[SAC_OP_OUTPUTS_MAX];
    /* Output 0 may have any layout; it is final only in prepare. */
    bool writes_any;
    /* Concat by placement: a CHANNELS_LAST operand may be a slice of the channels (or of the
     * outermost spatial axis) of a wider value, and run takes such inputs and outputs. */
    bool strided;
    int  in_place; /* input whose memory out[0] may take over when nobody else needs it (same bytes;
                      run then sees equal pointers); -1: none */
};
/* Takes the node: inputs as they lie, outputs plain; in place on the first input that fits where
 * the row is elementwise. Kernels change what they want otherwise. */
struct sac_kernel_offer sac_kernel_take(const struct sac_kernel_question *q);
/* Does not. */
struct sac_kernel_offer sac_kernel_refuse(const char *fmt, ...) SAC_PRINTF(1, 2);

/* What a kernel prepares for: the node as asked about, with its operands in their places. */
struct sac_kernel_plan {
    const struct sac_op_call *call;
    enum sac_precision        precision;
    struct sac_weights       *weights;
    /* What prepare wrote to chosen for the same node, shapes, device and libraries. prepare takes
     * that variant and measures nothing. It comes from a plan file, so invalid text must do no
     * harm. NULL: none. Then, with measure, prepare may try its variants on the device; the caller
     * holds no lock that kernels need and nothing else of this model runs. Without measure, it
     * takes the variant that is probably best. */
    const char *choice;
    /* It was written for other shapes of the node: prepare takes it only where it fits these, and
     * has not seen yet that its numbers are right here. Else it does as without a choice. */
    bool            lent;
    bool            measure;
    enum sac_layout in_layout[SAC_OP_INPUTS_MAX], out_layout[SAC_OP_OUTPUTS_MAX];
    /* Of slices of wider values: elements from one pixel and from one sample to the next; 0:
     * dense. */
    int64_t in_pixel[SAC_OP_INPUTS_MAX], in_sample[SAC_OP_INPUTS_MAX];
    int64_t out_pixel[SAC_OP_OUTPUTS_MAX], out_sample[SAC_OP_OUTPUTS_MAX];
    /* Alignment of the addresses in bytes (parts may begin anywhere); 0: not placed yet. */
    int in_align[SAC_OP_INPUTS_MAX], out_align[SAC_OP_OUTPUTS_MAX];

    /* ---- out of prepare ---- */
    /* One printable line that names the variant it took; empty: it has only one. */
    char chosen[SAC_KERNEL_CHOICE_MAX];
    /* The state has its own copy of this constant (through weights), and run's pointer is NULL. The
     * planner copies the others to the device, in in_layout. */
    bool   in_taken[SAC_OP_INPUTS_MAX];
    size_t scratch_bytes; /* during run only */
    void  *state;
    char   implementation[64]; /* for inspect: "jit:avx512_core", "avx512" */
};
/* A node before its operands have places: dense, as they lie. */
static inline struct sac_kernel_plan sac_kernel_unplaced(const struct sac_kernel_question *q)
{
    struct sac_kernel_plan plan = {
        .call = q->call, .precision = q->precision, .weights = q->weights};
    memcpy(plan.in_layout, q->in_layout, sizeof plan.in_layout);
    return plan;
}

struct sac_kernel {
    enum sac_op_id id;
    struct sac_kernel_offer (*supports)(struct sac_device                *dev,
                                        const struct sac_kernel_question *q);
    sac_result (*prepare)(struct sac_device *dev, struct sac_kernel_plan *plan);
    sac_result (*run)(struct sac_device *dev, void *state, void *const *in, void *const *out,
                      void *scratch, struct sac_device_stream *stream);
    void (*release)(void *state);
};

struct sac_kernel_provider {
    uint32_t    abi;         /* SAC_KERNEL_ABI */
    uint32_t    struct_size; /* sizeof (struct sac_kernel_provider) */
    uint32_t    op_count;    /* SAC_OP_COUNT it was built with: ids must agree */
    const char *name; /* "onednn 2.6.3": with the library's version, as plan files are keyed by
                         it; complete once open was called */
    /* open is called before any kernel of this device (for the CPU: once for all CPU devices) and
     * sets the error when something is missing. close is called when the device closes, with all
     * work done and all states released. NULL: nothing to do. */
    sac_result (*open)(struct sac_device *dev);
    void (*close)(struct sac_device *dev);
    const struct sac_kernel *const *kernels; /* [SAC_OP_COUNT], NULL where it has none */
    /* What open needs and can have before there is a device, such as large libraries: called beside
     * the device's opening, or never. Any thread. NULL: nothing. */
    void (*load)(void);
    /* Whoever prepares a plan's kernels tells of each of them before the first is prepared, on the
     * same thread, and ends with forget, also after a fault. So what takes long can be made for all
     * of them at once, by several threads. The plan is as prepare will get it; it is lent for the
     * call. A kernel that was never foreseen can be prepared too. NULL: nothing to gain. */
    void (*foresee)(struct sac_device *dev, const struct sac_kernel *kernel,
                    const struct sac_kernel_plan *plan);
    void (*forget)(struct sac_device *dev);
};
/* A plug-in exports `const struct sac_kernel_provider *sac_kernel_provider_v1(void)`. */

/* On a device whose memory is not the host's (sac_device_ops.providers) run queues its work on the
 * stream and returns. It allocates nothing, waits for nothing and copies nothing from or to the
 * host, so that a plan's steps can be captured into one graph that is launched repeatedly. float32
 * operands have the layouts that supports asked for: with FP16 a kernel should ask for the *_HALF
 * ones. */

/* The plug-in is searched for in the folders of SACCADE_PLUGIN_PATH (separated by ':') or, when
 * that is not set, near the library: in its folder, in saccade/ under it, and where the build puts
 * it. */

/* The *count providers of a device in the order in which they are asked, opened on first use. The
 * log then names them (at debug; at info when one is missing). The reference rows come after all of
 * them and are not listed. Any thread. */
const struct sac_kernel_provider *const *sac_kernel_providers(struct sac_device *dev, int *count);
/* Of a device that is being opened, or is open: what its providers will need. Any thread. */
void sac_kernel_load(const struct sac_device *dev);
/* The kernels of a device, in words: "avx512 kernels and onednn 2.6.3", or why there is no oneDNN.
 * Any thread. */
void sac_engine_describe(struct sac_device *dev, char *out, size_t size);
/* After that call: why a provider of the device is missing, or NULL when none is. */
const char *sac_kernel_plugin_missing(struct sac_device *dev);
/* The precision that a network runs in on a device when this one was asked for. Never
 * SAC_PRECISION_DEFAULT; of INT8 and FP8 that of the layers that are not in 8 bits. */
enum sac_precision sac_engine_precision(const struct sac_device *dev, enum sac_precision asked);

#endif
