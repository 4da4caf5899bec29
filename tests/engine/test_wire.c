/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine/onnx/wire.h"
#include "tests/engine/proto.h"
#include "tests/test.h"

static void reads_every_type(void **state)
{
    (void)state;
    struct proto     p = {0};
    struct sac_field f;
    uint64_t         eight = 0x1122334455667788u;
    proto_int(&p, 1, -1);
    proto_string(&p, 2, "abc");
    proto_float(&p, 3, 1.5f);
    proto_varint_bare(&p, 4 << 3 | 1);
    proto_raw(&p, &eight, 8);
    struct sac_wire w = sac_wire_of(p.bytes, p.size);
    assert_int_equal(sac_wire_next(&w, &f), 1);
    assert_int_equal(f.number, 1);
    assert_true(f.value == UINT64_MAX);
    assert_int_equal(sac_wire_next(&w, &f), 1);
    assert_int_equal(sac_wire_left(&f.bytes), 3);
    assert_memory_equal(f.bytes.at, "abc", 3);
    assert_int_equal(sac_wire_next(&w, &f), 1);
    assert_int_equal(f.value, 0x3fc00000);
    assert_int_equal(sac_wire_next(&w, &f), 1);
    assert_true(f.value == eight);
    assert_int_equal(sac_wire_next(&w, &f), 0);
    proto_free(&p);
}

/* Each damaged in its own way; none may be read past its end (the sanitizers watch). */
static void refuses_damage(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t      size;
    } bad[] = {
        {"\x08", 1},                                              /* a tag without its value */
        {"\x08\x80", 2},                                          /* a varint that does not end */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* one of eleven bytes */
        {"\x0a\x05"
         "ab",
         4},                                                  /* a length past the end */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* a length of 2^64-1 */
        {"\x0d\x00\x00\x00", 4},                              /* three bytes of a fixed32 */
        {"\x09\x00\x00\x00\x00\x00\x00\x00", 8},              /* seven of a fixed64 */
        {"\x0b\x0c", 2},                                      /* groups */
        {"\x0e\x00", 2},                                      /* a type that does not exist */
        {"\x00\x00", 2},                                      /* field number 0 */
        {"\xff\xff\xff\xff\xff\x01", 6},                      /* a field number over 29 bits */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t *copy = malloc(bad[i].size); /* of exactly that size, so that over-reads show */
        memcpy(copy, bad[i].bytes, bad[i].size);
        struct sac_wire  w = sac_wire_of(copy, bad[i].size);
        struct sac_field f;
        assert_int_equal(sac_wire_next(&w, &f), -1);
        assert_ptr_equal(w.at, copy);
        free(copy);
    }
}

static void survives_random_bytes(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        uint8_t *bytes = malloc(64);
        size_t   size = (seed >> 8) % 65;
        for (size_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
        seed = seed * 1664525u + 1013904223u;
        struct sac_wire  w = sac_wire_of(bytes, size);
        struct sac_field f;
        int64_t          ints[8];
        size_t           fields = 0;
        while (sac_wire_next(&w, &f) > 0) {
            size_t n = 0;
            sac_wire_ints(&f, ints, 8, &n);
            assert_true(n <= 8);
            fields++;
            assert_true(w.at <= w.end && fields <= size);
        }
        free(bytes);
    }
}

static void reads_packed_and_single_numbers(void **state)
{
    (void)state;
    struct proto     p = {0};
    struct sac_field f;
    int64_t          out[4];
    size_t           n = 0;
    proto_int(&p, 1, 7);
    proto_bytes(&p, 1, "\x01\xac\x02", 3); /* packed: 1, 300 */
    proto_bytes(&p, 1, "\x05\x80", 2);     /* packed, damaged */
    struct sac_wire w = sac_wire_of(p.bytes, p.size);
    assert_int_equal(sac_wire_next(&w, &f), 1);
    assert_true(sac_wire_ints(&f, out, 4, &n));
    assert_int_equal(sac_wire_next(&w, &f), 1);
    assert_true(sac_wire_ints(&f, out, 4, &n));
    assert_int_equal(n, 3);
    assert_int_equal(out[0], 7);
    assert_int_equal(out[2], 300);
    assert_false(sac_wire_ints(&f, out, 3, &n)); /* no room */
    assert_int_equal(sac_wire_next(&w, &f), 1);
    n = 0;
    assert_false(sac_wire_ints(&f, out, 4, &n));
    proto_free(&p);
}

static void fixed_arrays_must_be_whole(void **state)
{
    (void)state;
    struct proto     p = {0};
    struct sac_field f;
    uint32_t         out[2] = {0};
    size_t           n = 0;
    proto_bytes(&p, 1, "\0\0\x80\x3f\0\0\0", 7);
    proto_bytes(&p, 1, "\0\0\x80\x3f\0\0\0\x40", 8);
    struct sac_wire w = sac_wire_of(p.bytes, p.size);
    assert_int_equal(sac_wire_next(&w, &f), 1);
    assert_false(sac_wire_fixed32(&f, out, 2, &n));
    assert_int_equal(sac_wire_next(&w, &f), 1);
    assert_false(sac_wire_fixed32(&f, out, 1, &n));
    assert_true(sac_wire_fixed32(&f, out, 2, &n));
    assert_int_equal(n, 2);
    assert_int_equal(out[1], 0x40000000);
    proto_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_type),
        cmocka_unit_test(refuses_damage),
        cmocka_unit_test(survives_random_bytes),
        cmocka_unit_test(reads_packed_and_single_numbers),
        cmocka_unit_test(fixed_arrays_must_be_whole),
    };
    return cmocka_run_group_tests_name("engine/wire", tests, NULL, NULL);
}
