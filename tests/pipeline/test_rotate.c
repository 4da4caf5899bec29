/* SPDX-License-Identifier: Apache-2.0 */
/* Videos marked as turned or mirrored: their tracks equal those of the same pictures stored
 * upright, and on a GPU no frame is copied. The clips are made here from one with people. */
#include <unistd.h>

#include <saccade/pipeline.h>

#include "device/device.h"
#include "pipeline/job.h"
#include "tests/display.h"
#include "tests/gpu.h"
#include "tests/pipeline/agreement.h"
#include "tests/pipeline/folder.h"

enum { FRAMES = 24 };

static sac_device *cpu;
static char        people[384];

static bool find_people(void)
{
    static const char *const names[] = {"people_h264.mp4", "vtest.avi"};
    static const char *const folders[] = {"clips", "share/saccade/clips", "../share/saccade/clips",
                                          "../../share/saccade/clips", TEST_BUILD "/clips"};
    for (size_t n = 0; n < SAC_COUNT(names); n++)
        for (size_t i = 0; i < SAC_COUNT(folders); i++) {
            snprintf(people, sizeof people, "%s/%s", folders[i], names[n]);
            if (access(people, R_OK) == 0)
                return true;
        }
    print_message("skipped: no clip with people; scripts/clip brings one\n");
    return false;
}

static int set_up(void **state)
{
    return folder_create(state) == 0 && sac_device_open(test_context(), "cpu", NULL, &cpu) == SAC_OK
               ? 0
               : -1;
}

static int tear_down(void **state)
{
    sac_device_unref(&cpu);
    return folder_remove(state);
}

/* ---- clips ---- */

static void release_frame(void *user)
{
    sac_frame *frame = user;
    sac_frame_unref(&frame);
}

/* Some frames of a file, each turned so. false: there is no such encoder. */
static bool write_turned(const char *from, const char *to, enum sac_orientation o,
                         const char *encoder)
{
    struct sac_source_params source = sac_source_params_default();
    struct sac_sink_params   params = sac_sink_params_default();
    sac_source              *src = NULL;
    sac_sink                *sink = NULL;
    sac_frame               *frame = NULL;
    source.rotate = SAC_ROTATE_NONE;
    params.encoder = encoder;
    assert_sac_ok(sac_source_open(cpu, from, &source, &src));
    sac_result res = sac_sink_create(cpu, to, NULL, &params, &sink);
    for (int i = 0; i < FRAMES && res == SAC_OK; i++) {
        assert_sac_ok(sac_source_read_wait(src, &frame));
        const sac_frame lying = sac_frame_as_turned(frame, o);
        if (o != SAC_UPRIGHT)
            assert_sac_ok(sac_frame_wrap(cpu, &lying, release_frame, frame, &frame));
        frame->pts_us = lying.pts_us;
        assert_sac_ok(sac_sink_write_wait(sink, frame));
        sac_frame_unref(&frame);
    }
    if (res == SAC_OK)
        assert_sac_ok(sac_sink_finish(sink));
    sac_sink_destroy(&sink);
    sac_source_close(&src);
    return res == SAC_OK;
}

/* What a phone writes that is held so: the picture lies in the file, which says how to show it. */
static const char *phone_clip(enum sac_orientation o)
{
    const int   turns = o & 3, back = o & SAC_MIRROR ? (int)o : (4 - turns) & 3;
    const char *stored = in_folder("stored.mp4");
    char        name[32];
    snprintf(name, sizeof name, "phone%d.mp4", (int)o);
    assert_true(write_turned(people, stored, (enum sac_orientation)back, NULL));
    const char *path = in_folder(name);
    display_copy(stored, path, o);
    return path;
}

/* ---- runs ---- */

static struct sac_pipeline_params params_of(const char *device)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    params.job.device = device;
    params.job.detector = "person_det_fast";
    params.job.reid = "person_reid";
    return params;
}

static struct sac_pipeline_stats run(const struct sac_pipeline_params *params)
{
    struct sac_pipeline_stats stats = {0};
    sac_pipeline             *pipe = NULL;
    assert_sac_ok(sac_pipeline_create(test_context(), params, &pipe));
    assert_sac_ok(sac_pipeline_run(pipe));
    sac_pipeline_get_stats(pipe, &stats);
    sac_pipeline_destroy(&pipe);
    return stats;
}

static struct sac_mot_file tracks_of(const char *clip, const char *device, enum sac_rotate rotate)
{
    struct sac_pipeline_params params = params_of(device);
    struct sac_mot_file        file = {0};
    params.input = clip;
    params.source.rotate = rotate;
    params.mot_out = in_folder("tracks.txt");
    run(&params);
    assert_sac_ok(sac_mot_read(test_context(), params.mot_out, &file));
    return file;
}

/* Numbers go on from run to run. */
static void expect_same(const struct sac_mot_file *want, struct sac_mot_file got, const char *what)
{
    bool same = want->count == got.count && got.count > 0;
    for (size_t i = 0; i < got.count && same; i++) {
        const struct sac_mot_row *a = &want->rows[i], *b = &got.rows[i];
        same = a->frame == b->frame && a->id - want->rows[0].id == b->id - got.rows[0].id &&
               a->x == b->x && a->y == b->y && a->w == b->w && a->h == b->h;
    }
    if (!same)
        fail_msg("%s: %zu rows, %zu expected, and they differ", what, got.count, want->count);
    sac_mot_finish(&got);
}

/* ---- tests ---- */

static const enum sac_orientation held[] = {SAC_TURN_90, SAC_TURN_180, SAC_MIRROR_TURN_90};

