/* SPDX-License-Identifier: Apache-2.0 */
/* Frames into a network without leaving the device: gpu_tensor in.mp4 net.onnx cuda (or cpu). The
 * network has one input, an image, and up to 8 outputs. */
#include <stdio.h>

#include <saccade/saccade.h>

enum { OUTPUTS_MAX = 8 };

static int takes_an_image(const sac_model *net)
{
    return sac_model_input_count(net) == 1 && sac_model_input(net, 0)->desc.rank == 4 &&
           sac_model_output_count(net) <= OUTPUTS_MAX;
}

/* Preprocessing: the network's own size, else 416 x 416. */
static struct sac_preprocess preprocess_of(const sac_model *net)
{
    const int64_t        *shape = sac_model_input(net, 0)->desc.shape; /* [N,C,H,W] */
    struct sac_preprocess pre = sac_preprocess_default();
    pre.height = shape[2] > 0 ? (int)shape[2] : 416;
    pre.width = shape[3] > 0 ? (int)shape[3] : 416;
    return pre;
}

/* A frame's first plane as a tensor, then all of it, resized, through the network. */
static sac_result look(sac_context *ctx, sac_model *net, sac_frame *frame)
{
    sac_device               *dev = sac_model_device(net);
    struct sac_preprocess     pre = preprocess_of(net);
    struct sac_preprocess_job job = {.frame = frame};
    struct sac_tensor_spec    want = {.device = dev, .rank = 2, .shape = {-1, -1}};
    struct sac_tensor_desc    desc = {
           .dtype = SAC_F32, .rank = 4, .shape = {1, 3, pre.height, pre.width}};
    sac_tensor *plane = NULL, *in = NULL, *out[OUTPUTS_MAX] = {NULL};
    sac_result  res = sac_frame_plane_tensor(frame, 0, &plane); /* as decoded */
    if (res == SAC_OK)
        res = sac_tensor_check(ctx, "the first plane", plane, &want);
    if (res == SAC_OK)
        res = sac_tensor_create(dev, &desc, "network input", &in);
    if (res == SAC_OK)
        res = sac_preprocess_run(dev, &pre, &job, 1, in); /* a GPU only queues it; the call does not
                                                             wait */
    if (res == SAC_OK) /* sac_tensor_download would copy an output to the host */
        res = sac_model_run(net, &in, out);
    for (int i = 0; i < OUTPUTS_MAX; i++)
        sac_tensor_unref(&out[i]);
    sac_tensor_unref(&in);
    sac_tensor_unref(&plane);
    return res;
}

static sac_result look_at_all(sac_context *ctx, sac_model *net, sac_source *src, long *frames)
{
    sac_result res;
    sac_frame *frame = NULL;
    while ((res = sac_source_read_wait(src, &frame)) == SAC_OK) {
        res = look(ctx, net, frame);
        sac_frame_unref(&frame);
        if (res != SAC_OK)
            break;
        ++*frames;
    }
    return res == SAC_EOS ? SAC_OK : res;
}

int main(int argc, char **argv)
{
    sac_context      *ctx = NULL;
    sac_device       *dev = NULL;
    sac_source       *src = NULL;
    sac_model        *net = NULL;
    struct sac_ledger ledger = {.crossed_bytes = 0};
    char              why[512];
    long              frames = 0;
    if (argc != 4 || sac_context_create(NULL, &ctx) != SAC_OK)
        return fprintf(stderr, "usage: gpu_tensor VIDEO NET.onnx DEVICE\n"), 2;
    sac_result res = sac_device_open(ctx, argv[3], NULL, &dev);
    if (res == SAC_OK)
        res = sac_model_load(dev, argv[2], NULL, &net);
    if (res == SAC_OK && !takes_an_image(net)) {
        fprintf(stderr,
                "gpu_tensor: %s needs other inputs than one image, or has too many outputs\n",
                argv[2]);
        res = SAC_ERR_UNSUPPORTED;
    } else if (res == SAC_OK && (res = sac_source_open(dev, argv[1], NULL, &src)) == SAC_OK) {
        res = look_at_all(ctx, net, src, &frames);
    }
    if (res != SAC_OK && sac_context_last_error(ctx, why, sizeof why))
        fprintf(stderr, "gpu_tensor: %s\n", why);
    if (dev)
        sac_device_ledger(dev, &ledger);
    printf("%ld frames, %llu bytes between host and device\n", frames,
           (unsigned long long)ledger.crossed_bytes);
    sac_source_close(&src);
    sac_model_unref(&net);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return res == SAC_OK ? 0 : 1;
}
