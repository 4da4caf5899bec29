/* SPDX-License-Identifier: Apache-2.0 */
/* Frames from the program's own memory: here raw BGR from standard input, in a camera's program
 * the driver's buffers. Results have the tracks and the time that each stage took. With a GPU, the
 * session copies the frames to it.
 *
 *     ffmpeg -i in.mp4 -f rawvideo -pix_fmt bgr24 - | push person_det_fast 768 576 10
 */
#include <stdio.h>
#include <stdlib.h>

#include <saccade/saccade.h>

/* Fill the frame's rows, which may be padded in memory. 0 at the end. */
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
    res = r.status; /* another program may skip a failed frame; here it ends the run */
    printf("frame %lld: %zu tracks, %.1f ms of which inference %.1f\n", (long long)r.id, r.count,
           r.total_ms, r.inference_ms);
    for (size_t i = 0; i < r.count; i++)
        printf("    %lld at %.0f,%.0f to %.0f,%.0f\n", (long long)r.tracks[i].id,
               (double)r.tracks[i].x0, (double)r.tracks[i].y0, (double)r.tracks[i].x1,
               (double)r.tracks[i].y1);
    sac_session_result_finish(&r);
    return res;
}

/* Submit the frame; as long as the session is full, take a result to make room. */
static sac_result submit(sac_session *s, sac_frame *frame)
{
    sac_result res;
    while ((res = sac_session_submit(s, frame, frame->number)) == SAC_AGAIN)
        if ((res = take(s)) != SAC_OK)
            break;
    return res;
}

/* host: the device of the program's own pixels, even if the session runs on a GPU. */
static sac_result push_all(sac_session *s, sac_device *host, int width, int height, double fps)
{
    sac_result res = SAC_OK;
    for (int64_t number = 0; res == SAC_OK; number++) {
        sac_frame *frame = NULL,
                  desc = {.format = SAC_PIXEL_BGR24, .width = width, .height = height};
        desc.number = number;
        desc.pts_us = (int64_t)((double)number * 1e6 / fps);
        res = sac_frame_create(host, &desc, &frame); /* sac_frame_wrap shares existing pixels */
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
    struct sac_session_params params = sac_session_params_default();
    sac_context              *ctx = NULL;
    sac_device               *host = NULL;
    sac_session              *s = NULL;
    if (argc != 5)
        return fprintf(stderr, "usage: push DETECTOR WIDTH HEIGHT FPS < BGR\n"), 2;
    const double fps = atof(argv[4]);
    if (!(fps > 0))
        return fprintf(stderr, "push: %s frames a second\n", argv[4]), 2;
    if (sac_context_create(NULL, &ctx) != SAC_OK)
        return 1;
    params.job.detector = argv[1];
    sac_result res = sac_device_open(ctx, "cpu", NULL, &host);
    if (res == SAC_OK)
        res = sac_session_create(ctx, &params, &s); /* on a GPU where there is one */
    if (res == SAC_OK)
        res = sac_session_start(s);
    if (res == SAC_OK) {
        printf("on %s\n", sac_device_name(sac_session_device(s)));
        res = push_all(s, host, atoi(argv[2]), atoi(argv[3]), fps);
    }
    char why[512];
    if (res != SAC_OK && sac_context_last_error(ctx, why, sizeof why))
        fprintf(stderr, "push: %s\n", why);
    sac_session_destroy(&s);
    sac_device_unref(&host);
    sac_context_destroy(&ctx);
    return res == SAC_OK ? 0 : 1;
}
