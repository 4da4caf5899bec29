/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor of another program into a detector, without a copy: tensor DETECTOR.onnx DEVICE. Here
 * the other program is this one; PyTorch, JAX and CuPy give the same with __dlpack__. */
#include <stdio.h>
#include <stdlib.h>

#include <saccade/saccade.h>

enum { WIDTH = 640, HEIGHT = 480 };

/* theirs   uint8 [H,W,3], taken; stream is where it is filled, a CUDA stream, or NULL on the CPU.
 */
static sac_result detect(sac_detector *det, struct DLManagedTensor *theirs, void *stream,
                         struct sac_detections *found)
{
    sac_device *dev = sac_model_device(sac_detector_model(det));
    sac_tensor *t = NULL;
    sac_result  res = sac_tensor_from_dlpack(dev, theirs, &t);
    if (res == SAC_OK)
        res = sac_tensor_written_on(t, stream); /* no thread waits */
    if (res == SAC_OK)
        res = sac_detector_run_tensor(det, t, NULL, found);
    sac_tensor_unref(&t); /* its owner is told, once the work with it is done */
    return res;
}

/* What the other program has. */
static sac_result make(sac_device *dev, struct DLManagedTensor **out)
{
    const struct sac_tensor_desc desc = {SAC_U8, 3, {HEIGHT, WIDTH, 3}};
    unsigned char               *grey = malloc(HEIGHT * WIDTH * 3);
    sac_tensor                  *t = NULL;
    sac_result                   res = sac_tensor_create(dev, &desc, "a picture", &t);
    for (int i = 0; grey && i < HEIGHT * WIDTH * 3; i++)
        grey[i] = (unsigned char)(i % 251);
    if (res == SAC_OK)
        res = sac_tensor_upload(t, grey);
    if (res == SAC_OK)
        res = sac_tensor_to_dlpack(t, out);
    sac_tensor_unref(&t); /* the one that is handed over holds it */
    free(grey);
    return res;
}

int main(int argc, char **argv)
{
    sac_context            *ctx = NULL;
    sac_device             *dev = NULL;
    sac_detector           *det = NULL;
    struct DLManagedTensor *theirs = NULL;
    struct sac_detections   found = {0};
    struct sac_ledger       ledger = {.crossed_bytes = 0};
    char                    why[512];
    if (argc != 3 || sac_context_create(NULL, &ctx) != SAC_OK)
        return fprintf(stderr, "usage: tensor DETECTOR.onnx DEVICE\n"), 2;
    sac_result res = sac_device_open(ctx, argv[2], NULL, &dev);
    if (res == SAC_OK)
        res = sac_detector_create(dev, argv[1], NULL, &det);
    if (res == SAC_OK)
        res = make(dev, &theirs);
    if (res == SAC_OK)
        res = detect(det, theirs, NULL, &found);
    if (res != SAC_OK && sac_context_last_error(ctx, why, sizeof why))
        fprintf(stderr, "tensor: %s\n", why);
    sac_device_ledger(dev, &ledger);
    printf("%zu boxes, %llu frames copied\n", found.count,
           (unsigned long long)ledger.reason[SAC_COPY_FRAME_CONVERT].calls);
    sac_detections_finish(&found);
    sac_detector_destroy(&det);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return res == SAC_OK ? 0 : 1;
}
