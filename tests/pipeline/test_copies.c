/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen streams in strict mode, and the driver's own count of every memcpy beside our ledger:
 * between warm-up and end no frame and no tensor crosses or is copied, and what crosses is what the
 * ledger says, to the byte. The same of streams that are segmented; and with an output of those the
 * frames that are encoded cross, and nothing more.
 *
 * Both counts are read while the pipeline stands still. The ledger counts a copy when it is queued,
 * CUPTI when it is done, and CUPTI hands out a buffer of records only once all in it are complete:
 * read in the middle of work, a copy of long ago (a trial of kernels moves gigabytes) may be
 * counted late, or one of now not at all. */
#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>

#include <saccade/pipeline.h>

#include "tests/gpu.h"
#include "tests/pipeline/cupti.h"
#include "tests/pipeline/folder.h"

enum {
    STREAMS = 16,
    LARGE = 64 << 10, /* bytes: less than any frame, crop of one person or input of a network */
    PER_FRAME = 1000000 / 480, /* bytes: 1 MB/s at 16 x 30 frames/s */
    LOOK_MS = 50,
    STILL_LOOKS = 10, /* so often in turn nothing has changed: it stands still */
    LOOKS_MAX = 400
};

struct mark {
    struct cupti_counts cupti;
    struct sac_ledger   ledger;
    int64_t             frames;
};
static struct {
    sac_pipeline *pipe;
    int64_t       first, last, seen; /* frames at which the marks are set; of all streams */
    struct mark   from, to;
    bool          stood_still; /* at both */
} run;

/* The calls of on_frame take turns, queues and surfaces are bounded: who waits in one holds up
 * all. */
static void wait_until_still(struct sac_pipeline_stats *stats)
{
    int same = 0;
    for (int look = 0; look < LOOKS_MAX && same < STILL_LOOKS; look++) {
        struct sac_pipeline_stats before = *stats;
        usleep(LOOK_MS * 1000);
        sac_pipeline_get_stats(run.pipe, stats);
        bool still = look > 0 && stats->frames == before.frames &&
                     stats->source.frames == before.source.frames &&
                     memcmp(&stats->ledger, &before.ledger, sizeof before.ledger) == 0;
        same = still ? same + 1 : 0;
    }
    run.stood_still = run.stood_still && same == STILL_LOOKS;
}

static void set_mark(struct mark *mark)
{
    struct sac_pipeline_stats stats = {0};
    wait_until_still(&stats);
    mark->cupti = cupti_read();
    mark->ledger = stats.ledger;
    mark->frames = stats.frames;
}

static int on_frame(void *user, const sac_frame *frame, const struct sac_track *tracks, size_t n)
{
    (void)user, (void)frame, (void)tracks, (void)n;
    run.seen++; /* the calls take turns */
    if (run.seen == run.first)
        set_mark(&run.from);
    if (run.seen == run.last)
        set_mark(&run.to);
    return 0;
}

/* 1080p where the folder of a GPU's tests has it, else what packaging/clips makes. */
static const char *find_clip(int64_t *frames)
{
    static char path[1024];
    const char *shared = getenv("SACCADE_SHARED");
    *frames = 180;
    snprintf(path, sizeof path, "%s/data/clips/h264_1080p.mp4", shared ? shared : ".");
    if (access(path, R_OK) == 0)
        return path;
    *frames = 30;
    return access("clips/people_h264.mp4", R_OK) == 0 ? "clips/people_h264.mp4" : NULL;
}

/* segment: NULL: track; out: a video of the only stream, NULL: none, and strict mode. */
static void run_streams(const char *clip, int64_t frames, int streams,
                        const struct sac_segment_params *segment, const char *out)
{
    struct sac_stream_params   each[STREAMS] = {{0}};
    struct sac_pipeline_params params = sac_pipeline_params_default();
    for (int i = 0; i < streams; i++)
        each[i].input = clip;
    each[0].video_out = out;
    params.streams = each;
    params.stream_count = streams;
    params.job.device = "cuda";
    params.job.device_params.zero_copy_strict = !out;
    params.job.segment = segment;
    params.on_frame = on_frame;
    run.stood_still = true;
    run.seen = 0;
    run.first = frames * streams / 2;
    run.last = frames * streams * 15 / 16;
    assert_sac_ok(sac_pipeline_create(test_context(), &params, &run.pipe));
    sac_result res = sac_pipeline_run(run.pipe);
    char       why[512];
    sac_context_last_error(test_context(), why, sizeof why);
    sac_pipeline_destroy(&run.pipe);
    if (res != SAC_OK)
        fail_msg("%s", why);
}

static struct cupti_count between(enum cupti_way way)
{
    const struct cupti_count *a = &run.from.cupti.way[way], *b = &run.to.cupti.way[way];
    return (struct cupti_count){b->calls - a->calls, b->bytes - a->bytes, b->largest};
}

