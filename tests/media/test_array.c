/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of a .npy file, which is written here byte by byte. */
#include <stdlib.h>
#include <string.h>

#include "tests/media/reading.h"

enum { FRAMES = 7, HEIGHT = 5, WIDTH = 33 };

static uint8_t value_at(size_t i)
{
    return (uint8_t)(i * 7 + i / 251);
}

/* A file with this dict, padded so that the numbers begin where they may, and so many of them. */
static const char *write_npy(const char *name, const char *dict, size_t numbers)
{
    const size_t header = 128;
    uint8_t     *bytes = calloc(1, header + numbers);
    const char  *path = scratch("%s", name);
    assert_non_null(bytes);
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (uint8_t)(header - 10);
    memset(bytes + 10, ' ', header - 10);
    memcpy(bytes + 10, dict, strlen(dict));
    bytes[header - 1] = '\n';
    for (size_t i = 0; i < numbers; i++)
        bytes[header + i] = value_at(i);
    file_save(path, bytes, header + numbers);
    free(bytes);
    return path;
}

static const char *colours(size_t numbers)
{
    return write_npy("colours.npy",
                     "{'descr': '|u1', 'fortran_order': False, 'shape': (7, 5, 33, 3), }", numbers);
}

static const char *greys(void)
{
    return write_npy("greys.npy", "{'descr': '|u1', 'fortran_order': False, 'shape': (7, 5, 33), }",
                     (size_t)FRAMES * HEIGHT * WIDTH);
}

static void assert_frame(const sac_frame *f, size_t number, size_t step)
{
    const size_t row = WIDTH * step;
    assert_int_equal(f->width, WIDTH);
    assert_int_equal(f->height, HEIGHT);
    assert_int_equal(f->number, number);
    assert_int_equal(f->pts_us, number * 100000);
    assert_int_equal(f->range, SAC_RANGE_FULL);
    for (size_t y = 0; y < HEIGHT; y++)
        for (size_t x = 0; x < row; x++)
            assert_int_equal(f->plane[0][y * f->pitch_bytes[0] + x],
                             value_at((number * HEIGHT + y) * row + x));
}

/* Reads frames first, first + every, ... below `end`. */
static void expect(const char *path, const struct sac_source_params *params, size_t step,
                   size_t first, size_t end)
{
    sac_source             *src = NULL;
    sac_frame              *frame = NULL;
    struct sac_source_info  info;
    struct sac_source_stats stats;
    assert_sac_ok(sac_source_open(dev, path, params, &src));
    sac_source_describe(src, &info);
    assert_string_equal(info.container, "npy");
    assert_int_equal(info.format, step == 3 ? SAC_PIXEL_RGB24 : SAC_PIXEL_I420);
    for (size_t i = first; i < end; i += (size_t)params->every) {
        assert_sac_ok(sac_source_read_wait(src, &frame));
        assert_frame(frame, i, step);
        sac_frame_unref(&frame);
    }
    assert_int_equal(sac_source_read_wait(src, &frame), SAC_EOS);
    sac_source_get_stats(src, &stats);
    if (step == 3)
        assert_int_equal(stats.converted, 0);
    else /* grey gets planes of colour; also what is skipped */
        assert_true(stats.converted >= stats.frames);
    assert_int_equal(stats.corrupt + stats.pts_repaired, 0);
    sac_source_close(&src);
}

static struct sac_source_params at_ten(void)
{
    struct sac_source_params p = sac_source_params_default();
    p.fps = 10;
    p.every = 1;
    return p;
}

static void gives_every_frame(void **state)
{
    (void)state;
    struct sac_source_params p = at_ten();
    const char              *path = colours((size_t)FRAMES * HEIGHT * WIDTH * 3);
    for (p.prefetch = 0; p.prefetch <= 3; p.prefetch += 3) {
        expect(path, &p, 3, 0, FRAMES);
        expect(greys(), &p, 1, 0, FRAMES);
    }
    expect(colours((size_t)FRAMES * HEIGHT * WIDTH * 3 + 100), &p, 3, 0, FRAMES); /* more behind */
}

static void gives_the_wanted_part(void **state)
{
    (void)state;
    struct sac_source_params p = at_ten();
    p.start_us = 200000;
    expect(greys(), &p, 1, 2, FRAMES);
    p.every = 2;
    expect(greys(), &p, 1, 2, FRAMES);
    p.duration_us = 300000;
    expect(greys(), &p, 1, 2, 5);
    sac_source *src = NULL;
    p.start_us = 900000;
    assert_int_equal(sac_source_open(dev, greys(), &p, &src), SAC_ERR_ARG);
}

/* The pixels are the file's, mapped: frames stay valid when the source is closed, and what is no
 * longer used is given back. */
