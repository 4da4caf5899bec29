/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU's sources beside the CPU's. The clips are those of packaging/clips. */
#ifndef SAC_TESTS_MEDIA_GPU_READING_H
#define SAC_TESTS_MEDIA_GPU_READING_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <saccade/source.h>

#include "device/format.h"
#include "tests/clips.h"
#include "tests/gpu.h"
#include "tests/media/clip.h"

static sac_device *cpu, *gpu;

static inline int open_devices(void **state)
{
    (void)state;
    if (sac_device_open(test_context(), "cpu", NULL, &cpu) != SAC_OK)
        return -1;
    sac_device_open(test_context(), "cuda", NULL, &gpu); /* each test says what is missing */
    return 0;
}

static inline int close_devices(void **state)
{
    (void)state;
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
    scratch_remove();
    return 0;
}

/* Skips the test, or fails it, where there is no GPU. */
static inline void need_gpu(void)
{
    if (!gpu)
        gpu = gpu_open(NULL);
}

static inline const char *last_error(void)
{
    static char why[512];
    sac_context_last_error(test_context(), why, sizeof why);
    return why;
}

/* ---- comparing ---- */

static inline struct sac_source_params decode_with(enum sac_decode decode)
{
    struct sac_source_params params = sac_source_params_default();
    params.decode = decode;
    return params;
}

/* A frame of the GPU's in host memory. */
static inline sac_frame *downloaded(const sac_frame *frame)
{
    sac_frame *host = NULL;
    assert_sac_ok(sac_frame_create(cpu, frame, &host));
    assert_sac_ok(sac_frame_copy(frame, host));
    return host;
}

/* Sample of a frame's channel: R, G or B, else Y and the chroma of NV12, P010 or I420. */
static inline int sample(const sac_frame *f, int c, int x, int y)
{
    const int step = sac_rgb_step(f->format);
    if (step)
        return f->plane[0][(size_t)y * f->pitch_bytes[0] + (size_t)(step * x + c)];
    int            plane = f->format == SAC_PIXEL_I420 ? c : c > 0;
    int            at = f->format == SAC_PIXEL_I420 || c == 0 ? x : 2 * x + (c - 1);
    const uint8_t *row = f->plane[plane] + (size_t)y * f->pitch_bytes[plane];
    return f->format == SAC_PIXEL_P010 ? ((const uint16_t *)(const void *)row)[at] : row[at];
}

struct difference {
    int  tolerance, greatest;
    int  bad, frames; /* frames beyond the tolerance, of those compared */
    char where[160];
};

static inline const char *difference_text(const struct difference *diff)
{
    static char text[240];
    snprintf(text, sizeof text, "greatest difference %d, %d of %d frames bad%s%s", diff->greatest,
             diff->bad, diff->frames, diff->greatest ? ": " : "", diff->where);
    return text;
}

static inline void compare(const sac_frame *ours, const sac_frame *want, int frame,
                           struct difference *diff)
{
    assert_int_equal(ours->width, want->width);
    assert_int_equal(ours->height, want->height);
    const bool halves = sac_is_yuv(want->format);
    int        greatest = 0; /* of this frame */
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < (c && halves ? (want->height + 1) / 2 : want->height); y++)
            for (int x = 0; x < (c && halves ? (want->width + 1) / 2 : want->width); x++) {
                int a = sample(ours, c, x, y), b = sample(want, c, x, y);
                greatest = SAC_MAX(greatest, abs(a - b));
                if (abs(a - b) <= diff->greatest)
                    continue;
                diff->greatest = abs(a - b);
                snprintf(diff->where, sizeof diff->where,
                         "frame %d, channel %d, %d,%d of %dx%d: %d instead of %d", frame, c, x, y,
                         want->width, want->height, a, b);
            }
    diff->bad += greatest > diff->tolerance;
    diff->frames++;
}

struct both {
    sac_result              opened, end, cpu_end;
    int                     frames, cpu_frames;
    struct difference       diff;
    struct sac_source_info  info;
    struct sac_source_stats stats;
    char                    why[512];
};

/* Read a clip on both devices side by side; params are for the GPU's source; of them only rotate is
 * the CPU's too. */
static inline struct both read_both_within(int tolerance, const char *path,
                                           const struct sac_source_params *params)
{
    struct both              r = {.diff.tolerance = tolerance};
    sac_source              *on_gpu = NULL, *on_cpu = NULL;
    struct sac_source_params plain = sac_source_params_default();
    plain.rotate = params ? params->rotate : SAC_ROTATE_AUTO;
    r.opened = r.end = sac_source_open(gpu, path, params, &on_gpu);
    snprintf(r.why, sizeof r.why, "%s", r.opened == SAC_OK ? "" : last_error());
    if (r.opened != SAC_OK)
        return r;
    assert_sac_ok(sac_source_open(cpu, path, &plain, &on_cpu));
    sac_source_describe(on_gpu, &r.info);
    while (r.end == SAC_OK || r.cpu_end == SAC_OK) {
        sac_frame *a = NULL, *b = NULL;
        if (r.end == SAC_OK && (r.end = sac_source_read_wait(on_gpu, &a)) != SAC_OK &&
            r.end != SAC_EOS)
            snprintf(r.why, sizeof r.why, "%s", last_error());
        if (r.cpu_end == SAC_OK)
            r.cpu_end = sac_source_read_wait(on_cpu, &b);
        if (a && b) {
            sac_frame *host = downloaded(a);
            assert_int_equal(a->pts_us, b->pts_us);
            compare(host, b, r.frames, &r.diff);
            sac_frame_unref(&host);
        }
        r.frames += a != NULL;
        r.cpu_frames += b != NULL;
        sac_frame_unref(&a);
        sac_frame_unref(&b);
    }
    sac_source_describe(on_gpu, &r.info);
    sac_source_get_stats(on_gpu, &r.stats);
    sac_source_close(&on_gpu);
    sac_source_close(&on_cpu);
    return r;
}

static inline struct both read_both(const char *path, const struct sac_source_params *params)
{
    return read_both_within(0, path, params);
}

static inline void read_some(const char *path, const struct sac_source_params *params, int frames)
{
    sac_source *src = NULL;
    sac_frame  *frame = NULL;
    assert_sac_ok(sac_source_open(gpu, path, params, &src));
    for (int i = 0; i < frames; i++) {
        assert_sac_ok(sac_source_read_wait(src, &frame));
        sac_frame_unref(&frame);
    }
    sac_source_close(&src);
}

#endif
