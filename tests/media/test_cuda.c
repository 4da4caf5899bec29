/* SPDX-License-Identifier: Apache-2.0 */
/* Video decoded on a GPU: every frame equals the CPU's to the last bit where the codec defines
 * that, streams that the GPU refuses and incomplete files give a sentence, and every copy is in the
 * ledger. */
#include "tests/display.h"
#include "tests/media/gpu_reading.h"

struct exact {
    const char *name;
    int         tolerance;      /* of samples; 0: the codec defines every bit */
    bool        may_be_refused; /* by some cards or by some FFmpeg */
};

static int check_clip(const struct exact *clip)
{
    struct sac_source_params params = decode_with(SAC_DECODE_GPU);
    struct both              r = read_both_within(clip->tolerance, clip_path(clip->name), &params);
    if (r.opened == SAC_ERR_UNSUPPORTED && clip->may_be_refused) {
        print_message("%s: refused: %s\n", clip->name, r.why);
        return 0;
    }
    bool good = r.opened == SAC_OK && r.end == SAC_EOS && r.frames == r.cpu_frames &&
                r.frames > 0 && r.diff.bad == 0 && !strncmp(r.info.decoder, "nvdec", 5);
    print_message("%s: %s: %s, %d frames of %d, %s, %d surfaces of %.1f MB%s%s\n", clip->name,
                  good ? "good" : "BAD", r.info.decoder, r.frames, r.cpu_frames,
                  difference_text(&r.diff), r.info.surfaces,
                  (double)r.info.surface_bytes / SAC_MAX(r.info.surfaces, 1) * 1e-6,
                  r.why[0] ? ": " : "", r.why);
    return !good;
}

static void decodes_as_the_cpu_does(void **state)
{
    (void)state;
    need_gpu();
    static const struct exact clips[] = {
        {"people_h264.mp4", 0, false},     {"people_hevc.mp4", 0, false},
        {"people_hevc10.mkv", 0, false},   {"people_vp9.webm", 0, false},
        {"people_av1.mkv", 0, true},       {"people_mpeg2.ts", 8, false},
        {"cropped_h264.mp4", 0, false},    {"odd_vp9.webm", 0, false},
        {"odd_vp8.webm", 0, false},        {"people_mpeg4.avi", 16, true},
        {"interlaced_h264.mp4", 0, false}, {"sizes.h264", 0, false},
    };
    int bad = 0;
    for (size_t i = 0; i < SAC_COUNT(clips); i++)
        bad += check_clip(&clips[i]);
    assert_int_equal(bad, 0);
}

static void expect_equal(const char *path, const struct sac_source_params *params, const char *what)
{
    const struct both r = read_both(path, params);
    print_message("%s, %s: %d frames of %d, %s\n", path, what, r.frames, r.cpu_frames,
                  difference_text(&r.diff));
    assert_int_equal(r.end, SAC_EOS);
    assert_true(r.frames > 0 && r.frames == r.cpu_frames);
    assert_int_equal(r.diff.greatest, 0);
}

