/* SPDX-License-Identifier: Apache-2.0 */
/* How much of each frame is people: segment VIDEO [MODEL]. The mattes are frames as well, so all
 * that takes a frame takes them; on a GPU they stay there until they are copied. */
#include <stdio.h>

#include <saccade/saccade.h>

static sac_result share_of(sac_device *cpu, const sac_frame *matte, double *share)
{
    sac_frame *host = NULL;
    double     sum = 0;
    sac_result res = sac_frame_create(cpu, matte, &host);
    if (res == SAC_OK)
        res = sac_frame_copy(matte, host);
    for (int y = 0; res == SAC_OK && y < host->height; y++)
        for (int x = 0; x < host->width; x++)
            sum += host->plane[0][(size_t)y * host->pitch_bytes[0] + (size_t)x];
    *share = sum / 255 / matte->width / matte->height;
    sac_frame_unref(&host);
    return res;
}

int main(int argc, char **argv)
{
    sac_context   *ctx = NULL;
    sac_device    *dev = NULL, *cpu = NULL;
    sac_segmenter *seg = NULL;
    sac_source    *src = NULL;
    sac_frame     *frame = NULL, *matte = NULL;
    double         share;
    char           why[512];
    if (argc < 2 || sac_context_create(NULL, &ctx) != SAC_OK)
        return fprintf(stderr, "usage: segment VIDEO [MODEL]\n"), 2;
    sac_result res = sac_device_open(ctx, "auto", NULL, &dev);
    if (res == SAC_OK)
        res = sac_device_open(ctx, "cpu", NULL, &cpu);
    if (res == SAC_OK)
        res = sac_segmenter_create(dev, argc > 2 ? argv[2] : "person_seg", NULL, &seg);
    if (res == SAC_OK)
        res = sac_source_open(dev, argv[1], NULL, &src);
    while (res == SAC_OK && (res = sac_source_read_wait(src, &frame)) == SAC_OK) {
        res = sac_segmenter_run(seg, &frame, 1, &matte);
        if (res == SAC_OK)
            res = share_of(cpu, matte, &share);
        if (res == SAC_OK)
            printf("%lld: %.1f %%\n", (long long)frame->number, 100 * share);
        sac_frame_unref(&matte);
        sac_frame_unref(&frame);
    }
    if (res != SAC_EOS && sac_context_last_error(ctx, why, sizeof why))
        fprintf(stderr, "segment: %s\n", why);
    sac_source_close(&src);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&cpu);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return res == SAC_EOS ? 0 : 1;
}
