/* SPDX-License-Identifier: Apache-2.0 */
/* Video decoded on a GPU: every frame equals the CPU's to the last bit where the codec defines that, and what the
 * GPU refuses, breaks off or holds too long ends in a sentence. The clips are those of packaging/clips. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <saccade/source.h>

#include "tests/gpu.h"
#include "tests/media/clip.h"

static sac_device *cpu, *gpu;

static int open_devices(void **state)
{
    (void)state;
    if (sac_device_open(test_context(), "cpu", NULL, &cpu) != SAC_OK)
        return -1;
    sac_device_open(test_context(), "cuda", NULL, &gpu); /* each test says what is missing */
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    sac_device_unref(&gpu);
    sac_device_unref(&cpu);
    scratch_remove();
    return 0;
}

/* Skips the test, or fails it, where there is no GPU. */
static void need_gpu(void)
{
    if (!gpu)
        gpu = gpu_open(NULL);
}

static const char *last_error(void)
{
    static char why[512];
    sac_context_last_error(test_context(), why, sizeof why);
    return why;
}

/* ---- comparing ---- */

static struct sac_source_params decode_with(enum sac_decode decode)
{
    struct sac_source_params params = sac_source_params_default();
    params.decode = decode;
    return params;
}

/* A frame of the GPU's in host memory. */
static sac_frame *downloaded(const sac_frame *frame)
{
    sac_frame *host = NULL;
    assert_sac_ok(sac_frame_create(cpu, frame, &host));
    assert_sac_ok(sac_frame_copy(frame, host));
    return host;
}

/* Sample of a frame's channel: R, G or B, else Y and the chroma of NV12, P010 or I420. */
static int sample(const sac_frame *f, int c, int x, int y)
{
    if (f->format == SAC_PIXEL_RGB24)
        return f->plane[0][(size_t)y * f->pitch_bytes[0] + (size_t)(3 * x + c)];
    int            plane = f->format == SAC_PIXEL_I420 ? c : c > 0;
    int            at = f->format == SAC_PIXEL_I420 || c == 0 ? x : 2 * x + (c - 1);
    const uint8_t *row = f->plane[plane] + (size_t)y * f->pitch_bytes[plane];
    return f->format == SAC_PIXEL_P010 ? ((const uint16_t *)(const void *)row)[at] : row[at];
}

struct difference {
    int  greatest;
    char where[160];
};

static void compare(const sac_frame *ours, const sac_frame *want, int frame, struct difference *diff)
{
    assert_int_equal(ours->width, want->width);
    assert_int_equal(ours->height, want->height);
    const bool halves = want->format != SAC_PIXEL_RGB24;
    for (int c = 0; c < 3; c++)
        for (int y = 0; y < (c && halves ? (want->height + 1) / 2 : want->height); y++)
            for (int x = 0; x < (c && halves ? (want->width + 1) / 2 : want->width); x++) {
                int a = sample(ours, c, x, y), b = sample(want, c, x, y);
                if (abs(a - b) <= diff->greatest)
                    continue;
                diff->greatest = abs(a - b);
                snprintf(diff->where, sizeof diff->where, "frame %d, channel %d, %d,%d of %dx%d: %d instead of %d",
                         frame, c, x, y, want->width, want->height, a, b);
            }
}

struct both {
    sac_result              opened, end, cpu_end;
    int                     frames, cpu_frames;
    struct difference       diff;
    struct sac_source_info  info;
    struct sac_source_stats stats;
    char                    why[512];
};

