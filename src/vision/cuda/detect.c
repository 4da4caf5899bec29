/* SPDX-License-Identifier: Apache-2.0 */
/* Output tensors to boxes: a launch for all cells of a batch, one for the suppression, one to
 * pack. */
#include "vision/cuda/cuda.h"

static void *part(uintptr_t *at, size_t count, size_t size)
{
    uintptr_t p = *at;
    *at += (count * size + 255) & ~(size_t)255;
    return (void *)p;
}

/* Lay the scratch of n images out from `at` on; returns its end. */
static uintptr_t lay_out(struct cuda_detect_params *p, uintptr_t at, int n)
{
    const size_t images = (size_t)n, cells = (size_t)p->spec.cells;
    p->state = part(&at, images, sizeof *p->state);
    p->candidates = part(&at, images * cells, sizeof *p->candidates);
    p->sorted = part(&at, images * cells, sizeof *p->sorted);
    p->cell = part(&at, images * cells, sizeof *p->cell);
    p->keys = part(&at, images * p->keys_room, sizeof *p->keys);
    p->kept = part(&at, images * (size_t)p->spec.keep, sizeof *p->kept);
    if (p->spec.origins)
        p->origins = part(&at, images * (size_t)p->spec.keep, sizeof *p->origins);
    return at;
}

static void step_images(struct cuda_detect_params *p, int n)
{
    const size_t images = (size_t)n, cells = (size_t)p->spec.cells;
    p->first += n;
    p->state += images;
    p->candidates += images * cells;
    p->sorted += images * cells;
    p->cell += images * cells;
    p->keys += images * p->keys_room;
    p->kept += images * (size_t)p->spec.keep;
    if (p->origins)
        p->origins += images * (size_t)p->spec.keep;
}

static cudaError_t launch(struct cuda_detect_params p, const struct sac_fit_map *maps, int n,
                          void *out, cudaStream_t stream)
{
    const struct cuda_detect_params first = p;
    const struct cuda_detect_out    lists = {
           .count = out,
           .boxes = (void *)((char *)out + sac_detect_boxes_at(n)),
           .box_words = (int)(sac_detect_box_bytes(&p.spec) / sizeof *lists.boxes),
           .origins =
            p.origins ? (void *)((char *)out + sac_detect_origins_at(p.spec.keep, n)) : NULL};
    cudaError_t res = cudaSuccess;
    for (int at = 0, count; at < n && res == cudaSuccess; at += count) {
        count = SAC_MIN(n - at, (int)CUDA_DETECT_IMAGES);
        res = cuda_launch_detect(&p, maps + at, count, stream);
        step_images(&p, count);
    }
    if (res == cudaSuccess)
        res = cuda_launch_detect_pack(first.state, first.kept, first.origins, p.spec.keep, n,
                                      &lists, stream);
    return res;
}

sac_result cuda_detect(struct sac_device *dev, struct sac_device_stream *stream,
                       const struct sac_detect_spec *spec, const void *const *tensors,
                       const struct sac_fit_map *maps, int n, void *out)
{
    struct cuda_detect_params p = {.spec = *spec, .keys_room = 1};
    void                     *scratch = NULL;
    for (int i = 0; i < spec->tensor_count; i++)
        p.tensors[i] = tensors[i];
    while (p.keys_room < (size_t)spec->cells)
        p.keys_room *= 2;
    sac_result res = cuda_enter(dev);
    if (res != SAC_OK)
        return res;
    res = cuda_scratch_take(dev, stream, lay_out(&p, 0, n), &scratch);
    if (res == SAC_OK) {
        lay_out(&p, (uintptr_t)scratch, n);
        res = cuda_check(dev, launch(p, maps, n, out, cuda_stream_of(dev, stream)), "detect");
        cuda_scratch_return(dev, stream);
    }
    cuda_leave();
    return res;
}