static uint64_t ledger_bytes(enum sac_copy_reason reason)
{
    return run.to.ledger.reason[reason].bytes - run.from.ledger.reason[reason].bytes;
}

/* Skips where there is no GPU, no clip or no CUPTI. */
static const char *need_all(int64_t *frames)
{
    static int  asked, counts;
    const char *clip = find_clip(frames);
    if (!asked++)
        counts = cupti_begin(); /* before the driver is opened */
    sac_device *dev = gpu_open(NULL);
    sac_device_unref(&dev);
    if (!clip || !counts) {
        print_message("skipped: %s\n", clip ? "no libcupti.so in SACCADE_CUDA_LIBS"
                                            : "no clip; packaging/clips makes it");
        skip();
    }
    return clip;
}

/* Between the marks; what both counts have is the same. */
static uint64_t crossed_as_counted(const char *clip, int streams)
{
    uint64_t crossed = 0, said = 0;
    print_message("%s, %d streams, %" PRId64 " frames\n", clip, streams,
                  run.to.frames - run.from.frames);
    for (int w = 0; w < CUPTI_WAYS; w++) {
        struct cupti_count c = between((enum cupti_way)w);
        print_message("  %-15s %8" PRIu64 " calls %12" PRIu64 " bytes, largest %" PRIu64 "\n",
                      cupti_way_names[w], c.calls, c.bytes, c.largest);
        crossed += w <= CUPTI_TO_HOST ? c.bytes : 0;
    }
    for (int r = 0; r < SAC_COPY_REASON_COUNT; r++)
        if (ledger_bytes((enum sac_copy_reason)r)) {
            print_message("  ledger: %s %" PRIu64 " bytes\n",
                          sac_copy_reason_name((enum sac_copy_reason)r),
                          ledger_bytes((enum sac_copy_reason)r));
            said += ledger_bytes((enum sac_copy_reason)r);
        }
    assert_true(run.stood_still);
    assert_int_equal(run.to.cupti.dropped, 0);
    if (crossed != said)
        fail_msg("CUPTI saw %" PRIu64 " bytes cross, the ledger says %" PRIu64, crossed, said);
    return crossed;
}

static void expect_no_frames(uint64_t crossed)
{
    const int64_t done = run.to.frames - run.from.frames;
    for (int w = 0; w < CUPTI_WAYS; w++)
        if (between((enum cupti_way)w).largest >= LARGE)
            fail_msg("a copy %s of %" PRIu64 " bytes", cupti_way_names[w],
                     between((enum cupti_way)w).largest);
    if (crossed > (uint64_t)done * PER_FRAME)
        fail_msg("%" PRIu64 " bytes crossed for %" PRId64
                 " frames; 1 MB/s at 16 x 30 frames/s are %d a frame",
                 crossed, done, PER_FRAME);
}

static void only_boxes_cross(void **state)
{
    (void)state;
    int64_t     frames;
    const char *clip = need_all(&frames);
    run_streams(clip, frames, STREAMS, NULL, NULL);
    expect_no_frames(crossed_as_counted(clip, STREAMS));
    assert_true(run.to.frames - run.from.frames > 30 * STREAMS / 4);
}

static void no_matte_crosses(void **state)
{
    (void)state;
    enum { SEGMENTED = 4 };
    const struct sac_segment_params segment = sac_segment_params_default();
    int64_t                         frames;
    const char                     *clip = need_all(&frames);
    run_streams(clip, frames, SEGMENTED, &segment, NULL);
    expect_no_frames(crossed_as_counted(clip, SEGMENTED));
    assert_true(run.to.frames - run.from.frames > 30 * SEGMENTED / 4);
}

/* One of 4:2:0 for each frame. */
static void composed_frames_alone_cross(void **state)
{
    (void)state;
    const struct sac_segment_params segment = sac_segment_params_default();
    int64_t                         frames;
    const char                     *clip = need_all(&frames);
    struct sac_source_info          info;
    sac_device                     *cpu = NULL;
    sac_source                     *src = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &cpu));
    assert_sac_ok(sac_source_open(cpu, clip, NULL, &src));
    sac_source_describe(src, &info);
    sac_source_close(&src);
    sac_device_unref(&cpu);
    run_streams(clip, frames, 1, &segment, in_folder("overlay.mp4"));
    crossed_as_counted(clip, 1);
    const uint64_t done = (uint64_t)(run.last - run.first); /* the marks stand before its output */
    assert_true(done > 10);
    assert_int_equal(ledger_bytes(SAC_COPY_OVERLAY),
                     done * (uint64_t)(info.width * info.height * 3 / 2));
    assert_int_equal(ledger_bytes(SAC_COPY_FRAME_CONVERT), 0);
    assert_int_equal(ledger_bytes(SAC_COPY_DRAW), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_boxes_cross),
        cmocka_unit_test(no_matte_crosses),
        cmocka_unit_test_setup_teardown(composed_frames_alone_cross, folder_create, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
