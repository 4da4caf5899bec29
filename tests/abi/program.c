/* SPDX-License-Identifier: Apache-2.0 */
/* A program that tests/abi/test_abi.py builds with the recorded headers, with today's, and with
 * those of a later version (LATER), and runs with today's library: all must print the same.
 *
 * usage: program DETECTIONS OUT [later]      with "later" it sets fields that the library lacks */
#include <stdio.h>
#include <string.h>
#include <saccade/saccade.h>

static int fail(sac_context *ctx, const char *what, sac_result res)
{
    char why[512];
    sac_context_last_error(ctx, why, sizeof why);
    printf("%s: %s: %s\n", what, sac_result_name(res), why);
    return res == SAC_OK ? 0 : 1;
}

/* What the library fills is nothing that it may leave as it was: its fields for later versions are
 * 0 to programs of those versions. */
#define FILL(out) memset(&(out), 0xff, sizeof(out))
#ifdef LATER
#define EXPECT_NO_LATER(out) \
    ((out).later ? printf("%s.later is %llx\n", #out, (unsigned long long)(out).later) : 0)
#else
#define EXPECT_NO_LATER(out) ((void)(out))
#endif

/* Fields behind structs inside a struct, a struct in an array, figures that come back. */
static int track(sac_context *ctx, const char *detections, const char *out)
{
    struct sac_stream_params   streams[2] = {{.detections = detections, .mot_out = out},
                                             {.detections = detections}};
    struct sac_pipeline_params params = sac_pipeline_params_default();
    struct sac_pipeline_stats  stats;
    struct sac_stream_stats    stream;
    sac_pipeline              *pipe = NULL;
    params.job.device = "cpu";
    params.job.device_params.threads = 1;
    params.job.tracker = sac_tracker_params_default(SAC_TRACKER_OCSORT);
    params.streams = streams;
    params.stream_count = 2;
    params.fps = 25;
    sac_result res = sac_pipeline_create(ctx, &params, &pipe);
    if (res == SAC_OK)
        res = sac_pipeline_run(pipe);
    if (res != SAC_OK)
        return fail(ctx, "track", res);
    FILL(stats);
    FILL(stream);
    sac_pipeline_get_stats(pipe, &stats);
    sac_pipeline_get_stream_stats(pipe, 1, &stream);
    EXPECT_NO_LATER(stats);
    EXPECT_NO_LATER(stats.ledger);
    EXPECT_NO_LATER(stats.pool);
    EXPECT_NO_LATER(stats.gpu);
    EXPECT_NO_LATER(stats.queue[SAC_STAGE_MAX - 1]);
    EXPECT_NO_LATER(stats.shard[SAC_SHARDS_MAX - 1]);
    EXPECT_NO_LATER(stream);
    printf("%lld frames, %lld tracks, %s, %d stages, outputs %u\n", (long long)stats.frames,
           (long long)stats.tracks, stats.tracker, stats.stage_count, stats.outputs_whole);
    printf("stream %d: %lld frames, %s\n", stream.stream_id, (long long)stream.frames,
           sac_result_name(stream.status));
    sac_pipeline_destroy(&pipe);
    return 0;
}

static int score(sac_context *ctx, const char *truth, const char *tracks)
{
    struct sac_mot_file    gt = {0}, found = {0};
    struct sac_eval_params params = sac_eval_params_default();
    struct sac_eval_result result[2];
    params.preprocess = 0;
    sac_result res = sac_mot_read(ctx, truth, &gt);
    if (res == SAC_OK)
        res = sac_mot_read(ctx, tracks, &found);
    FILL(result);
    for (int i = 0; i < 2 && res == SAC_OK; i++)
        res = sac_eval_sequence(ctx, i ? "two" : "one", &gt, &found, &params, &result[i]);
    if (res != SAC_OK)
        return fail(ctx, "score", res);
    EXPECT_NO_LATER(result[0]);
    EXPECT_NO_LATER(result[1]);
    printf("%s %.6f, %s %.6f of %lld\n", result[0].name, result[0].hota, result[1].name,
           result[1].idf1, (long long)result[1].gt_dets);
    sac_mot_finish(&gt);
    sac_mot_finish(&found);
    return 0;
}

/* A struct of the program's as a frame, and a tensor made of it. */
static int preprocess(sac_context *ctx)
{
    uint8_t                   pixels[4 * 4 * 3];
    float                     numbers[3 * 2 * 2];
    struct sac_preprocess     pre = sac_preprocess_default();
    struct sac_device_params  params = sac_device_params_default();
    struct sac_tensor_desc    shape = {.dtype = SAC_F32, .rank = 4, .shape = {1, 3, 2, 2}};
    struct sac_preprocess_job job = {0};
    struct sac_pool_stats     pool;
    struct sac_ledger         ledger;
    sac_device               *dev = NULL;
    sac_frame                *frame = NULL;
    sac_tensor               *tensor = NULL;
    sac_frame desc = {.format = SAC_PIXEL_RGB24, .width = 4, .height = 4, .stream_id = 7};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 5);
    desc.plane[0] = pixels;
    desc.pitch_bytes[0] = sizeof pixels / 4;
    pre.width = pre.height = 2;
    sac_result res = sac_device_open(ctx, "cpu", &params, &dev);
    if (res == SAC_OK)
        res = sac_frame_wrap(dev, &desc, NULL, NULL, &frame);
    if (res == SAC_OK)
        res = sac_tensor_create(dev, &shape, "abi", &tensor);
    job.frame = frame;
    if (res == SAC_OK)
        res = sac_preprocess_run(dev, &pre, &job, 1, tensor);
    if (res == SAC_OK)
        res = sac_tensor_download(tensor, numbers);
    if (res != SAC_OK)
        return fail(ctx, "preprocess", res);
    FILL(pool);
    FILL(ledger);
    sac_device_pool_stats(dev, &pool);
    sac_device_ledger(dev, &ledger);
    EXPECT_NO_LATER(pool);
    EXPECT_NO_LATER(ledger);
    printf("frame of stream %d: %.4f %.4f, %llu buffers, %llu downloads\n", frame->stream_id,
           (double)numbers[0], (double)numbers[11], (unsigned long long)pool.allocations,
           (unsigned long long)ledger.reason[SAC_COPY_TENSOR_USER].calls);
    sac_tensor_unref(&tensor);
    sac_frame_unref(&frame);
    sac_device_unref(&dev);
    return 0;
}

#ifdef LATER
#define REFUSED(kind, call)                                   \
    do {                                                      \
        struct sac_##kind##_params params = kind##_default(); \
        params.later = 1;                                     \
        fail(ctx, #kind, call);                               \
    } while (0)
#define tracker_default()  sac_tracker_params_default(SAC_TRACKER_SORT)
#define pipeline_default() sac_pipeline_params_default()
#define session_default()  sac_session_params_default()
#define device_default()   sac_device_params_default()
#define context_default()  sac_context_params_default()
#define source_default()   sac_source_params_default()
#define sink_default()     sac_sink_params_default()
#define model_default()    sac_model_params_default()
#define detector_default() sac_detector_params_default()
#define embedder_default() sac_embedder_params_default()

/* In structs that are no parameters by themselves. */
static void refuse_inside(sac_context *ctx, sac_device *dev)
{
    struct sac_stream_params   streams[2] = {{.detections = "a"}, {.detections = "b", .later = 1}};
    struct sac_pipeline_params params = sac_pipeline_params_default();
    struct sac_preprocess      pre = sac_preprocess_default();
    struct sac_tensor_desc     shape = {.dtype = SAC_F32, .rank = 4, .shape = {1, 3, 2, 2}};
    sac_frame     desc = {.format = SAC_PIXEL_RGB24, .width = 4, .height = 4, .later = 1};
    sac_pipeline *pipe = NULL;
    sac_frame    *frame = NULL;
    sac_tensor   *tensor = NULL;
    fail(ctx, "frame", sac_frame_create(dev, &desc, &frame));
    pre.width = pre.height = 2;
    pre.later = 1;
    sac_tensor_create(dev, &shape, "abi", &tensor);
    fail(ctx, "preprocess", sac_preprocess_run(dev, &pre, NULL, 0, tensor));
    sac_tensor_unref(&tensor);
    params.streams = streams;
    params.stream_count = 2;
    fail(ctx, "stream", sac_pipeline_create(ctx, &params, &pipe));
}

static void set_later_fields(sac_context *ctx)
{
    sac_device   *dev = NULL;
    sac_context  *other = NULL;
    sac_tracker  *tracker = NULL;
    sac_pipeline *pipe = NULL;
    sac_session  *session = NULL;
    sac_source   *source = NULL;
    sac_sink     *sink = NULL;
    sac_model    *model = NULL;
    sac_detector *detector = NULL;
    sac_embedder *embedder = NULL;
    sac_device_open(ctx, "cpu", NULL, &dev);
    REFUSED(device, sac_device_open(ctx, "cpu", &params, &dev));
    REFUSED(tracker, sac_tracker_create(ctx, &params, &tracker));
    REFUSED(pipeline, sac_pipeline_create(ctx, &params, &pipe));
    REFUSED(session, sac_session_create(ctx, &params, &session));
    REFUSED(source, sac_source_open(dev, "none.mp4", &params, &source));
    REFUSED(sink, sac_sink_create(dev, "none.mp4", NULL, &params, &sink));
    REFUSED(model, sac_model_load_memory(dev, "", 0, "none", &params, &model));
    REFUSED(detector, sac_detector_create(dev, "none.onnx", &params, &detector));
    REFUSED(embedder, sac_embedder_create(dev, "none.onnx", &params, &embedder));
    REFUSED(context, sac_context_create(&params, &other));
    refuse_inside(ctx, dev);
    sac_device_unref(&dev);
}
#endif

int main(int argc, char **argv)
{
    struct sac_context_params params = sac_context_params_default();
    sac_context              *ctx = NULL;
    if (argc < 3 || sac_context_create(&params, &ctx) != SAC_OK)
        return 2;
    int bad = track(ctx, argv[1], argv[2]) || score(ctx, argv[1], argv[2]) || preprocess(ctx);
#ifdef LATER
    if (argc > 3)
        set_later_fields(ctx);
#endif
    sac_context_destroy(&ctx);
    return bad;
}
