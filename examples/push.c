/* SPDX-License-Identifier: Apache-2.0 */
/* Frames from the program's own memory: here raw RGB from the standard input, in a camera's program
 * whatever its driver fills. Results come back with tracks and the time that each stage took.
 *
 *     ffmpeg -i in.mp4 -f rawvideo -pix_fmt rgb24 - | push yolox.onnx 768 576 10
 */
#include <stdio.h>
#include <stdlib.h>

#include <saccade/saccade.h>

/* Fill the frame's rows, which may be longer in memory than its pixels are. 0 at the end. */
static int read_pixels(FILE *in, sac_frame *frame)
{
    size_t row_bytes = (size_t)frame->width * 3;
    for (int y = 0; y < frame->height; y++)
        if (fread(frame->plane[0] + (size_t)y * frame->pitch_bytes[0], 1, row_bytes, in) !=
            row_bytes)
            return 0;
    return 1;
}

/* Wait for one result and print it. */
static sac_result take(sac_session *s)
{
    struct sac_session_result r;
    sac_result                res = sac_session_result_wait(s, -1, &r);
    if (res != SAC_OK)
        return res;
    printf("frame %lld: %zu tracks, %.1f ms of which inference %.1f\n", (long long)r.id, r.count,
           r.total_ms, r.inference_ms);
    for (size_t i = 0; i < r.count; i++)
        printf("    %lld at %.0f,%.0f to %.0f,%.0f\n", (long long)r.tracks[i].id,
               (double)r.tracks[i].x0, (double)r.tracks[i].y0, (double)r.tracks[i].x1,
               (double)r.tracks[i].y1);
    sac_session_result_finish(&r);
    return SAC_OK;
}

/* Submit the frame; as long as the session is full, take a result to make room. */
static sac_result submit(sac_session *s, sac_frame *frame)
{
    for (;;) {
        sac_result res = sac_session_submit(s, frame, frame->number);
        if (res != SAC_AGAIN)
            return res;
        if ((res = take(s)) != SAC_OK)
            return res;
    }
}

static sac_result push_all(sac_session *s, int width, int height, double fps)
{
    sac_result res = SAC_OK;
    for (int64_t number = 0; res == SAC_OK; number++) {
        sac_frame *frame = NULL, desc = {.format = SAC_PIXEL_RGB24,
                                         .width = width,
                                         .height = height,
                                         .number = number,
                                         .pts_us = (int64_t)((double)number * 1e6 / fps)};
        res = sac_frame_create(sac_session_device(s), &desc, &frame);
        if (res == SAC_OK && !read_pixels(stdin, frame)) {
            sac_frame_unref(&frame);
            break;
        }
        if (res == SAC_OK)
            res = submit(s, frame);
        sac_frame_unref(&frame);
    }
    sac_session_end(s);
    while (res == SAC_OK)
        res = take(s);
    return res == SAC_EOS ? SAC_OK : res;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: push DETECTOR.onnx WIDTH HEIGHT FPS < RGB\n");
        return 2;
    }
    struct sac_session_params params = sac_session_params_default();
    sac_context              *ctx = NULL;
    sac_session              *s = NULL;
    if (sac_context_create(NULL, &ctx) != SAC_OK)
        return 1;
    params.job.detector = argv[1];
    sac_result res = sac_session_create(ctx, &params, &s);
    if (res == SAC_OK)
        res = sac_session_start(s);
    if (res == SAC_OK)
        res = push_all(s, atoi(argv[2]), atoi(argv[3]), atof(argv[4]));
    if (res != SAC_OK) {
        char why[512];
        sac_context_last_error(ctx, why, sizeof why);
        fprintf(stderr, "push: %s\n", why);
    }
    sac_session_destroy(&s);
    sac_context_destroy(&ctx);
    return res == SAC_OK ? 0 : 1;
}