static void tracks_are_those_of_upright_pictures(void **state)
{
    (void)state;
    if (!find_people())
        skip();
    for (size_t i = 0; i < SAC_COUNT(held); i++) {
        const char *phone = phone_clip(held[i]), *upright = in_folder("upright.mkv");
        if (!write_turned(phone, upright, held[i], "ffv1")) {
            print_message("skipped: this FFmpeg cannot write FFV1\n");
            skip();
        }
        struct sac_mot_file want = tracks_of(upright, "cpu", SAC_ROTATE_AUTO);
        assert_true(want.count > 40);
        expect_same(&want, tracks_of(phone, "cpu", SAC_ROTATE_AUTO), sac_orientation_name(held[i]));
        if (held[i] == SAC_TURN_90) {
            struct sac_mot_file lying = tracks_of(phone, "cpu", SAC_ROTATE_NONE);
            assert_true(lying.count < want.count / 2); /* people on their side are hardly seen */
            sac_mot_finish(&lying);
            expect_same(&want, tracks_of(in_folder("stored.mp4"), "cpu", SAC_ROTATE_90),
                        "stored.mp4 turned by the user");
        }
        sac_mot_finish(&want);
    }
}

static void the_gpu_turns_without_a_copy(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL);
    sac_device_unref(&gpu);
    if (!find_people())
        skip();
    for (int o = 1; o < SAC_ORIENTATION_COUNT; o++) {
        const char                *phone = phone_clip((enum sac_orientation)o);
        struct sac_pipeline_params params = params_of("cuda");
        struct sac_mot_file        want = tracks_of(phone, "cpu", SAC_ROTATE_AUTO), got = {0};
        assert_true(want.count > 40);
        params.input = phone;
        params.mot_out = in_folder("tracks.txt");
        params.job.device_params.zero_copy_strict = 1;
        const struct sac_pipeline_stats stats = run(&params);
        for (int i = 0; i < SAC_COPY_REASON_COUNT; i++)
            if (i != SAC_COPY_WEIGHTS && i != SAC_COPY_BOXES && i != SAC_COPY_COMMANDS)
                assert_int_equal(stats.ledger.reason[i].bytes, 0);
        assert_sac_ok(sac_mot_read(test_context(), params.mot_out, &got));
        expect_agreement(&want, &got, 0.95, sac_orientation_name((enum sac_orientation)o));
        sac_mot_finish(&want);
        sac_mot_finish(&got);
    }
}

/* Streams that are held differently share batches and waves. */
static void the_gpu_mixes_them(void **state)
{
    (void)state;
    static char              mots[SAC_ORIENTATION_COUNT][384], clips[SAC_ORIENTATION_COUNT][384];
    struct sac_stream_params streams[SAC_ORIENTATION_COUNT];
    sac_device              *gpu = gpu_open(NULL);
    sac_device_unref(&gpu);
    if (!find_people())
        skip();
    for (int o = 0; o < SAC_ORIENTATION_COUNT; o++) {
        char name[32];
        snprintf(name, sizeof name, "mixed%d.txt", o);
        snprintf(mots[o], sizeof mots[o], "%s", in_folder(name));
        snprintf(clips[o], sizeof clips[o], "%s", phone_clip((enum sac_orientation)o));
        streams[o] = (struct sac_stream_params){.input = clips[o], .mot_out = mots[o]};
    }
    struct sac_pipeline_params params = params_of("cuda");
    params.streams = streams;
    params.stream_count = SAC_ORIENTATION_COUNT;
    run(&params);
    for (int o = 0; o < SAC_ORIENTATION_COUNT; o++) {
        struct sac_mot_file want = tracks_of(clips[o], "cpu", SAC_ROTATE_AUTO), got = {0};
        assert_sac_ok(sac_mot_read(test_context(), mots[o], &got));
        expect_agreement(&want, &got, 0.95, sac_orientation_name((enum sac_orientation)o));
        sac_mot_finish(&want);
        sac_mot_finish(&got);
    }
}

/* What is drawn on is upright, and nobody turns it again. */
static void check_annotated(const char *device)
{
    const char                *phone = phone_clip(SAC_TURN_270), *out = in_folder("annotated.mp4");
    struct sac_pipeline_params params = params_of(device);
    struct sac_source_info     before, after;
    sac_source                *src = NULL;
    params.input = phone;
    params.video_out = out;
    run(&params);
    assert_sac_ok(sac_source_open(cpu, phone, NULL, &src));
    sac_source_describe(src, &before);
    sac_source_close(&src);
    assert_sac_ok(sac_source_open(cpu, out, NULL, &src));
    sac_source_describe(src, &after);
    sac_source_close(&src);
    assert_int_equal(after.width, before.width);
    assert_int_equal(after.height, before.height);
    assert_true(before.width > before.height && before.rotation == 270 && after.rotation == 0);
}

static void the_annotated_video_is_upright(void **state)
{
    (void)state;
    if (!find_people())
        skip();
    check_annotated("cpu");
}

static void the_gpus_is_too(void **state)
{
    (void)state;
    sac_device *gpu = gpu_open(NULL);
    sac_device_unref(&gpu);
    if (!find_people())
        skip();
    check_annotated("cuda");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tracks_are_those_of_upright_pictures),
        cmocka_unit_test(the_annotated_video_is_upright),
        cmocka_unit_test(the_gpu_turns_without_a_copy),
        cmocka_unit_test(the_gpu_mixes_them),
        cmocka_unit_test(the_gpus_is_too),
    };
    return cmocka_run_group_tests_name("pipeline/rotate", tests, set_up, tear_down);
}
