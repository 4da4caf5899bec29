/* SPDX-License-Identifier: Apache-2.0 */
/* People cut out of a video: segment VIDEO OUT.mov [MODEL]; .webm and .mkv have alpha too. */
#include <stdbool.h>
#include <stdio.h>

#include <saccade/saccade.h>

int main(int argc, char **argv)
{
    struct sac_sink_params params = sac_sink_params_default();
    sac_context           *ctx = NULL;
    sac_device            *dev = NULL;
    sac_segmenter         *seg = NULL;
    sac_source            *src = NULL;
    sac_sink              *out = NULL;
    sac_frame             *frame = NULL, *matte = NULL;
    char                   why[512];
    params.alpha = 1;
    if (argc < 3 || sac_context_create(NULL, &ctx) != SAC_OK)
        return fprintf(stderr, "usage: segment VIDEO OUT.mov [MODEL]\n"), 2;
    bool well =
        sac_device_open(ctx, "auto", NULL, &dev) == SAC_OK &&
        sac_segmenter_create(dev, argc > 3 ? argv[3] : "person_seg", NULL, &seg) == SAC_OK &&
        sac_source_open(dev, argv[1], NULL, &src) == SAC_OK &&
        sac_sink_create(dev, argv[2], src, &params, &out) == SAC_OK;
    sac_result res = SAC_OK;
    while (well && (res = sac_source_read_wait(src, &frame)) == SAC_OK) {
        well = sac_segmenter_run(seg, &frame, 1, &matte) == SAC_OK &&
               sac_sink_write_alpha_wait(out, frame, matte) == SAC_OK;
        sac_frame_unref(&matte);
        sac_frame_unref(&frame);
    }
    well = well && res == SAC_EOS && sac_sink_finish(out) == SAC_OK;
    if (!well && sac_context_last_error(ctx, why, sizeof why))
        fprintf(stderr, "segment: %s\n", why);
    sac_sink_destroy(&out);
    sac_source_close(&src);
    sac_segmenter_destroy(&seg);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
    return !well;
}