/* The GPU hands them out as they are stored; brought to the host they are upright. */
static void frames_are_turned_as_on_the_cpu(void **state)
{
    (void)state;
    static const char *const names[] = {"people_h264.mp4", "people_hevc10.mkv", "odd_vp9.webm",
                                        "cropped_h264.mp4"};
    const char              *path = scratch("shown.mp4");
    struct sac_source_params ways[] = {decode_with(SAC_DECODE_GPU), decode_with(SAC_DECODE_CPU),
                                       decode_with(SAC_DECODE_GPU)};
    need_gpu();
    ways[2].round_trip = 1;
    for (size_t i = 0; i < SAC_COUNT(names); i++)
        for (int k = 0; k < 3; k++) {
            ways[0].rotate = (enum sac_rotate)(SAC_ROTATE_90 + k);
            expect_equal(clip_path(names[i]), &ways[0], "turned by the user");
        }
    for (int o = 1; o < SAC_ORIENTATION_COUNT; o++) {
        display_copy(clip_path("people_h264.mp4"), path, (enum sac_orientation)o);
        for (size_t i = 0; i < SAC_COUNT(ways); i++) {
            ways[i].rotate = SAC_ROTATE_AUTO;
            expect_equal(path, &ways[i], sac_orientation_name((enum sac_orientation)o));
        }
    }
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

/* Where the CPU may not take over, the run fails with a sentence; where it may, it decodes the
 * frames. */
static int check_refused(const char *name)
{
    struct sac_source_params on_gpu = decode_with(SAC_DECODE_DEFAULT),
                             automatic = decode_with(SAC_DECODE_AUTO);
    struct both r = read_both(clip_path(name), &on_gpu);
    if (r.opened == SAC_OK) {
        print_message("%s: this card decodes it, %d frames of %d, %s\n", name, r.frames,
                      r.cpu_frames, difference_text(&r.diff));
        return r.frames != r.cpu_frames;
    }
    struct both a = read_both(clip_path(name), &automatic);
    bool        good = r.opened == SAC_ERR_UNSUPPORTED && strstr(r.why, "NVDEC") &&
                strstr(r.why, "--decode auto") && a.opened == SAC_OK && a.end == SAC_EOS &&
                a.frames == a.cpu_frames && a.diff.greatest == 0 && a.info.decoder_note[0] &&
                strncmp(a.info.decoder, "nvdec", 5) != 0 && a.info.surfaces == 0;
    print_message("%s: %s: %s\n    auto: %s, %d frames of %d, %s; note: %s\n", name,
                  good ? "good" : "BAD", r.why, a.info.decoder, a.frames, a.cpu_frames,
                  difference_text(&a.diff), a.info.decoder_note);
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

static void motion_jpeg_is_left_to_the_cpu(void **state)
{
    (void)state;
    need_gpu();
    struct sac_source_params on_gpu = decode_with(SAC_DECODE_GPU),
                             automatic = decode_with(SAC_DECODE_AUTO);
    struct both r = read_both(clip_path("people_mjpeg.avi"), &on_gpu);
    assert_int_equal(r.opened, SAC_ERR_UNSUPPORTED);
    assert_non_null(strstr(r.why, "NVDEC does not decode mjpeg; --decode auto"));
    expect_equal(clip_path("people_mjpeg.avi"), &automatic, "decoded on the CPU");
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
    for (size_t i = size / 3; i < size / 2; i += 97) /* pictures in the middle; the index lies in
                                                        front */
        bytes[i] ^= 0x5a;
    file_save(torn, bytes, size);
    free(bytes);
    r = read_both(torn, NULL);
    print_message("torn: %d frames of %d, %d damaged, %s\n", r.frames, r.cpu_frames,
                  (int)r.stats.corrupt, r.why);
    assert_int_equal(r.end, SAC_EOS);
    assert_in_range(r.frames, 10, 30);
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
    static const char *const clips[] = {"people_h264.mp4", "people_hevc10.mkv", "odd_vp9.webm",
                                        "sizes.h264", "refused_422_h264.mp4"};
    for (size_t i = 0; i < SAC_COUNT(clips); i++) {
        sac_device_ledger(gpu, &before);
        struct both r = read_both(clip_path(clips[i]), &params);
        if (r.diff.greatest || r.end != SAC_EOS)
            fail_msg("%s: %s %s", clips[i], difference_text(&r.diff), r.why);
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
        clip_write(scratch("img%d.png", i), &(struct clip){.frames = 1,
                                                           .first = i,
                                                           .format = "image2pipe",
                                                           .codec = "png",
                                                           .pixels = AV_PIX_FMT_RGB24});
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
        fail_msg("%s", difference_text(&r.diff));
}

static void strict_mode_lets_the_gpus_own_frames_alone(void **state)
{
    (void)state;
    need_gpu();
    struct sac_device_params strict = sac_device_params_default();
    struct sac_source_params params = decode_with(SAC_DECODE_GPU),
                             on_cpu = decode_with(SAC_DECODE_CPU);
    sac_device *usual = gpu;
    sac_source *src = NULL;
    sac_frame  *frame = NULL;
    strict.zero_copy_strict = 1;
    gpu = gpu_open(&strict);
    read_some(clip_path("people_h264.mp4"), &params, 30);
    struct sac_ledger ledger;
    sac_device_ledger(gpu, &ledger);
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++)
        assert_int_equal(ledger.reason[i].bytes, 0);
    params.round_trip = 1;
    assert_sac_error(sac_source_open(gpu, clip_path("people_h264.mp4"), &params, &src),
                     SAC_ERR_COPY);
    assert_non_null(strstr(last_error(), "--zero-copy off"));
    on_cpu.prefetch = 0;
    sac_result res = sac_source_open(gpu, clip_path("people_h264.mp4"), &on_cpu, &src);
    if (res == SAC_OK)
        res = sac_source_read_wait(src, &frame);
    assert_int_equal(res, SAC_ERR_COPY);
    assert_non_null(strstr(last_error(), "--decode gpu"));
    sac_source_close(&src);
    sac_device_unref(&gpu);
    gpu = usual;
}

/* With an argument: only the tests of that name. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_as_the_cpu_does),
        cmocka_unit_test(frames_are_turned_as_on_the_cpu),
        cmocka_unit_test(counts_a_change_of_size),
        cmocka_unit_test(what_the_gpu_refuses_is_said),
        cmocka_unit_test(motion_jpeg_is_left_to_the_cpu),
        cmocka_unit_test(a_refusal_midway_keeps_what_came_before),
        cmocka_unit_test(broken_files_end_as_on_the_cpu),
        cmocka_unit_test(frames_of_the_cpu_are_uploaded),
        cmocka_unit_test(images_are_uploaded),
        cmocka_unit_test(a_round_trip_is_counted_both_ways),
        cmocka_unit_test(strict_mode_lets_the_gpus_own_frames_alone),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