/* Read a clip on both devices side by side. */
static struct both read_both(const char *path, const struct sac_source_params *params)
{
    struct both r = {0};
    sac_source *on_gpu = NULL, *on_cpu = NULL;
    r.opened = r.end = sac_source_open(gpu, path, params, &on_gpu);
    snprintf(r.why, sizeof r.why, "%s", r.opened == SAC_OK ? "" : last_error());
    if (r.opened != SAC_OK)
        return r;
    assert_sac_ok(sac_source_open(cpu, path, NULL, &on_cpu));
    sac_source_describe(on_gpu, &r.info);
    while (r.end == SAC_OK || r.cpu_end == SAC_OK) {
        sac_frame *a = NULL, *b = NULL;
        if (r.end == SAC_OK && (r.end = sac_source_read_wait(on_gpu, &a)) != SAC_OK && r.end != SAC_EOS)
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

/* A clip of packaging/clips; NULL where they are not. */
static const char *clip_path(const char *name)
{
    static char path[256];
    static const char *const folders[] = {"clips", "share/saccade/clips", "../share/saccade/clips"};
    for (size_t i = 0; i < SAC_COUNT(folders); i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        if (access(path, R_OK) == 0)
            return path;
    }
    fail_msg("no clip '%s'; packaging/clips makes it", name);
    return NULL;
}

/* ---- tests ---- */

struct exact {
    const char *name;
    int         tolerance; /* of samples; 0: the codec defines every bit */
    bool        may_be_refused; /* by some cards or by some FFmpeg */
};

static int check_clip(const struct exact *clip)
{
    struct sac_source_params params = decode_with(SAC_DECODE_GPU);
    struct both              r = read_both(clip_path(clip->name), &params);
    if (r.opened == SAC_ERR_UNSUPPORTED && clip->may_be_refused) {
        print_message("%s: refused: %s\n", clip->name, r.why);
        return 0;
    }
    bool good = r.opened == SAC_OK && r.end == SAC_EOS && r.frames == r.cpu_frames && r.frames > 0 &&
                r.diff.greatest <= clip->tolerance && !strncmp(r.info.decoder, "nvdec", 5);
    print_message("%s: %s: %s, %d frames of %d, greatest difference %d%s%s, %d surfaces of %.1f MB%s%s\n", clip->name,
                  good ? "good" : "BAD", r.info.decoder, r.frames, r.cpu_frames, r.diff.greatest,
                  r.diff.greatest ? ": " : "", r.diff.where, r.info.surfaces,
                  (double)r.info.surface_bytes / SAC_MAX(r.info.surfaces, 1) * 1e-6, r.why[0] ? ": " : "", r.why);
    return !good;
}

static void decodes_as_the_cpu_does(void **state)
{
    (void)state;
    need_gpu();
    static const struct exact clips[] = {
        {"people_h264.mp4", 0, false},     {"people_hevc.mp4", 0, false}, {"people_hevc10.mkv", 0, false},
        {"people_vp9.webm", 0, false},     {"people_av1.mkv", 0, true},   {"people_mpeg2.ts", 8, false},
        {"cropped_h264.mp4", 0, false},    {"odd_vp9.webm", 0, false},    {"odd_vp8.webm", 0, false},
        {"people_mpeg4.avi", 16, true},    {"people_mjpeg.avi", 8, true},   {"interlaced_h264.mp4", 0, false}, {"sizes.h264", 0, false},
    };
    int bad = 0;
    for (size_t i = 0; i < SAC_COUNT(clips); i++)
        bad += check_clip(&clips[i]);
    assert_int_equal(bad, 0);
}

static void counts_a_change_of_size(void **state)
{
    (void)state;
    need_gpu();
    struct both r = read_both(clip_path("sizes.h264"), NULL);
    assert_int_equal(r.end, SAC_EOS);
    assert_int_equal(r.frames, 30);
    assert_int_equal(r.stats.size_changes, 2);
}

/* Without leave it is a sentence, with it the CPU's frames. */
static int check_refused(const char *name)
{
    struct sac_source_params on_gpu = decode_with(SAC_DECODE_DEFAULT), automatic = decode_with(SAC_DECODE_AUTO);
    struct both              r = read_both(clip_path(name), &on_gpu);
    if (r.opened == SAC_OK) {
        print_message("%s: this card decodes it, %d frames of %d, greatest difference %d\n", name, r.frames,
                      r.cpu_frames, r.diff.greatest);
        return r.frames != r.cpu_frames;
    }
    struct both a = read_both(clip_path(name), &automatic);
    bool good = r.opened == SAC_ERR_UNSUPPORTED && strstr(r.why, "NVDEC") && strstr(r.why, "--decode auto") &&
                a.opened == SAC_OK && a.end == SAC_EOS && a.frames == a.cpu_frames && a.diff.greatest == 0 &&
                a.info.decoder_note[0] && strncmp(a.info.decoder, "nvdec", 5) != 0 && a.info.surfaces == 0;
    print_message("%s: %s: %s\n    auto: %s, %d frames of %d, greatest difference %d %s; note: %s\n", name,
                  good ? "good" : "BAD", r.why, a.info.decoder, a.frames, a.cpu_frames, a.diff.greatest, a.diff.where,
                  a.info.decoder_note);
    return !good;
}

static void what_the_gpu_refuses_is_said(void **state)
{
    (void)state;
    need_gpu();
    int bad = check_refused("refused_422_h264.mp4") + check_refused("refused_hi10_h264.mp4") +
              check_refused("refused_444_hevc.mkv") + check_refused("refused_wide_h264.mp4");
    assert_int_equal(bad, 0);
}

/* The second half of the stream is one that the GPU refuses. */
static void a_refusal_midway_keeps_what_came_before(void **state)
{
    (void)state;
    need_gpu();
    struct sac_source_params automatic = decode_with(SAC_DECODE_AUTO);
    struct both              r = read_both(clip_path("refused_midway.h264"), NULL);
    assert_int_equal(r.end, SAC_ERR_UNSUPPORTED);
    assert_in_range(r.frames, 1, 10);
    assert_non_null(strstr(r.why, "--decode auto"));
    r = read_both(clip_path("refused_midway.h264"), &automatic);
    print_message("auto: %d frames of %d, %s\n", r.frames, r.cpu_frames, r.why);
    assert_int_equal(r.end, SAC_EOS);
    assert_int_equal(r.frames, 20);
}

static void broken_files_end_as_on_the_cpu(void **state)
{
    (void)state;
    need_gpu();
    size_t      size;
    uint8_t    *bytes = file_load(clip_path("people_mpeg2.ts"), &size);
    const char *cut = scratch("cut.ts"), *torn = scratch("torn.mp4");
    file_save(cut, bytes, size * 6 / 10);
    free(bytes);
    struct both r = read_both(cut, NULL);
    print_message("cut off: %d frames of %d, %s\n", r.frames, r.cpu_frames, r.why);
    assert_int_equal(r.end, r.cpu_end);
    assert_in_range(r.frames, r.cpu_frames - 2, r.cpu_frames + 1);
    bytes = file_load(clip_path("people_h264.mp4"), &size);
    for (size_t i = size / 3; i < size / 2; i += 97) /* pictures in the middle; the index lies in front */
        bytes[i] ^= 0x5a;
    file_save(torn, bytes, size);
    free(bytes);
    r = read_both(torn, NULL);
    print_message("torn: %d frames of %d, %d damaged, %s\n", r.frames, r.cpu_frames, (int)r.stats.corrupt, r.why);
    assert_int_equal(r.end, SAC_EOS);
    assert_in_range(r.frames, 10, 30);
}

/* ---- memory ---- */

/* Free memory of the GPU, by the driver's own count. */
static uint64_t free_vram(void)
{
    uint64_t left = 0, total = 0;
    assert_sac_ok(gpu->ops->memory_info(gpu, &left, &total));
    return left;
}

static void read_some(const char *path, const struct sac_source_params *params, int frames)
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

static long resident_kb(void)
{
    long  pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* SACCADE_CYCLES: how often, where there is time for more. What leaks does so every time; other processes on
 * the card come and go, so the best of some rounds counts. */
static void opening_and_closing_leaves_memory_flat(void **state)
{
    (void)state;
    need_gpu();
    enum { ROUNDS = 4 };
    const char *path = clip_path("people_h264.mp4"), *wanted = getenv("SACCADE_CYCLES");
    const int   cycles = SAC_MAX((wanted ? atoi(wanted) : 40) / ROUNDS, 1);
    double      lost = 1e9;
    for (int i = 0; i < 10; i++)
        read_some(path, NULL, 3);
    const long    resident = resident_kb();
    const int64_t begun = sac_time_ns();
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t before = free_vram();
        for (int i = 0; i < cycles; i++)
            read_some(path, NULL, 3);
        lost = SAC_MIN(lost, ((double)before - (double)free_vram()) * 1e-6);
    }
    const long grown = resident_kb() - resident;
    print_message("%d times opened, %.0f ms each: %.1f MB of the GPU's memory less in %d of them, %.1f MB of the "
                  "host's more in all\n",
                  ROUNDS * cycles, (double)(sac_time_ns() - begun) * 1e-6 / (ROUNDS * cycles), lost, cycles,
                  (double)grown * 1e-3);
    assert_true(lost < 4);
    assert_true(grown < 8192);
}

/* What one more stream takes, reported and by the driver's count. */
static void measure_surfaces(const char *path, int surfaces)
{
    struct sac_source_params params = sac_source_params_default();
    struct sac_source_info   info;
    sac_source              *other = NULL, *src = NULL;
    params.prefetch = 0;
    params.surfaces = surfaces;
    assert_sac_ok(sac_source_open(gpu, path, &params, &other)); /* the first has costs of its own */
    uint64_t before = free_vram();
    assert_sac_ok(sac_source_open(gpu, path, &params, &src));
    uint64_t after = free_vram();
    sac_source_describe(src, &info);
    print_message("%s %dx%d, %d lent out: %d surfaces, %.1f MB reported, %.1f MB taken\n", info.codec, info.width,
                  info.height, surfaces, info.surfaces, (double)info.surface_bytes * 1e-6,
                  ((double)before - (double)after) * 1e-6);
    assert_true(info.surfaces >= surfaces && info.surfaces <= 32);
    assert_true(info.surface_bytes >= (uint64_t)info.width * (uint64_t)info.height * 3 / 2 * (uint64_t)info.surfaces);
    sac_source_close(&src);
    sac_source_close(&other);
}

static void reports_what_its_surfaces_take(void **state)
{
    (void)state;
    need_gpu();
    static const char *const large[] = {"h264_1080p.mp4", "hevc_1080p.mp4", "hevc_2160p.mp4"};
    const char              *shared = getenv("SACCADE_SHARED");
    for (int surfaces = 4; surfaces <= 12; surfaces += 4)
        measure_surfaces(clip_path("people_h264.mp4"), surfaces);
    for (size_t i = 0; i < 2 * SAC_COUNT(large); i++) { /* those of scripts/gpu-clips, where they are */
        char path[512];
        snprintf(path, sizeof path, "%s/data/clips/%s", shared ? shared : "", large[i / 2]);
        if (access(path, R_OK) == 0)
            measure_surfaces(path, i % 2 ? 8 : 4);
    }
}

static void more_than_the_budget_is_refused(void **state)
{
    (void)state;
    need_gpu();
    struct sac_device_params small = sac_device_params_default();
    struct sac_pool_stats    pool;
    sac_device              *usual = gpu;
    sac_source              *one = NULL, *other = NULL;
    sac_frame               *frame = NULL;
    struct sac_source_params params = sac_source_params_default();
    params.prefetch = 0;
    params.surfaces = 4;
    small.memory_limit_bytes = 34 << 20; /* one stream of 768x576, not two */
    gpu = gpu_open(&small);
    assert_sac_ok(sac_source_open(gpu, clip_path("people_h264.mp4"), &params, &one));
    sac_device_pool_stats(gpu, &pool);
    assert_true(pool.bytes_live > 8 << 20);
    params.decode = SAC_DECODE_AUTO; /* memory is no reason for the CPU */
    assert_sac_error(sac_source_open(gpu, clip_path("people_h264.mp4"), &params, &other), SAC_ERR_LIMIT);
    print_message("%s\n", last_error());
    assert_non_null(strstr(last_error(), "NVDEC surfaces of"));
    for (int i = 0; i < 30; i++) { /* the one that was there first goes on */
        assert_sac_ok(sac_source_read_wait(one, &frame));
        sac_frame_unref(&frame);
    }
    sac_source_close(&one);
    sac_device_pool_stats(gpu, &pool);
    assert_true(pool.bytes_live < 1 << 20);
    sac_device_unref(&gpu);
    gpu = usual;
}

/* ---- frames that are held ---- */

struct holder {
    sac_source *src;
    sac_frame  *frame[4];
    sac_result  res;
    sac_frame  *fifth;
    atomic_int  done;
};

static void *read_fifth(void *arg)
{
    struct holder *h = arg;
    h->res = sac_source_read_wait(h->src, &h->fifth);
    atomic_store(&h->done, 1);
    return NULL;
}

static void waits_when_all_surfaces_are_held(void **state)
{
    (void)state;
    need_gpu();
    struct sac_source_params params = sac_source_params_default();
    struct holder            h = {0};
    pthread_t                thread;
    params.prefetch = 0;
    params.surfaces = 4;
    assert_sac_ok(sac_source_open(gpu, clip_path("people_h264.mp4"), &params, &h.src));
    for (int i = 0; i < 4; i++)
        assert_sac_ok(sac_source_read_wait(h.src, &h.frame[i]));
    sac_frame *first = downloaded(h.frame[0]);
    assert_int_equal(pthread_create(&thread, NULL, read_fifth, &h), 0);
    usleep(200 * 1000);
    assert_int_equal(atomic_load(&h.done), 0);
    sac_frame_unref(&h.frame[3]);
    pthread_join(thread, NULL);
    assert_int_equal(h.res, SAC_OK);
    sac_frame_unref(&h.fifth);
    for (int i = 0; i < 10; i++) { /* what is held stays as it is */
        assert_sac_ok(sac_source_read_wait(h.src, &h.fifth));
        sac_frame_unref(&h.fifth);
    }
    struct difference diff = {0};
    sac_frame        *again = downloaded(h.frame[0]);
    compare(again, first, 0, &diff);
    assert_int_equal(diff.greatest, 0);
    sac_frame_unref(&again);
    sac_source_close(&h.src); /* frames outlive it */
    again = downloaded(h.frame[1]);
    sac_frame_unref(&again);
    sac_frame_unref(&first);
    for (int i = 0; i < 3; i++)
        sac_frame_unref(&h.frame[i]);
}

static void cancelling_ends_a_wait_for_surfaces(void **state)
{
    (void)state;
    need_gpu();
    struct sac_source_params params = sac_source_params_default();
    struct holder            h = {0};
    pthread_t                thread;
    params.prefetch = 0;
    params.surfaces = 3;
    assert_sac_ok(sac_source_open(gpu, clip_path("people_h264.mp4"), &params, &h.src));
    for (int i = 0; i < 3; i++)
        assert_sac_ok(sac_source_read_wait(h.src, &h.frame[i]));
    assert_int_equal(pthread_create(&thread, NULL, read_fifth, &h), 0);
    usleep(50 * 1000);
    sac_source_cancel(h.src);
    pthread_join(thread, NULL);
    assert_int_equal(h.res, SAC_ERR_CANCELLED);
    for (int i = 0; i < 3; i++)
        sac_frame_unref(&h.frame[i]);
    sac_source_close(&h.src);
}

/* As few surfaces as there can be, all of them held: no picture finds none. */
static void a_small_pool_loses_nothing(void **state)
{
    (void)state;
    need_gpu();
    static const char *const clips[] = {"people_h264.mp4", "people_hevc.mp4",      "people_vp9.webm",
                                        "people_mpeg2.ts", "interlaced_h264.mp4", "sizes.h264"};
    struct sac_source_params params = sac_source_params_default();
    int                      bad = 0;
    params.prefetch = 0;
    params.surfaces = 3;
    for (size_t i = 0; i < SAC_COUNT(clips); i++) {
        struct sac_source_stats stats;
        sac_source             *src = NULL;
        sac_frame              *held[3] = {NULL};
        int                     frames = 0, want = i < 4 ? 30 : i == 4 ? 10 : 30;
        assert_sac_ok(sac_source_open(gpu, clip_path(clips[i]), &params, &src));
        for (;; frames++) {
            sac_frame_unref(&held[frames % 3]);
            if (sac_source_read_wait(src, &held[frames % 3]) != SAC_OK)
                break;
        }
        sac_source_get_stats(src, &stats);
        if (frames != want || stats.corrupt) {
            print_message("%s: %d frames of %d, %d lost\n", clips[i], frames, want, (int)stats.corrupt);
            bad++;
        }
        for (int h = 0; h < 3; h++)
            sac_frame_unref(&held[h]);
        sac_source_close(&src);
    }
    assert_int_equal(bad, 0);
}

static void *read_whole(void *arg)
{
    const char *path = arg;
    sac_source *src = NULL;
    sac_frame  *frame = NULL;
    intptr_t    frames = 0;
    if (sac_source_open(gpu, path, NULL, &src) != SAC_OK)
        return NULL;
    while (sac_source_read_wait(src, &frame) == SAC_OK) {
        frames++;
        sac_frame_unref(&frame);
    }
    sac_source_close(&src);
    return (void *)frames;
}

static void many_streams_at_once(void **state)
{
    (void)state;
    need_gpu();
    enum { STREAMS = 16 };
    pthread_t thread[STREAMS];
    char      path[256];
    snprintf(path, sizeof path, "%s", clip_path("people_hevc.mp4"));
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_whole, path), 0);
    for (int i = 0; i < STREAMS; i++) {
        void *frames = NULL;
        pthread_join(thread[i], &frames);
        assert_int_equal((intptr_t)frames, 30);
    }
}

