/* SPDX-License-Identifier: Apache-2.0 */
/* After the first frames no device memory is allocated: with few and many streams, varying numbers
 * of boxes, pictures of several sizes, in real time, and with annotated videos. On the CPU used
 * like a GPU, and on a GPU. */
#include <math.h>

#include <saccade/pipeline.h>

#include "base/base.h"
#include "tests/clips.h"
#include "tests/gpu.h"
#include "tests/pipeline/folder.h"

enum { FRAMES = 240, LONG = 3 * FRAMES, PICTURES = 20, STREAMS = 32, WIDE = 320, HIGH = 256 };

/* The last of each is for a stream alone, and longer. */
static char images[3][384], crowds[3][384], mots[STREAMS][384], videos[STREAMS][384];

/* ---- inputs ---- */

static int frames_of(int file)
{
    return file == 2 ? LONG : FRAMES;
}

/* Up to 40 people in rows, more and fewer by turns, most of all near the end; in each file
 * others. */
static int people_in(int file, int frame)
{
    return frame > frames_of(file) - 20 ? 40 : frame * (5 + 2 * file) % 17;
}

static void write_crowd(int file)
{
    FILE *out = fopen(crowds[file], "w");
    assert_non_null(out);
    for (int i = 0; i < frames_of(file); i++)
        for (int j = 0; j < people_in(file, i); j++)
            fprintf(out, "%d,-1,%d,%d,18,40,0.9,-1,-1,-1\n", i + 1, j % 8 * 18 + i / 7 % 5,
                    j / 8 * 30 + i / 7 % 3);
    assert_int_equal(fclose(out), 0);
}

static void write_wide(const char *name, int shade)
{
    static unsigned char rgb[HIGH][WIDE][3];
    FILE                *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    for (int y = 0; y < HIGH; y++)
        for (int x = 0; x < WIDE; x++)
            memset(rgb[y][x], 40 + (x * y / 64 + shade) % 160, 3);
    fprintf(file, "P6\n%d %d\n255\n", WIDE, HIGH);
    assert_int_equal(fwrite(rgb, 1, sizeof rgb, file), sizeof rgb);
    assert_int_equal(fclose(file), 0);
}

static void link_pictures(const char *format, int first, int end, const char *to)
{
    char name[32], target[32];
    for (int i = first; i < end; i++) {
        snprintf(name, sizeof name, format, i);
        snprintf(target, sizeof target, to, i % PICTURES);
        assert_int_equal(symlink(target, in_folder(name)), 0);
    }
}

/* The first are pictures, the others links to them. */
static void write_clips(void)
{
    char name[32];
    write_images(PICTURES);
    for (int i = 0; i < PICTURES; i++) {
        snprintf(name, sizeof name, "wide%03d.ppm", i);
        write_wide(name, 3 * i);
    }
    link_pictures("img%03d.ppm", PICTURES, FRAMES, "img%03d.ppm");
    link_pictures("wide%03d.ppm", PICTURES, FRAMES, "wide%03d.ppm");
    link_pictures("long%03d.ppm", 0, LONG, "img%03d.ppm");
}

static void name_file(char out[384], const char *format, int number)
{
    char name[32];
    snprintf(name, sizeof name, format, number);
    snprintf(out, 384, "%s", in_folder(name));
}

static int set_up(void **state)
{
    if (folder_create(state) != 0)
        return -1;
    snprintf(images[0], sizeof images[0], "%s", in_folder("img%03d.ppm"));
    snprintf(images[1], sizeof images[1], "%s", in_folder("wide%03d.ppm"));
    for (int i = 0; i < STREAMS; i++) {
        name_file(mots[i], "out%d.mot", i);
        name_file(videos[i], "out%d.mp4", i);
    }
    snprintf(images[2], sizeof images[2], "%s", in_folder("long%03d.ppm"));
    for (int i = 0; i < 3; i++) {
        name_file(crowds[i], "det%d.txt", i);
        write_crowd(i);
    }
    write_clips();
    return 0;
}

/* ---- who took memory late ---- */

/* What the CPU's kernels work in is taken and given back within a call. */
static bool is_scratch(const char *line)
{
    return strstr(line, "'preprocess'") || strstr(line, "'convert'") || strstr(line, "'detect'");
}

struct late {
    int  count;
    bool host_memory; /* the device's is the host's */
    char lines[512];
};

static void note_late(void *user, enum sac_log_level level, const char *line)
{
    struct late *late = user;
    (void)level;
    if (!strstr(line, "new after the first") || (late->host_memory && is_scratch(line)))
        return;
    late->count++;
    const size_t used = strlen(late->lines);
    snprintf(late->lines + used, sizeof late->lines - used, "%s; ", line);
}

/* ---- runs ---- */

static struct sac_pipeline_params params_of(struct sac_stream_params *streams, int count,
                                            const char *device)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    params.streams = streams;
    params.stream_count = count;
    params.job.device = device;
    params.job.reid = TEST_HEADS "/embedding_nchw.onnx";
    params.job.batches_ahead = 2;
    params.job.inference_batch_max = params.job.detector_params.batch_max = 8;
    params.source.fps = 25;
    return params;
}

