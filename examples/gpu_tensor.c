/* SPDX-License-Identifier: Apache-2.0 */
/* Frames into a network of one output without leaving the device: gpu_tensor in.mp4 net.onnx cuda (or cpu). */
#include <stdio.h>

#include <saccade/saccade.h>

/* A frame's first plane as a tensor, then all of it, resized, through the network. */
static sac_result look(sac_context *ctx, sac_model *net, sac_frame *frame)
{
    sac_device               *dev = sac_model_device(net);
    struct sac_preprocess     pre = sac_preprocess_default();
    struct sac_preprocess_job job = {.frame = frame};
    struct sac_tensor_spec    want = {.device = dev, .rank = 2, .shape = {frame->height, -1}};
    struct sac_tensor_desc    desc = {.dtype = SAC_F32, .rank = 4, .shape = {1, 3, 416, 416}};
    sac_tensor               *luma = NULL, *in = NULL, *out = NULL;
    sac_result                res = sac_frame_plane_tensor(frame, 0, &luma); /* the decoder's own memory */
    pre.width = pre.height = 416;
    if (res == SAC_OK)
        res = sac_tensor_check(ctx, "the first plane", luma, &want);
    if (res == SAC_OK)
        res = sac_tensor_create(dev, &desc, "network input", &in);
    if (res == SAC_OK)
        res = sac_preprocess_run(dev, &pre, &job, 1, in); /* a GPU does it later, nobody waits */
    if (res == SAC_OK)
        res = sac_model_run(net, &in, &out); /* sac_tensor_download would bring the output to the host */
    sac_tensor_unref(&out);
    sac_tensor_unref(&in);
    sac_tensor_unref(&luma);
    return res;
}

int main(int argc, char **argv)
{
    sac_context      *ctx = NULL;
    sac_device       *dev = NULL;
    sac_source       *src = NULL;
    sac_model        *net = NULL;
    struct sac_ledger ledger = {.crossed_bytes = 0};
    char              why[512] = "";
    long              frames = 0;
    if (argc != 4 || sac_context_create(NULL, &ctx) != SAC_OK)
        return fprintf(stderr, "usage: gpu_tensor VIDEO NET.onnx DEVICE\n"), 2;
    sac_result res = sac_device_open(ctx, argv[3], NULL, &dev);
    if (res == SAC_OK)
        res = sac_model_load(dev, argv[2], NULL, &net);
    if (res == SAC_OK && (sac_model_input_count(net) != 1 || sac_model_output_count(net) != 1))
        res = SAC_ERR_UNSUPPORTED;
    if (res == SAC_OK)
        res = sac_source_open(dev, argv[1], NULL, &src);
    for (sac_frame *frame = NULL; res == SAC_OK && (res = sac_source_read_wait(src, &frame)) == SAC_OK; frames++) {
        res = look(ctx, net, frame);
        sac_frame_unref(&frame);
    }
    if (res != SAC_EOS && sac_context_last_error(ctx, why, sizeof why))
        fprintf(stderr, "gpu_tensor: %s\n", why);
    if (dev)
        sac_device_ledger(dev, &ledger);
    printf("%ld frames, %llu bytes between host and device\n", frames, (unsigned long long)ledger.crossed_bytes);
    sac_source_close(&src);
    sac_model_unref(&net);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return res == SAC_EOS ? 0 : 1;
}