/* ---- frames that cross ---- */

static struct sac_ledger_entry crossed(const struct sac_ledger *before, enum sac_copy_reason reason)
{
    struct sac_ledger now;
    sac_device_ledger(gpu, &now);
    return (struct sac_ledger_entry){now.reason[reason].calls - before->reason[reason].calls,
                                     now.reason[reason].bytes - before->reason[reason].bytes};
}

static void frames_of_the_cpu_are_uploaded(void **state)
{
    (void)state;
    need_gpu();
    struct sac_source_params params = decode_with(SAC_DECODE_CPU);
    struct sac_ledger        before;
    static const char *const clips[] = {"people_h264.mp4", "people_hevc10.mkv", "odd_vp9.webm", "sizes.h264",
                                        "refused_422_h264.mp4"};
    for (size_t i = 0; i < SAC_COUNT(clips); i++) {
        sac_device_ledger(gpu, &before);
        struct both r = read_both(clip_path(clips[i]), &params);
        if (r.diff.greatest || r.end != SAC_EOS)
            fail_msg("%s: %s%s", clips[i], r.diff.where, r.why);
        assert_int_equal(r.frames, r.cpu_frames);
        assert_int_equal(crossed(&before, SAC_COPY_FRAME_UPLOAD).calls, r.frames);
        assert_true(r.info.decoder_note[0] != '\0');
    }
}