/* People of the files, beside pictures that the CPU reads. */
static void give_crowds(struct sac_stream_params *streams, int count, bool sizes, bool video)
{
    for (int i = 0; i < count; i++)
        streams[i] = (struct sac_stream_params){.input = images[count == 1 ? 2 : sizes && i % 2],
                                                .detections = crowds[count == 1 ? 2 : i % 2],
                                                .mot_out = mots[i],
                                                .video_out = video ? videos[i] : NULL};
}

static void expect_none_late(const struct sac_pipeline_params *params, const char *what)
{
    struct late               late = {.host_memory = !strcmp(params->job.device, "cpu")};
    struct sac_context_params quiet = sac_context_params_default();
    struct sac_pipeline_stats stats;
    sac_context              *ctx = NULL;
    sac_pipeline             *pipe = NULL;
    char                      why[512];
    quiet.log_fn = note_late;
    quiet.log_user = &late;
    quiet.log_level = SAC_LOG_DEBUG;
    assert_sac_ok(sac_context_create(&quiet, &ctx));
    sac_result res = sac_pipeline_create(ctx, params, &pipe);
    if (res == SAC_OK)
        res = sac_pipeline_run(pipe);
    sac_context_last_error(ctx, why, sizeof why);
    if (res != SAC_OK)
        fail_msg("%s: %s", what, why);
    sac_pipeline_get_stats(pipe, &stats);
    sac_pipeline_destroy(&pipe);
    sac_context_destroy(&ctx);
    print_message("%s: %lld frames; after the first %d, %d buffers were new; %llu of the device's "
                  "were asked for\n",
                  what, (long long)stats.frames, SAC_POOL_WARM_FRAMES, late.count,
                  (unsigned long long)stats.pool.requests_warm);
    assert_true(stats.frames > 2 * SAC_POOL_WARM_FRAMES);
    if (late.count)
        fail_msg("%s: %s", what, late.lines);
    if (!late.host_memory)
        assert_int_equal(stats.pool.allocations_warm + stats.host_pool.allocations_warm, 0);
    assert_int_equal(stats.pool.leaks + stats.host_pool.leaks, 0);
}

static void check_crowds(const char *device)
{
    static const int         counts[] = {1, 4, 16};
    struct sac_stream_params streams[STREAMS];
    for (size_t i = 0; i < SAC_COUNT(counts); i++) {
        char what[64];
        give_crowds(streams, counts[i], i > 1, false);
        struct sac_pipeline_params params = params_of(streams, counts[i], device);
        snprintf(what, sizeof what, "%s, %d streams%s", device, counts[i],
                 i > 1 ? " of two sizes" : "");
        expect_none_late(&params, what);
    }
}

static void check_real_time(const char *device)
{
    struct sac_stream_params streams[STREAMS];
    give_crowds(streams, 8, true, false);
    struct sac_pipeline_params params = params_of(streams, 8, device);
    params.source.fps = 120;
    params.realtime = 1;
    expect_none_late(&params, "8 streams in real time");
}

static void check_videos(const char *device)
{
    struct sac_stream_params streams[STREAMS];
    give_crowds(streams, 4, true, true);
    struct sac_pipeline_params params = params_of(streams, 4, device);
    params.draw_trails = 1;
    expect_none_late(&params, "4 streams with annotated videos");
}

/* NVDEC, the detector and ReID, all on the GPU. */
static void check_clips(bool video, bool real_time, const char *what)
{
    struct sac_stream_params   streams[STREAMS];
    struct sac_pipeline_params params = params_of(streams, STREAMS, "cuda");
    const char                *clip = clip_path("people_h264.mp4");
    for (int i = 0; i < STREAMS; i++)
        streams[i] = (struct sac_stream_params){
            .input = clip, .mot_out = mots[i], .video_out = video ? videos[i] : NULL};
    params.job.detector = "person_det_fast";
    params.job.reid = "person_reid";
    params.job.batches_ahead = 0;
    params.job.inference_batch_max = params.job.detector_params.batch_max = 32;
    params.realtime = real_time;
    expect_none_late(&params, what);
}

/* ---- tests ---- */

static void crowds_take_nothing_late(void **state)
{
    (void)state;
    check_crowds("cpu");
    check_real_time("cpu");
}

static void need_gpu(void)
{
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
}

static void nor_do_they_on_a_gpu(void **state)
{
    (void)state;
    need_gpu();
    check_crowds("cuda");
    check_real_time("cuda");
}

static void nor_does_the_whole_way_on_a_gpu(void **state)
{
    (void)state;
    need_gpu();
    check_clips(false, false, "32 clips");
    check_clips(false, true, "32 clips in real time");
    check_clips(true, false, "32 clips with annotated videos");
}

static void nor_do_videos_on_a_gpu(void **state)
{
    (void)state;
    need_gpu();
    check_videos("cuda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crowds_take_nothing_late),
        cmocka_unit_test(nor_do_they_on_a_gpu),
        cmocka_unit_test(nor_do_videos_on_a_gpu),
        cmocka_unit_test(nor_does_the_whole_way_on_a_gpu),
    };
    return cmocka_run_group_tests_name("pipeline/warm", tests, set_up, folder_remove);
}
