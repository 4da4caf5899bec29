/* SPDX-License-Identifier: Apache-2.0 */
/* Streams on a GPU that are cut off, refused, change their size or do not fit into its memory: each
 * ends with its own sentence, and the others are complete. Ready-made detections, so that no
 * network is needed; the clips are those of packaging/clips. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <saccade/pipeline.h>

#include "tests/clips.h"
#include "tests/gpu.h"
#include "tests/pipeline/folder.h"

enum { STREAMS_MAX = 6 };

static char detections[256], mots[STREAMS_MAX][256];

static int open_folder(void **state)
{
    if (folder_create(state) != 0)
        return -1;
    snprintf(detections, sizeof detections, "%s", in_folder("det.txt"));
    write_detections(detections, 30);
    for (int i = 0; i < STREAMS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d.mot", i);
        snprintf(mots[i], sizeof mots[i], "%s", in_folder(name));
    }
    return 0;
}

/* Skips where there is no GPU; no device stays open. */
static void need_gpu(void)
{
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
}

/* The first three fifths of a file. */
static const char *cut(const char *from)
{
    const char *to = in_folder("cut.ts");
    FILE       *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char        block[4096];
    assert_true(in && out);
    fseek(in, 0, SEEK_END);
    long left = ftell(in) / 5 * 3;
    rewind(in);
    for (size_t n;
         left > 0 && (n = fread(block, 1, (size_t)SAC_MIN(left, (long)sizeof block), in)) > 0;
         left -= (long)n)
        fwrite(block, 1, n, out);
    fclose(in);
    fclose(out);
    return to;
}

static struct sac_pipeline_params on_gpu(struct sac_stream_params *streams,
                                         const char *const *inputs, int n)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    for (int i = 0; i < n; i++)
        streams[i] = (struct sac_stream_params){
            .input = inputs[i], .detections = detections, .mot_out = mots[i]};
    params.job.device = "cuda";
    params.job.reid = NULL;
    params.streams = streams;
    params.stream_count = n;
    return params;
}

/* Runs it; the statistics of each stream. */
static sac_result run(const struct sac_pipeline_params *params, struct sac_stream_stats *stats)
{
    sac_pipeline *pipe = NULL;
    assert_sac_ok(sac_pipeline_create(test_context(), params, &pipe));
    sac_result res = sac_pipeline_run(pipe);
    for (int i = 0; i < params->stream_count; i++) {
        sac_pipeline_get_stream_stats(pipe, i, &stats[i]);
        print_message("%s: %s, %s, %d frames%s%s\n", stats[i].input,
                      sac_result_name(stats[i].status), stats[i].decoder, (int)stats[i].frames,
                      stats[i].why[0] ? ": " : "", stats[i].why);
    }
    sac_pipeline_destroy(&pipe);
    return res;
}

static void broken_streams_leave_the_others_whole(void **state)
{
    (void)state;
    need_gpu();
    char missing[256], cut_off[256];
    snprintf(missing, sizeof missing, "%s", in_folder("missing.mp4"));
    snprintf(cut_off, sizeof cut_off, "%s", cut(clip_path("people_mpeg2.ts")));
    const char *const inputs[] = {
        clip_path("people_h264.mp4"), clip_path("refused_422_h264.mp4"), cut_off,
        clip_path("sizes.h264"),      clip_path("people_hevc10.mkv"),    missing};
    struct sac_stream_params   streams[STREAMS_MAX];
    struct sac_stream_stats    stats[STREAMS_MAX];
    struct sac_pipeline_params params = on_gpu(streams, inputs, STREAMS_MAX);
    assert_int_not_equal(run(&params, stats), SAC_OK);
    for (int i = 0; i < STREAMS_MAX; i++) {
        const bool whole = i == 0 || i == 3 || i == 4;
        assert_int_equal(stats[i].status == SAC_OK && stats[i].frames == 30, whole);
    }
    assert_int_equal(stats[1].status, SAC_ERR_UNSUPPORTED);
    assert_non_null(strstr(stats[1].why, "--decode auto"));
    assert_true(stats[2].frames > 10);
    assert_int_equal(stats[5].status, SAC_ERR_IO);
    params.source.decode = SAC_DECODE_AUTO;
    run(&params, stats);
    assert_int_equal(stats[1].status, SAC_OK);
    assert_int_equal(stats[1].frames, 10);
    assert_true(stats[1].decoder_note[0] != '\0');
    assert_int_equal(stats[0].frames, 30);
}

static void more_streams_than_memory_are_refused(void **state)
{
    (void)state;
    need_gpu();
    const char *const          clip = clip_path("people_h264.mp4");
    const char *const          inputs[] = {clip, clip, clip, clip};
    struct sac_stream_params   streams[STREAMS_MAX];
    struct sac_stream_stats    stats[STREAMS_MAX];
    struct sac_pipeline_params params = on_gpu(streams, inputs, 4);
    int                        whole = 0, refused = 0;
    params.source.surfaces = 4;
    params.job.device_params.memory_limit_bytes = 64 << 20;
    run(&params, stats);
    for (int i = 0; i < 4; i++) {
        whole += stats[i].status == SAC_OK && stats[i].frames == 30;
        refused +=
            stats[i].status == SAC_ERR_LIMIT && strstr(stats[i].why, "NVDEC surfaces of") != NULL;
    }
    assert_true(whole >= 1 && refused >= 1);
    assert_int_equal(whole + refused, 4);
}