static void images_are_uploaded(void **state)
{
    (void)state;
    need_gpu();
    for (int i = 0; i < 6; i++)
        clip_write(scratch("img%d.png", i), &(struct clip){.frames = 1, .first = i, .format = "image2pipe",
                                                           .codec = "png", .pixels = AV_PIX_FMT_RGB24});
    struct sac_source_params on_gpu = decode_with(SAC_DECODE_GPU);
    struct both              r = read_both(scratch("img%%d.png"), NULL);
    assert_int_equal(r.end, SAC_EOS);
    assert_int_equal(r.frames, 6);
    r = read_both(scratch("img%%d.png"), &on_gpu);
    assert_int_equal(r.opened, SAC_ERR_UNSUPPORTED);
    assert_non_null(strstr(r.why, "png"));
}

static void a_round_trip_is_counted_both_ways(void **state)
{
    (void)state;
    need_gpu();
    struct sac_source_params params = decode_with(SAC_DECODE_GPU);
    struct sac_ledger        before;
    const uint64_t           bytes = 768 * 576 * 3 / 2;
    params.round_trip = 1;
    sac_device_ledger(gpu, &before);
    read_some(clip_path("people_h264.mp4"), &params, 30);
    assert_int_equal(crossed(&before, SAC_COPY_FRAME_DOWNLOAD).bytes, 30 * bytes);
    assert_int_equal(crossed(&before, SAC_COPY_FRAME_UPLOAD).bytes, 30 * bytes);
    struct both r = read_both(clip_path("people_h264.mp4"), &params);
    assert_int_equal(r.frames, r.cpu_frames);
    if (r.diff.greatest)
        fail_msg("%s", r.diff.where);
}

