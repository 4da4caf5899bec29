/* SPDX-License-Identifier: Apache-2.0 */
/* How much of each frame is people: segment VIDEO [MODEL]. The mattes are frames as well, so all
 * that takes a frame takes them; on the CPU their pixels can be read. */
#include <stdio.h>

#include <saccade/saccade.h>

static double share_of(const sac_frame *matte)
{
    double sum = 0;
    for (int y = 0; y < matte->height; y++)
        for (int x = 0; x < matte->width; x++)
            sum += matte->plane[0][(size_t)y * matte->pitch_bytes[0] + (size_t)x];
    return sum / 255 / matte->width / matte->height;
}

int main(int argc, char **argv)
{
    sac_context   *ctx = NULL;
    sac_device    *dev = NULL;
    sac_segmenter *seg = NULL;
    sac_source    *src = NULL;
    sac_frame     *frame = NULL, *matte = NULL;
    char           why[512];
    if (argc < 2 || sac_context_create(NULL, &ctx) != SAC_OK)
        return fprintf(stderr, "usage: segment VIDEO [MODEL]\n"), 2;
    sac_result res = sac_device_open(ctx, "cpu", NULL, &dev);
    if (res == SAC_OK)
        res = sac_segmenter_create(dev, argc > 2 ? argv[2] : "person_seg", NULL, &seg);
    if (res == SAC_OK)
        res = sac_source_open(dev, argv[1], NULL, &src);
    while (res == SAC_OK && (res = sac_source_read_wait(src, &frame)) == SAC_OK) {
        res = sac_segmenter_run(seg, &frame, 1, &matte);
        if (res == SAC_OK)
            printf("%lld: %.1f %%\n", (long long)frame->number, 100 * share_of(matte));
        sac_frame_unref(&matte);
        sac_frame_unref(&frame);
    }
    if (res != SAC_EOS && sac_context_last_error(ctx, why, sizeof why))
        fprintf(stderr, "segment: %s\n", why);
    sac_source_close(&src);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return res == SAC_EOS ? 0 : 1;
}