/* How many of the streams were refused. */
static int check_room(uint64_t limit_bytes)
{
    struct sac_stream_params streams[STREAMS_MAX];
    struct sac_stream_stats  stats[STREAMS_MAX];
    const char              *inputs[STREAMS_MAX];
    for (int i = 0; i < STREAMS_MAX; i++)
        inputs[i] = clip_path("people_h264.mp4");
    struct sac_pipeline_params params = on_gpu(streams, inputs, STREAMS_MAX);
    int                        whole = 0, refused = 0;
    for (int i = 0; i < STREAMS_MAX; i++)
        streams[i].detections = NULL;
    params.source.surfaces = 4;
    params.job.detector = "person_det_fast";
    params.job.reid = "none";
    params.job.inference_batch_max = params.job.detector_params.batch_max = 2;
    params.job.device_params.memory_limit_bytes = limit_bytes;
    setenv("SACCADE_CACHE", folder, 1); /* what is planned with so little memory is nobody's to keep
                                         */
    run(&params, stats);
    unsetenv("SACCADE_CACHE");
    for (int i = 0; i < STREAMS_MAX; i++) {
        whole += stats[i].status == SAC_OK && stats[i].frames == 30;
        refused += stats[i].status == SAC_ERR_LIMIT || stats[i].status == SAC_ERR_MEMORY;
    }
    assert_true(whole >= 1);
    assert_int_equal(whole + refused, STREAMS_MAX);
    for (int i = 0; i < STREAMS_MAX; i++) /* the newest made way for the others */
        assert_int_equal(stats[i].status == SAC_OK, i < whole);
    return refused;
}

/* The decoders come first and leave too little for the networks: streams give way until they
 * fit. */
static void networks_are_given_room(void **state)
{
    (void)state;
    need_gpu();
    assert_true(check_room(130 << 20) >= 1);
}

/* At each limit something else is what finds no memory: networks, waves, a tracker's camera or
 * looks. */
static void at_every_limit_the_newest_make_way(void **state)
{
    (void)state;
    need_gpu();
    for (int mb = 134; mb <= 158; mb += 6)
        check_room((uint64_t)mb << 20);
}

static void an_annotated_video_comes_down_once(void **state)
{
    (void)state;
    need_gpu();
    const char *const          input = clip_path("people_h264.mp4");
    struct sac_stream_params   stream;
    struct sac_pipeline_params params = on_gpu(&stream, &input, 1);
    struct sac_pipeline_stats  stats;
    sac_pipeline              *pipe = NULL;
    stream.video_out = in_folder("drawn.mp4");
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &pipe));
    assert_sac_ok(sac_pipeline_run(pipe));
    sac_pipeline_get_stats(pipe, &stats);
    sac_pipeline_destroy(&pipe);
    print_message("encoder %s: overlay-copy %d, overlay-download %.1f MB, frame-convert %d\n",
                  stats.encoder, (int)stats.ledger.reason[SAC_COPY_DRAW].calls,
                  (double)stats.ledger.reason[SAC_COPY_OVERLAY].bytes * 1e-6,
                  (int)stats.ledger.reason[SAC_COPY_FRAME_CONVERT].calls);
    assert_true(stats.outputs_whole & SAC_OUTPUT_VIDEO);
    assert_int_equal(stats.frames, 30);
    assert_true(stats.ledger.reason[SAC_COPY_DRAW].calls >= 20);
    if (!strstr(stats.encoder, "nvenc"))
        assert_int_equal(stats.ledger.reason[SAC_COPY_OVERLAY].bytes, 30 * 768 * 576 * 3 / 2);
    assert_int_equal(stats.ledger.reason[SAC_COPY_FRAME_DOWNLOAD].calls, 0);
    assert_int_equal(stats.ledger.reason[SAC_COPY_FRAME_UPLOAD].calls, 0);
    assert_int_equal(stats.pool.leaks, 0);
    params.job.device_params.zero_copy_strict = 1;
    assert_sac_error(sac_pipeline_create(test_context(), &params, &pipe), SAC_ERR_COPY);
    char why[512];
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "overlay-download"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_streams_leave_the_others_whole),
        cmocka_unit_test(more_streams_than_memory_are_refused),
        cmocka_unit_test(networks_are_given_room),
        cmocka_unit_test(at_every_limit_the_newest_make_way),
        cmocka_unit_test(an_annotated_video_comes_down_once),
    };
    return cmocka_run_group_tests(tests, open_folder, folder_remove);
}
