/* SPDX-License-Identifier: Apache-2.0 */
/* Which drivers and cards serve which builds of the CUDA plug-in, and where kernels are launched
 * early. */
#include <string.h>

#include "base/base.h"
#include "device/cuda/serves.h"
#include "tests/test.h"

static const int all[] = {80, 86, 89, 90, 100}, known[] = {80, 86, 89, 90}, hopper[] = {90},
                 two[] = {90, 80}, old[] = {80, 86, 89};
static const struct cuda_build of_13 = {13000, all, SAC_COUNT(all)},
                               of_12 = {12040, known, SAC_COUNT(known)},
                               of_one = {13000, hopper, SAC_COUNT(hopper)},
                               of_two = {12040, two, SAC_COUNT(two)},
                               of_old = {12040, old, SAC_COUNT(old)};

static void drivers(void **state)
{
    static const struct {
        const struct cuda_build *build;
        int                      driver;
        const char              *why; /* NULL: it serves */
    } rows[] = {
        {&of_12, 11080,
         "the NVIDIA driver is for CUDA 11.8 and this build needs 12.0; install a newer driver"},
        {&of_12, 12000, NULL},
        {&of_12, 12020, NULL},
        {&of_12, 12040, NULL},
        {&of_12, 13000, NULL},
        {&of_13, 12090,
         "the NVIDIA driver is for CUDA 12.9 and this build needs 13.0; install a newer driver, or "
         "build saccade with CUDA 12"},
        {&of_13, 13000, NULL},
        {&of_13, 13010, NULL},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(rows); i++) {
        char why[200] = "";
        assert_int_equal(cuda_driver_serves(rows[i].build, rows[i].driver, why, sizeof why),
                         !rows[i].why);
        assert_string_equal(why, rows[i].why ? rows[i].why : "");
    }
}

static void cards(void **state)
{
    static const struct {
        const struct cuda_build *build;
        int                      driver, major, minor;
        const char              *why;
    } rows[] = {
        {&of_13, 13000, 7, 5, "T4 has compute capability 7.5; the kernels need 8.0"},
        {&of_13, 13000, 8, 0, NULL},
        {&of_13, 13000, 8, 7, NULL},
        {&of_13, 13000, 10, 3, NULL},
        {&of_13, 13000, 12, 0, NULL}, /* compiled by the driver */
        {&of_12, 12040, 10, 0, NULL},
        {&of_12, 13000, 12, 1, NULL},
        {&of_12, 12020, 9, 0, NULL},
        {&of_12, 12020, 10, 0,
         "T4 has compute capability 10.0, newer than this build's code, and a driver for CUDA 12.2 "
         "cannot compile what CUDA 12.4 made; install a newer driver, or build saccade with "
         "-Dgpu_arch=100"},
        {&of_one, 13000, 8, 9,
         "T4 has compute capability 8.9, and this build has no code for it; build saccade with "
         "-Dgpu_arch=89"},
        {&of_one, 13000, 9, 0, NULL},
        {&of_two, 12040, 8, 6, NULL},
        {&of_two, 12040, 12, 0, NULL}, /* the newest is there as PTX, wherever it stands */
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(rows); i++) {
        char why[300] = "";
        assert_int_equal(cuda_card_serves(rows[i].build, rows[i].driver, "T4", rows[i].major,
                                          rows[i].minor, why, sizeof why),
                         !rows[i].why);
        assert_string_equal(why, rows[i].why ? rows[i].why : "");
    }
}

static void early_launches(void **state)
{
    static const struct {
        const struct cuda_build *build;
        int                      driver, major;
        bool                     early;
    } rows[] = {
        {&of_13, 13000, 9, true},  {&of_13, 13000, 10, true},   {&of_13, 13000, 12, true},
        {&of_13, 13000, 8, false}, {&of_12, 12030, 9, true},    {&of_12, 12020, 9, false},
        {&of_two, 12040, 9, true}, {&of_old, 13000, 10, false}, /* its code would not wait */
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(rows); i++)
        assert_int_equal(cuda_card_launches_early(rows[i].build, rows[i].driver, rows[i].major),
                         rows[i].early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(drivers), cmocka_unit_test(cards),
                                       cmocka_unit_test(early_launches)};
    return cmocka_run_group_tests_name("device/serves", tests, NULL, NULL);
}
