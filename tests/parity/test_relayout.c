/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout on the GPU against the host's, to the last bit: random shapes, all pairs of
 * layouts, numbers of all sizes, many samples, addresses that no vector fits. */
#include <stdio.h>
#include <string.h>

#include "engine/kernel/layout.h"
#include "tests/gpu.h"

enum { CASES = 400, BYTES_MAX = 8 << 20, SHIFT_MAX = 16 };

static uint32_t seed = 1;

static uint32_t pick(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static struct sac_operand random_operand(void)
{
    static const enum sac_dtype dtypes[] = {SAC_F32, SAC_F32, SAC_F32, SAC_U8, SAC_F16, SAC_I64};
    static const int            sizes[] = {1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 80, 100};
    struct sac_operand          o = {
                 .dtype = dtypes[pick(SAC_COUNT(dtypes))], .rank = (int)pick(5), .present = true};
    do
        for (int i = 0; i < o.rank; i++)
            o.dims[i] =
                i == 0 ? (int64_t[]){1, 2, 4, 5, 32}[pick(5)] : sizes[pick(SAC_COUNT(sizes))];
    while (sac_operand_bytes(&o) > BYTES_MAX);
    return o;
}

/* Values of float16 and float32 that each has an equal of in the other, and bytes for the rest. */
static void fill(const struct sac_operand *o, enum sac_layout layout, void *p)
{
    const enum sac_dtype dtype = sac_layout_dtype(o->dtype, layout);
    const int64_t        count = sac_operand_elements(o);
    struct sac_operand   numbers = {.dtype = dtype, .data = p};
    for (int64_t i = 0; i < count; i++)
        sac_operand_set(&numbers, i,
                        dtype == SAC_F32 ? (double)pick(1 << 20) / 777 - 600 : (double)(pick(250)));
}

static void *at(sac_tensor *t, int shift)
{
    return (char *)sac_tensor_data(t) + shift;
}

static sac_tensor *room(sac_device *dev)
{
    struct sac_tensor_desc desc = {
        .dtype = SAC_U8, .rank = 1, .shape = {2 * BYTES_MAX + SHIFT_MAX}};
    sac_tensor *t = NULL;
    assert_sac_ok(sac_tensor_create(dev, &desc, "test", &t));
    return t;
}

static void one_case(sac_device *dev, sac_tensor *from, sac_tensor *to, char *host[3])
{
    const struct sac_operand o = random_operand();
    const enum sac_layout    a = (enum sac_layout)pick(SAC_LAYOUT_COUNT),
                          b = (enum sac_layout)pick(SAC_LAYOUT_COUNT);
    const size_t in = sac_layout_bytes(&o, a), out = sac_layout_bytes(&o, b);
    const int    shift = pick(4) ? 0 : 8; /* a number's own alignment is kept */
    fill(&o, a, host[0]);
    sac_layout_convert(&o, host[1], b, host[0], a);
    assert_sac_ok(sac_device_copy(dev, NULL, at(from, shift), host[0], in, SAC_COPY_HOST_TO_DEVICE,
                                  SAC_COPY_TENSOR_USER, "test"));
    assert_sac_ok(dev->ops->relayout(dev, NULL, &o, at(to, shift), b, at(from, shift), a));
    assert_sac_ok(sac_device_copy(dev, NULL, host[2], at(to, shift), out, SAC_COPY_DEVICE_TO_HOST,
                                  SAC_COPY_TENSOR_USER, "test"));
    if (memcmp(host[1], host[2], out) != 0)
        fail_msg("%s [%lld,%lld,%lld,%lld] of rank %d from %s to %s, %d bytes off",
                 sac_dtype_name(o.dtype), (long long)o.dims[0], (long long)o.dims[1],
                 (long long)o.dims[2], (long long)o.dims[3], o.rank, sac_layout_name(a),
                 sac_layout_name(b), shift);
}

static void relayout_equals_the_hosts(void **state)
{
    (void)state;
    sac_device *dev = gpu_open(NULL);
    sac_tensor *from = room(dev), *to = room(dev);
    char       *host[3];
    for (int i = 0; i < 3; i++)
        host[i] = malloc(2 * BYTES_MAX + 64);
    for (int i = 0; i < CASES; i++)
        one_case(dev, from, to, host);
    for (int i = 0; i < 3; i++)
        free(host[i]);
    sac_tensor_unref(&from);
    sac_tensor_unref(&to);
    sac_device_unref(&dev);
}

/* One number in many, or none; at any address that its own alignment allows. */
static void odd_numbers_are_found(void **state)
{
    (void)state;
    sac_device        *dev = gpu_open(NULL);
    sac_tensor        *t = room(dev);
    struct sac_buffer *word = NULL;
    char              *host = calloc(1, BYTES_MAX);
    assert_sac_ok(sac_host_buffer_create(dev, sizeof(uint32_t), "test", &word));
    for (int i = 0; i < CASES; i++) {
        const bool    half = pick(2), odd = pick(2), nan_alone = pick(2);
        const size_t  size = half ? 2 : 4;
        const int64_t count = 1 + pick(pick(4) ? 3000 : BYTES_MAX / 4),
                      which = pick((uint32_t)count);
        static const uint32_t kinds[2][3] = {{0x7f7fffff, 0xff800000, 0x7fc00000},
                                             {0xfbff, 0xfc00, 0x7e01}};
        const int      kind = odd ? (nan_alone ? 2 : 1 + (int)pick(2)) : nan_alone && pick(2);
        const uint32_t bits = kinds[half][kind];
        const int      shift = (int)(pick(16 / (uint32_t)size) * size);
        uint32_t      *found = sac_buffer_data(word);
        memcpy(host + (size_t)which * size, &bits, size);
        assert_sac_ok(sac_device_copy(dev, NULL, at(t, shift), host, (size_t)count * size,
                                      SAC_COPY_HOST_TO_DEVICE, SAC_COPY_TENSOR_USER, "test"));
        *found = 0;
        assert_sac_ok(dev->ops->find_odd(dev, NULL, at(t, shift), count, half, nan_alone, found));
        assert_sac_ok(sac_device_copy(dev, NULL, host + (size_t)which * size, at(t, shift), size,
                                      SAC_COPY_DEVICE_TO_HOST, SAC_COPY_TENSOR_USER, "waits"));
        if (*found != odd)
            fail_msg("%lld numbers of %zu bytes, %d bytes off: number %lld", (long long)count, size,
                     shift, (long long)which);
        memset(host + (size_t)which * size, 0, size);
    }
    free(host);
    sac_buffer_unref(&word);
    sac_tensor_unref(&t);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(relayout_equals_the_hosts),
                                       cmocka_unit_test(odd_numbers_are_found)};
    return cmocka_run_group_tests_name("parity/relayout", tests, NULL, NULL);
}
