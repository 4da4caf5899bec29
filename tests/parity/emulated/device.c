/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU with some of the CUDA device's entries, and what these take from the rest of that
 * device. */
#include "tests/gpu.h"
#include "vision/cuda/cuda.h"

static struct sac_device_ops     ops;
static struct sac_vision_ops     vision;
static struct cuda_state         state;
static struct cuda_command_block block;
static void                     *scratch;

sac_device *gpu_open(const struct sac_device_params *params)
{
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", params, &dev));
    ops = *dev->ops;
    ops.vision = &vision;
    vision = *dev->ops->vision;
    vision.appearance = cuda_appearance;
    vision.camera = cuda_camera;
    vision.detect = cuda_detect;
    vision.difference = cuda_difference;
    vision.composite = cuda_composite;
    vision.instances = cuda_instances;
    vision.facets = cuda_facets;
    vision.facet_shares = cuda_facet_shares;
    vision.facet_maps = cuda_facet_maps;
    vision.scale_maps = cuda_scale_maps;
    vision.matte = cuda_matte;
    vision.picture = cuda_picture;
    dev->ops = &ops;
    dev->state = &state;
    return dev;
}

sac_result cuda_enter(struct sac_device *dev)
{
    (void)dev;
    return SAC_OK;
}

void cuda_leave(void)
{
}

void cuda_gather_part(struct sac_device_stream *stream)
{
    (void)stream;
}

sac_result cuda_check(struct sac_device *dev, cudaError_t res, const char *doing)
{
    (void)dev, (void)doing;
    return res == cudaSuccess ? SAC_OK : SAC_ERR_DEVICE;
}

sac_result cuda_commands_reserve(struct sac_device *dev)
{
    (void)dev;
    return SAC_OK;
}

sac_result cuda_commands_take(struct sac_device *dev, size_t bytes, struct cuda_command_block **out)
{
    (void)dev;
    block.host = block.device = malloc(bytes ? bytes : 1);
    assert_non_null(block.host);
    *out = &block;
    return SAC_OK;
}

sac_result cuda_commands_send(struct sac_device *dev, struct sac_device_stream *stream,
                              struct cuda_command_block *b, size_t bytes, const char *what)
{
    (void)dev, (void)stream, (void)b, (void)bytes, (void)what;
    return SAC_OK;
}

void cuda_commands_done(struct sac_device *dev, struct sac_device_stream *stream,
                        struct cuda_command_block *b)
{
    (void)dev, (void)stream;
    free(b->host);
}

sac_result cuda_scratch_take(struct sac_device *dev, struct sac_device_stream *stream, size_t bytes,
                             void **out)
{
    (void)dev, (void)stream;
    *out = scratch = malloc(bytes);
    assert_non_null(scratch);
    memset(scratch, 0xa7, bytes); /* what an operation left there before is nothing */
    return SAC_OK;
}

/* As vision/cuda/preprocess.c has it; here all planes can be read. */
sac_result cuda_surface_of(struct sac_device *dev, const sac_frame *frame, struct sac_surface *out)
{
    (void)dev;
    *out = sac_surface_of(frame);
    return SAC_OK;
}

void cuda_scratch_return(struct sac_device *dev, struct sac_device_stream *stream)
{
    (void)dev, (void)stream;
    free(scratch);
}