static void strict_mode_lets_the_gpus_own_frames_alone(void **state)
{
    (void)state;
    need_gpu();
    struct sac_device_params strict = sac_device_params_default();
    struct sac_source_params params = decode_with(SAC_DECODE_GPU), on_cpu = decode_with(SAC_DECODE_CPU);
    sac_device              *usual = gpu;
    sac_source              *src = NULL;
    sac_frame               *frame = NULL;
    strict.zero_copy_strict = 1;
    gpu = gpu_open(&strict);
    read_some(clip_path("people_h264.mp4"), &params, 30);
    struct sac_ledger ledger;
    sac_device_ledger(gpu, &ledger);
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++)
        assert_int_equal(ledger.reason[i].bytes, 0);
    params.round_trip = 1;
    assert_sac_error(sac_source_open(gpu, clip_path("people_h264.mp4"), &params, &src), SAC_ERR_LIMIT);
    assert_non_null(strstr(last_error(), "--zero-copy off"));
    on_cpu.prefetch = 0;
    sac_result res = sac_source_open(gpu, clip_path("people_h264.mp4"), &on_cpu, &src);
    if (res == SAC_OK)
        res = sac_source_read_wait(src, &frame);
    assert_int_equal(res, SAC_ERR_LIMIT);
    assert_non_null(strstr(last_error(), "--decode gpu"));
    sac_source_close(&src);
    sac_device_unref(&gpu);
    gpu = usual;
}

/* With an argument: the tests of that name alone. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_as_the_cpu_does),
        cmocka_unit_test(counts_a_change_of_size),
        cmocka_unit_test(what_the_gpu_refuses_is_said),
        cmocka_unit_test(a_refusal_midway_keeps_what_came_before),
        cmocka_unit_test(broken_files_end_as_on_the_cpu),
        cmocka_unit_test(waits_when_all_surfaces_are_held),
        cmocka_unit_test(a_small_pool_loses_nothing),
        cmocka_unit_test(cancelling_ends_a_wait_for_surfaces),
        cmocka_unit_test(many_streams_at_once),
        cmocka_unit_test(opening_and_closing_leaves_memory_flat),
        cmocka_unit_test(reports_what_its_surfaces_take),
        cmocka_unit_test(more_than_the_budget_is_refused),
        cmocka_unit_test(frames_of_the_cpu_are_uploaded),
        cmocka_unit_test(images_are_uploaded),
        cmocka_unit_test(a_round_trip_is_counted_both_ways),
        cmocka_unit_test(strict_mode_lets_the_gpus_own_frames_alone),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
