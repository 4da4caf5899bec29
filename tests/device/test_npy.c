/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "tests/test.h"

static sac_device *dev;
static char        path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/saccade-test-%d.npy", (int)getpid());
    return sac_device_open(test_context(), "cpu", NULL, &dev);
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    sac_device_unref(&dev);
    return 0;
}

static void write_bytes(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A file of the version with this dict and so many bytes of numbers. */
static void write_npy(int version, const char *dict, size_t numbers)
{
    unsigned char b[4096] = "\x93NUMPY";
    size_t        n = strlen(dict), field = version == 1 ? 2 : 4;
    b[6] = (unsigned char)version;
    for (size_t i = 0; i < field; i++)
        b[8 + i] = (unsigned char)(n >> (8 * i));
    memcpy(b + 8 + field, dict, n);
    for (size_t i = 0; i < numbers; i++)
        b[8 + field + n + i] = (unsigned char)i;
    write_bytes(b, 8 + field + n + numbers);
}

static void round_trips_every_dtype_and_rank(void **state)
{
    (void)state;
    for (int dtype = SAC_F32; dtype < SAC_DTYPE_COUNT; dtype++)
        for (int rank = 0; rank <= SAC_RANK_MAX; rank++) {
            struct sac_tensor_desc d = {.dtype = dtype, .rank = rank};
            for (int i = 0; i < rank; i++)
                d.shape[i] = i % 3 + 1;
            sac_tensor *t = NULL, *back = NULL;
            assert_sac_ok(sac_tensor_create(dev, &d, "out", &t));
            size_t bytes = (size_t)sac_tensor_desc_bytes(&d);
            for (size_t i = 0; i < bytes; i++)
                ((unsigned char *)sac_tensor_data(t))[i] = (unsigned char)(i * 37 + 1);
            assert_sac_ok(sac_tensor_save_npy(t, path));
            assert_sac_ok(sac_tensor_load_npy(dev, path, &back));
            assert_int_equal(sac_tensor_describe(back)->dtype, dtype);
            assert_int_equal(sac_tensor_describe(back)->rank, rank);
            for (int i = 0; i < rank; i++)
                assert_int_equal(sac_tensor_describe(back)->shape[i], d.shape[i]);
            assert_memory_equal(sac_tensor_data(back), sac_tensor_data(t), bytes);
            sac_tensor_unref(&t);
            sac_tensor_unref(&back);
        }
}

static void writes_what_numpy_writes(void **state)
{
    (void)state;
    /* numpy.save of numpy.array([1, 2], dtype='<i2'): 64 bytes of header, then the numbers. */
    static const char head[] = "\x93NUMPY\x01\x00v\x00{'descr': '<i2', 'fortran_order': False, "
                               "'shape': (2,), }";
    struct sac_tensor_desc d = {.dtype = SAC_I16, .rank = 1, .shape = {2}};
    int16_t                x[2] = {1, 2};
    sac_tensor            *t = NULL;
    char                   b[256] = "";
    assert_sac_ok(sac_tensor_wrap(dev, &d, x, NULL, NULL, &t));
    assert_sac_ok(sac_tensor_save_npy(t, path));
    sac_tensor_unref(&t);
    FILE  *file = fopen(path, "rb");
    size_t n = fread(b, 1, sizeof b, file);
    fclose(file);
    size_t data = n - sizeof x;
    assert_int_equal(data % 64, 0);
    assert_int_equal(b[data - 1], '\n');
    assert_int_equal((unsigned char)b[8], data - 10);
    assert_memory_equal(b, head, 8);
    assert_memory_equal(b + 10, head + 10, sizeof head - 1 - 10);
    assert_memory_equal(b + data, x, sizeof x);
}

static void reads_all_versions(void **state)
{
    (void)state;
    for (int version = 1; version <= 3; version++) {
        sac_tensor *t = NULL;
        write_npy(version, "{'shape': (2L, 3,), \"descr\": '|u1', 'fortran_order': False}", 6);
        assert_sac_ok(sac_tensor_load_npy(dev, path, &t));
        assert_int_equal(sac_tensor_describe(t)->rank, 2);
        assert_int_equal(sac_tensor_describe(t)->shape[1], 3);
        assert_int_equal(((unsigned char *)sac_tensor_data(t))[5], 5);
        sac_tensor_unref(&t);
    }
}

static void refuses_hostile_headers(void **state)
{
    (void)state;
    static const struct {
        const char *dict;
        sac_result  res;
    } cases[] = {
        {"", SAC_ERR_FORMAT},
        {"{", SAC_ERR_FORMAT},
        {"{}", SAC_ERR_FORMAT},
        {"{'descr'", SAC_ERR_FORMAT},
        {"{'descr': ", SAC_ERR_UNSUPPORTED},
        {"{'descr': '", SAC_ERR_UNSUPPORTED},
        {"{'descr': '<f4'}", SAC_ERR_FORMAT},
        {"{'descr': '<f4' 'shape': (1,)}", SAC_ERR_FORMAT},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", SAC_ERR_UNSUPPORTED},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", SAC_ERR_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", SAC_ERR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", SAC_ERR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", SAC_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", SAC_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (", SAC_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", SAC_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", SAC_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
         SAC_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
         SAC_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
         SAC_ERR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}", SAC_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), 'evil': 1}", SAC_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,)}", SAC_ERR_FORMAT}, /* 16 bytes */
    };
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        sac_tensor *t = NULL;
        char        why[512];
        write_npy(1, cases[i].dict, 16);
        sac_result res = sac_tensor_load_npy(dev, path, &t);
        if (res != cases[i].res)
            fail_msg("%s: %s", cases[i].dict, sac_result_name(res));
        assert_null(t);
        sac_context_last_error(test_context(), why, sizeof why);
        assert_non_null(strstr(why, path));
    }
}

