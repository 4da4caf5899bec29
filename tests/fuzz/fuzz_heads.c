/* SPDX-License-Identifier: Apache-2.0 */
/* Heads on outputs of any shape with any numbers in them, as a lying model gives.
 *
 * Byte 0 chooses the head, 1 the input's size, 2 the number of tensors; then a rank and dims for
 * each; what is left is their numbers, over and over. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/heads.h"
#include "vision/detect.h"
#include "vision/fit.h"
#include "vision/matte.h"

enum { TENSORS_MAX = 8, ELEMENTS_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at, *end;
};

static int take(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* Small dims, and the numbers of cells that heads look for. */
static int64_t take_dim(struct input *in, int size)
{
    int b = take(in);
    if (b < 200)
        return b;
    int64_t cells = sac_grid_of(size, size, b % 2 ? 3 : 4).cells;
    int64_t finest = (int64_t)((size + 7) / 8) * ((size + 7) / 8);
    return b < 220 ? cells : b < 230 ? 3 * cells : finest >> (b % 3 * 2);
}

static float *numbers(struct input *in, int64_t n)
{
    float *out = sac_calloc((size_t)n, sizeof *out);
    size_t left = (size_t)(in->end - in->at) / sizeof *out;
    if (!out)
        abort();
    for (int64_t i = 0; left && i < n; i++)
        memcpy(&out[i], in->at + (size_t)i % left * sizeof *out, sizeof *out);
    return out;
}

/* As a detector does once a run has shown the outputs. */
static void decode(const struct sac_head *head, const struct sac_head_input *in,
                   const struct sac_head_facts *facts)
{
    static sac_context    *ctx;
    static sac_device     *cpu;
    struct sac_detect_spec s = {.tensor_count = in->count,
                                .input_width = in->input_width,
                                .input_height = in->input_height,
                                .score_min = in->score_min,
                                .nms_iou = 0.5f,
                                .nms = head->needs_nms,
                                .all_classes = true};
    enum sac_dtype         dtypes[TENSORS_MAX];
    const void            *tensors[TENSORS_MAX];
    struct sac_fit_map     map = {1, 1, 0, 0};
    if (!cpu && (sac_context_create(NULL, &ctx) != SAC_OK ||
                 sac_device_open(ctx, "cpu", NULL, &cpu) != SAC_OK))
        abort();
    if (!head->layout(in, facts, &s))
        return;
    s.keep = SAC_CLAMP(s.cells, 1, 300);
    for (int i = 0; i < in->count; i++) {
        dtypes[i] = SAC_F32;
        tensors[i] = in->tensors[i].data;
    }
    sac_detect_set_dtypes(&s, dtypes);
    void *boxes = sac_alloc(sac_detect_out_bytes(&s, 1));
    if (!boxes)
        abort();
    sac_detect_run(cpu, NULL, &s, tensors, &map, 1, boxes);
    sac_free(boxes);
}

/* As a segmenter does: a map's numbers must lie in its tensor, whatever the head says of them. */
static void make_matte(const struct sac_head *head, const struct sac_head_input *in,
                       const struct sac_head_facts *facts, int bits)
{
    struct sac_head_view view = {.width = in->input_width,
                                 .height = in->input_height,
                                 .channels_last = bits & 1,
                                 .facts = *facts,
                                 .output_count = in->count};
    view.facts.task = SAC_TASK_UNKNOWN;
    view.feed = (struct sac_feed){.count = 1 + (bits >> 1 & 1), .kind = {0, SAC_FEED_STATE}};
    for (int i = 0; i < in->count; i++) {
        struct sac_tensor_desc *d = &view.output[i].desc;
        view.output[i].name = in->tensors[i].name;
        view.facts.ending[i].kind = (enum sac_ending_kind)((bits + i) % 6);
        *d = (struct sac_tensor_desc){.dtype = SAC_F32, .rank = in->tensors[i].rank + 1};
        d->shape[0] = 1;
        for (int k = 1; k < d->rank; k++)
            d->shape[k] = in->tensors[i].shape[k - 1];
    }
    const bool            known = head->recognise(&view);
    struct sac_matte_spec s = {.input_width = view.width, .input_height = view.height};
    if (!head->matte(&view, &s)) {
        if (known)
            abort();
        return;
    }
    const struct sac_tensor_desc *d = &view.output[s.value.tensor].desc;
    const int64_t                 numbers = s.form == SAC_MATTE_LABEL ? 1 : s.classes,
                  cells = (int64_t)s.width * s.height;
    if (s.value.first + (cells - 1) * s.value.cell + (numbers - 1) * s.value.number >=
        sac_tensor_desc_elements(d))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct sac_head *const heads[] = {
        &sac_head_yolox,    &sac_head_yolov5, &sac_head_yolov8,   &sac_head_nanodet,
        &sac_head_end2end,  &sac_head_ssd,    &sac_head_boxes,    &sac_head_detr,
        &sac_head_semantic, &sac_head_matte,  &sac_head_recurrent};
    struct input           in = {data, data + size};
    const struct sac_head *head = heads[(size_t)take(&in) % SAC_COUNT(heads)];
    int                    side = 8 + take(&in) % 8 * 8, count = 1 + take(&in) % TENSORS_MAX;
    struct sac_head_tensor t[TENSORS_MAX] = {0};
    int64_t                elements[TENSORS_MAX];
    bool                   fits = true;
    for (int i = 0; i < count; i++) {
        static const char *const names[] = {"scores", "labels", "cls_pred", "boxes",
                                            "logits", "matte",  "aux",      "out"};
        t[i].name = names[take(&in) % 8];
        t[i].rank = take(&in) % 4;
        elements[i] = 1;
        for (int k = 0; k < t[i].rank; k++)
            elements[i] *= t[i].shape[k] = take_dim(&in, side);
        fits = fits && elements[i] <= ELEMENTS_MAX;
    }
    for (int i = 0; fits && i < count; i++)
        t[i].data = numbers(&in, elements[i]);
    struct sac_head_input input = {t, count, side, side, 0.1f};
    const int             bits = take(&in);
    struct sac_head_facts facts = {.names = take(&in) % 100,
                                   .task = (enum sac_head_task)(bits % 6),
                                   .keypoints = bits % 5,
                                   .flat = bits & 16,
                                   .sized = bits & 32,
                                   .paddle = bits & 64,
                                   .single = bits & 128,
                                   .whole = (unsigned)bits};
    if (fits && head->matte)
        make_matte(head, &input, &facts, bits);
    else if (fits)
        decode(head, &input, &facts);
    for (int i = 0; i < count; i++)
        sac_free((void *)(uintptr_t)t[i].data);
    return 0;
}
