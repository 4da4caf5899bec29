/* SPDX-License-Identifier: Apache-2.0 */
/* Crops of objects, from ready-made detections: no model is needed. */
#include <saccade/pipeline.h>

#include "base/base.h"
#include "tests/pipeline/folder.h"

enum { FRAMES = 30 };

static char input[384], detections[384], crops[384];

static int set_up(void **state)
{
    if (folder_create(state) != 0)
        return -1;
    snprintf(detections, sizeof detections, "%s", in_folder("det.txt"));
    snprintf(input, sizeof input, "%s", in_folder("img%03d.ppm"));
    snprintf(crops, sizeof crops, "%s", in_folder("crops"));
    write_detections(detections, FRAMES);
    write_images(FRAMES);
    return 0;
}

static struct sac_pipeline_params crops_at(double fps)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    params.input = input;
    params.detections = detections;
    params.crops_out = crops;
    params.job.device = "cpu";
    params.source.fps = params.fps = fps;
    return params;
}

static sac_result run(const struct sac_pipeline_params *params, struct sac_pipeline_stats *stats)
{
    sac_pipeline *pipe = NULL;
    sac_result    res = sac_pipeline_create(test_context(), params, &pipe);
    if (res == SAC_OK)
        res = sac_pipeline_run(pipe);
    if (pipe && stats)
        sac_pipeline_get_stats(pipe, stats);
    sac_pipeline_destroy(&pipe);
    return res;
}

/* Removes the crops; returns how many there were. Nothing else may lie there. */
static int take_crops(void)
{
    char path[400];
    int  n = 0;
    snprintf(path, sizeof path, "%s/0", crops); /* ready-made detections have no names of classes */
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_name[0] == '.')
            continue;
        char file[800];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (strlen(e->d_name) != strlen("00001.jpg") || !strstr(e->d_name, ".jpg"))
            fail_msg("left behind: %s", file);
        n += unlink(file) == 0;
    }
    if (dir)
        closedir(dir);
    rmdir(path);
    rmdir(crops);
    return n;
}

static int remove_crops(void **state)
{
    (void)state;
    take_crops();
    unlink(in_folder("coco.json"));
    unlink(in_folder("out.csv"));
    return 0;
}

static void each_object_has_one(void **state)
{
    (void)state;
    struct sac_pipeline_params params = crops_at(25);
    struct sac_pipeline_stats  stats;
    params.job.device_params.zero_copy_strict = 1; /* on the CPU nothing is copied */
    assert_sac_ok(run(&params, &stats));
    assert_int_equal(stats.tracks, 2);
    assert_int_equal(take_crops(), 2);
    assert_true(stats.outputs_whole & SAC_OUTPUT_CROPS);
    assert_int_equal(stats.ledger.reason[SAC_COPY_CROP].calls, 0);
    assert_int_equal(stats.pool.bytes_live, 0);
}

struct watch {
    int frames, seen; /* seen: frames at which there were files already */
};

static int look(void *user, const sac_frame *frame, const struct sac_track *tracks, size_t n)
{
    struct watch *w = user;
    char          path[512];
    (void)frame;
    snprintf(path, sizeof path, "%s/0", crops);
    w->frames++;
    w->seen += n > 0 && tracks[0].id > 0 && access(path, F_OK) == 0;
    return 0;
}

/* 30 frames at 2 a second are 15 seconds; a view that stays the best is written after five. */
static void a_camera_shows_its_objects_as_it_runs(void **state)
{
    (void)state;
    struct sac_pipeline_params params = crops_at(2);
    struct watch               w = {0};
    params.on_frame = look;
    params.on_frame_user = &w;
    assert_sac_ok(run(&params, NULL));
    assert_int_equal(w.frames, FRAMES);
    assert_in_range(w.seen, 10, FRAMES - 10);
    assert_int_equal(take_crops(), 2);
}

static void what_is_no_folder_is_known_before_the_run(void **state)
{
    (void)state;
    struct sac_pipeline_params params = crops_at(25);
    sac_pipeline              *pipe = NULL;
    char                       why[512];
    write_text(crops, "a file\n");
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_IO);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, crops));
    unlink(crops);
    params.crops_out = "-";
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    params.crops_out = crops;
    params.input = NULL;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_ARG);
    assert_null(pipe);
}

static int stop_soon(void *user, const sac_frame *frame, const struct sac_track *tracks, size_t n)
{
    int *frames = user;
    (void)frame;
    (void)tracks;
    (void)n;
    return ++*frames == 6;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct sac_pipeline_params params = crops_at(25);
    char                       coco[384], csv[384];
    int                        failures = 0, frames = 0;
    snprintf(coco, sizeof coco, "%s", in_folder("coco.json"));
    snprintf(csv, sizeof csv, "%s", in_folder("out.csv"));
    params.coco_out = coco;
    params.csv_out = csv;
    params.on_frame = stop_soon;
    params.on_frame_user = &frames;
    for (long n = 1; n <= 500; n += n < 100 ? 1 : 4) {
        frames = 0;
        sac_alloc_fail_at(n);
        sac_result res = run(&params, NULL);
        sac_alloc_fail_at(0);
        if (res != SAC_ERR_CANCELLED && res != SAC_ERR_MEMORY)
            fail_msg("allocation %ld: the run ended with %s", n, sac_result_name(res));
        take_crops();
        failures += res == SAC_ERR_MEMORY;
    }
    assert_in_range(failures, 30, 198); /* at the end of the range all went well */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_object_has_one, remove_crops),
        cmocka_unit_test_teardown(a_camera_shows_its_objects_as_it_runs, remove_crops),
        cmocka_unit_test_teardown(what_is_no_folder_is_known_before_the_run, remove_crops),
        cmocka_unit_test_teardown(every_allocation_may_fail, remove_crops),
    };
    return cmocka_run_group_tests_name("pipeline/crops", tests, set_up, folder_remove);
}
