/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdlib.h>

#include "base/range.h"
#include "tests/test.h"

static void nothing_happens_before_it_is_opened(void **state)
{
    (void)state;
    sac_range_push("early");
    sac_range_pop();
    assert_null(atomic_load(&sac_range_ops));
    assert_null(dlopen(FAKE_NVTX "/libnvtx3interop.so.1", RTLD_NOW | RTLD_NOLOAD));
}

static void ranges_reach_the_library(void **state)
{
    (void)state;
    setenv("SACCADE_CUDA_LIBS", "/nowhere::" FAKE_NVTX, 1);
    assert_true(sac_ranges_open());
    assert_true(sac_ranges_open());
    sac_range_push("decode");
    sac_range_push("inner");
    sac_range_pop();
    sac_range_pop();
    void *library = dlopen(FAKE_NVTX "/libnvtx3interop.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    const char *(*said)(void);
    *(void **)&said = dlsym(library, "said");
    assert_string_equal(said(), "+decode+inner--");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_happens_before_it_is_opened),
        cmocka_unit_test(ranges_reach_the_library),
    };
    return cmocka_run_group_tests_name("base/range", tests, NULL, NULL);
}