static void refuses_what_is_no_npy(void **state)
{
    (void)state;
    sac_tensor *t = NULL;
    assert_sac_error(sac_tensor_load_npy(dev, "/nowhere/x.npy", &t), SAC_ERR_IO);
    assert_sac_error(sac_tensor_load_npy(dev, "/tmp", &t), SAC_ERR_FORMAT);
    write_bytes("", 0);
    assert_sac_error(sac_tensor_load_npy(dev, path, &t), SAC_ERR_FORMAT);
    write_bytes("\x93NUMPZ\x01\x00\x00\x00", 10);
    assert_sac_error(sac_tensor_load_npy(dev, path, &t), SAC_ERR_FORMAT);
    write_bytes("\x93NUMPY\x04\x00\x00\x00\x00\x00", 12);
    assert_sac_error(sac_tensor_load_npy(dev, path, &t), SAC_ERR_UNSUPPORTED);
    write_bytes("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12);
    assert_sac_error(sac_tensor_load_npy(dev, path, &t), SAC_ERR_FORMAT);
    assert_null(t);
}

/* Cut a good file at every length: never a crash, never a success. */
static void refuses_every_truncation(void **state)
{
    (void)state;
    unsigned char          b[512];
    struct sac_tensor_desc d = {.dtype = SAC_I64, .rank = 2, .shape = {3, 2}};
    sac_tensor            *t = NULL;
    assert_sac_ok(sac_tensor_create(dev, &d, "t", &t));
    memset(sac_tensor_data(t), 0, 48);
    assert_sac_ok(sac_tensor_save_npy(t, path));
    sac_tensor_unref(&t);
    FILE  *file = fopen(path, "rb");
    size_t size = fread(b, 1, sizeof b, file);
    fclose(file);
    for (size_t n = 0; n < size; n++) {
        write_bytes(b, n);
        assert_sac_error(sac_tensor_load_npy(dev, path, &t), SAC_ERR_FORMAT);
        assert_null(t);
    }
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    struct sac_tensor_desc d = {.dtype = SAC_U8, .rank = 1, .shape = {10}};
    sac_tensor            *t = NULL;
    char                   why[512];
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_sac_ok(sac_tensor_create(dev, &d, "t", &t));
    memset(sac_tensor_data(t), 0, 10);
    assert_sac_error(sac_tensor_save_npy(t, "/dev/full"), SAC_ERR_IO);
    sac_context_last_error(test_context(), why, sizeof why);
    assert_string_equal(why, "cannot write '/dev/full': No space left on device");
    assert_sac_error(sac_tensor_save_npy(t, "/nowhere/x.npy"), SAC_ERR_IO);
    sac_tensor_unref(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips_every_dtype_and_rank),
        cmocka_unit_test(writes_what_numpy_writes),
        cmocka_unit_test(reads_all_versions),
        cmocka_unit_test(refuses_hostile_headers),
        cmocka_unit_test(refuses_what_is_no_npy),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests_name("device/npy", tests, set_up, tear_down);
}
