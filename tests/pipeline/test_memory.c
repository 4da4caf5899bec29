/* SPDX-License-Identifier: Apache-2.0 */
/* A long run takes no more memory than a short one: tracks with a video written, embeddings
 * computed, and a number of people that changes from frame to frame; mattes over 5,000 frames, with
 * a video written. Slow, so not part of the quick tests; the ReID network is SACCADE_SHARED's. */
#include <errno.h>

#include <saccade/pipeline.h>

#include "base/base.h"
#include "observe/process.h"
#include "tests/pipeline/folder.h"

enum { PICTURES = 20, FRAMES = 400, WARM = 100, PEOPLE_MAX = 17, LONG = 5000 };

static const char *reid_model(void)
{
    static char path[512];
    const char *shared = getenv("SACCADE_SHARED");
    snprintf(path, sizeof path, "%s/data/models/person_reid_0288.onnx",
             shared && shared[0] ? shared : SOURCE_ROOT "/../shared");
    return access(path, R_OK) == 0 ? path : NULL;
}

/* 0 to 16 people in rows, more and fewer by turns; every seventh frame somebody new comes. */
static void write_crowd(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < FRAMES; i++)
        for (int j = 0; j < i * 5 % PEOPLE_MAX; j++)
            fprintf(file, "%d,-1,%d,%d,18,40,0.9,-1,-1,-1\n", i + 1, j % 6 * 25 + i / 7 % 5,
                    j / 6 * 60 + i / 7 % 3);
    assert_int_equal(fclose(file), 0);
}

/* img000.ppm and so on, of which the first are pictures and the others links to them. */
static void write_clip(int frames)
{
    char name[32], target[32];
    write_images(PICTURES);
    for (int i = PICTURES; i < frames; i++) {
        snprintf(name, sizeof name, "img%03d.ppm", i);
        snprintf(target, sizeof target, "img%03d.ppm", i % PICTURES);
        assert_true(symlink(target, in_folder(name)) == 0 || errno == EEXIST);
    }
}

struct watch {
    int      frames, warm; /* warm: from which one on nothing may be added */
    uint64_t warm_bytes, end_bytes;
};

static void watch(struct watch *w)
{
    struct sac_process_usage usage;
    sac_process_usage(&usage);
    if (++w->frames == w->warm)
        w->warm_bytes = usage.rss_bytes;
    w->end_bytes = usage.rss_bytes;
}

static int watch_memory(void *user, const sac_frame *frame, const struct sac_track *tracks,
                        size_t n)
{
    (void)frame;
    (void)tracks;
    (void)n;
    watch(user);
    return 0;
}

static int watch_matte(void *user, const sac_frame *frame, const sac_frame *matte)
{
    (void)frame;
    (void)matte;
    watch(user);
    return 0;
}

static void run(const struct sac_pipeline_params *params, const struct watch *w, int frames)
{
    sac_pipeline *pipe = NULL;
    assert_sac_ok(sac_pipeline_create(test_context(), params, &pipe));
    assert_sac_ok(sac_pipeline_run(pipe));
    sac_pipeline_destroy(&pipe);
    assert_int_equal(w->frames, frames);
    print_message("resident: %.2f MB after %d frames, %.2f MB after %d\n",
                  (double)w->warm_bytes * 1e-6, w->warm, (double)w->end_bytes * 1e-6, frames);
    assert_true((double)w->end_bytes <= (double)w->warm_bytes * 1.02);
}

static void tracks_take_no_more(void **state)
{
    (void)state;
    struct sac_pipeline_params params = sac_pipeline_params_default();
    struct watch               w = {.warm = WARM};
    params.job.reid = reid_model();
    if (!params.job.reid) {
        print_message("no SACCADE_SHARED: skipped\n");
        skip();
    }
    write_crowd(in_folder("det.txt"));
    write_clip(FRAMES);
    params.input = in_folder("img%03d.ppm");
    params.detections = in_folder("det.txt");
    params.video_out = in_folder("out.mp4");
    params.jsonl_out = in_folder("out.jsonl");
    params.mot_out = in_folder("out.mot");
    params.on_frame = watch_memory;
    params.on_frame_user = &w;
    run(&params, &w, FRAMES);
}

static void mattes_take_no_more(void **state)
{
    (void)state;
    struct sac_pipeline_params params = sac_pipeline_params_default();
    struct sac_segment_params  segment = sac_segment_params_default();
    struct watch               w = {.warm = WARM};
    write_clip(LONG);
    segment.model = SOURCE_ROOT "/tests/heads/maps_recurrent.onnx";
    params.job.segment = &segment;
    params.job.device = "cpu";
    params.input = in_folder("img%03d.ppm");
    params.video_out = in_folder("mattes.mp4");
    segment.on_matte = watch_matte;
    segment.on_matte_user = &w;
    run(&params, &w, LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tracks_take_no_more),
                                       cmocka_unit_test(mattes_take_no_more)};
    return cmocka_run_group_tests_name("pipeline/memory", tests, folder_create, folder_remove);
}
