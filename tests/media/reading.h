/* SPDX-License-Identifier: Apache-2.0 */
/* A source read to its end, and the device that the media tests share. */
#ifndef SAC_TESTS_MEDIA_READING_H
#define SAC_TESTS_MEDIA_READING_H

#include <stdio.h>
#include <unistd.h>

#include <saccade/source.h>

#include "device/device.h"
#include "tests/media/clip.h"
#include "tests/test.h"

static sac_device *dev;

/* Read to the end; number and pts of each frame into arrays of max entries. */
struct reading {
    sac_result              end;
    int                     frames;
    int                     number[512];
    int64_t                 pts_us[512], source_us[512];
    struct sac_source_stats stats;
    struct sac_source_info  info;
};
static inline struct reading read_all(const char *url, const struct sac_source_params *params)
{
    struct reading r = {0};
    sac_source    *src = NULL;
    r.end = sac_source_open(dev, url, params, &src);
    if (r.end != SAC_OK)
        return r;
    sac_source_describe(src, &r.info);
    while (r.end == SAC_OK) {
        sac_frame *frame = NULL;
        r.end = sac_source_read_wait(src, &frame);
        if (r.end != SAC_OK)
            break;
        if (r.frames < 512) {
            r.number[r.frames] =
                frame->width >= 96 && frame->height >= 32 ? clip_number(frame) : -1;
            r.pts_us[r.frames] = frame->pts_us;
            r.source_us[r.frames] = frame->source_pts_us;
        }
        if (r.frames > 0 && r.frames < 512)
            assert_true(frame->pts_us > r.pts_us[r.frames - 1]);
        r.frames++;
        sac_frame_unref(&frame);
    }
    sac_source_get_stats(src, &r.stats);
    sac_source_close(&src);
    return r;
}

static inline long resident_kb(void)
{
    long  pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        if (fscanf(file, "%*d %ld", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static inline int open_device(void **state)
{
    (void)state;
    return sac_device_open(test_context(), "cpu", NULL, &dev) == SAC_OK ? 0 : -1;
}

static inline int close_device(void **state)
{
    (void)state;
    sac_device_unref(&dev);
    scratch_remove();
    return 0;
}

#endif