static void frames_outlive_the_source(void **state)
{
    (void)state;
    struct sac_source_params p = at_ten();
    sac_source              *src = NULL;
    sac_frame               *frame[FRAMES] = {0};
    p.prefetch = 0;
    assert_sac_ok(sac_source_open(dev, colours((size_t)FRAMES * HEIGHT * WIDTH * 3), &p, &src));
    for (size_t i = 0; i < FRAMES; i++)
        assert_sac_ok(sac_source_read_wait(src, &frame[i]));
    for (size_t i = 1; i < FRAMES; i++)
        assert_ptr_equal(frame[i]->plane[0], frame[i - 1]->plane[0] + HEIGHT * WIDTH * 3);
    sac_source_close(&src);
    for (size_t i = 0; i < FRAMES; i += 2)
        sac_frame_unref(&frame[i]);
    for (size_t i = 1; i < FRAMES; i += 2) {
        assert_frame(frame[i], i, 3);
        sac_frame_unref(&frame[i]);
    }
}

static void long_arrays_take_no_memory(void **state)
{
    (void)state;
    struct sac_source_params p = at_ten();
    sac_source              *src = NULL;
    sac_frame               *frame = NULL;
    const char *dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (64, 1000, 400, 3), }";
    const char *path = write_npy("long.npy", dict, (size_t)64 * 1000 * 1200);
    p.prefetch = 0;
    assert_sac_ok(sac_source_open(dev, path, &p, &src));
    const long before = resident_kb();
    unsigned   sum = 0;
    for (int i = 0; i < 64; i++) {
        assert_sac_ok(sac_source_read_wait(src, &frame));
        for (size_t at = 0; at < 1000 * 1200; at += 512)
            sum += frame->plane[0][at];
        sac_frame_unref(&frame);
    }
    assert_true(sum > 0);
    assert_in_range(resident_kb(), 0, before + 20 * 1024);
    sac_source_close(&src);
}

/* The same frames of a device that maps no arrays, also those that are read again. */
static void is_read_where_mapping_is_left_out(void **state)
{
    (void)state;
    struct sac_source_params p = at_ten();
    sac_device              *usual = dev;
    const char              *path = colours((size_t)FRAMES * HEIGHT * WIDTH * 3 + 100);
    setenv("SACCADE_WITHOUT", "mmap", 1);
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    unsetenv("SACCADE_WITHOUT");
    expect(path, &p, 3, 0, FRAMES);
    expect(greys(), &p, 1, 0, FRAMES);
    p.start_us = 200000;
    p.every = 2;
    expect(path, &p, 3, 2, FRAMES);
    frames_outlive_the_source(NULL);
    sac_device_unref(&dev);
    dev = usual;
}

static void faults_are_one_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *dict, *says;
        size_t      numbers;
        sac_result  res;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 5, 9, 3), }", "frames are of uint8",
         1080, SAC_ERR_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 5, 9, 3), }", "dtype '|O'", 1080,
         SAC_ERR_UNSUPPORTED},
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 5, 9, 3), }", "ascontiguousarray",
         270, SAC_ERR_UNSUPPORTED},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 5, 9, 3), }", "promises 270 bytes",
         269, SAC_ERR_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 5, 9, 4), }", "array [2,5,9,4]",
         360, SAC_ERR_UNSUPPORTED},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (50, 90, 3), }", "array [50,90,3]",
         13500, SAC_ERR_UNSUPPORTED},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (90,), }", "array [90]", 90,
         SAC_ERR_UNSUPPORTED},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "array []", 1,
         SAC_ERR_UNSUPPORTED},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 50, 90, 3), }",
         "one frame at least", 0, SAC_ERR_UNSUPPORTED},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 0, 90, 3), }", "one frame at least",
         0, SAC_ERR_UNSUPPORTED},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 40000), }", "1 to 32768", 40000,
         SAC_ERR_UNSUPPORTED},
        {"no dict", "header has no dict", 0, SAC_ERR_FORMAT},
    };
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        sac_source *src = NULL;
        char        why[512];
        const char *path = write_npy("bad.npy", cases[i].dict, cases[i].numbers);
        assert_int_equal(sac_source_open(dev, path, NULL, &src), cases[i].res);
        assert_null(src);
        sac_context_last_error(test_context(), why, sizeof why);
        if (!strstr(why, cases[i].says) || !strstr(why, "bad.npy"))
            fail_msg("'%s': %s", cases[i].dict, why);
    }
    const char *path = scratch("empty.npy");
    sac_source *src = NULL;
    file_save(path, "", 0);
    assert_int_equal(sac_source_open(dev, path, NULL, &src), SAC_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_every_frame),
        cmocka_unit_test(gives_the_wanted_part),
        cmocka_unit_test(frames_outlive_the_source),
        cmocka_unit_test(long_arrays_take_no_memory),
        cmocka_unit_test(is_read_where_mapping_is_left_out),
        cmocka_unit_test(faults_are_one_sentence),
    };
    return cmocka_run_group_tests_name("media/array", tests, open_device, close_device);
}
