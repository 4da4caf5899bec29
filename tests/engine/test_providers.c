/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in of another build is refused with a sentence, and the CPU's own kernels serve. */
#include <stdlib.h>
#include <string.h>

#include "engine/kernel/kernel.h"
#include "tests/test.h"

static char said[1024];

static void keep(void *user, enum sac_log_level level, const char *message)
{
    (void)user;
    if (level == SAC_LOG_INFO)
        strncat(said, message, sizeof said - strlen(said) - 1);
}

static void foreign_plugin_is_refused(void **state)
{
    (void)state;
    struct sac_context_params params = sac_context_params_default();
    sac_context              *ctx = NULL;
    sac_device               *dev = NULL;
    int                       count = 0;
    params.log_fn = keep;
    assert_sac_ok(sac_context_create(&params, &ctx));
    assert_sac_ok(sac_device_open(ctx, "cpu", NULL, &dev));
    unsetenv("GOMP_SPINCOUNT");
    setenv("SACCADE_PLUGIN_PATH", "/nowhere:" FOREIGN_FOLDER, 1);
    const struct sac_kernel_provider *const *list = sac_kernel_providers(dev, &count);
    assert_int_equal(count, 1);
    assert_null(getenv("GOMP_SPINCOUNT")); /* a program's environment is its own */
    assert_string_equal(list[0]->name, "cpu");
    assert_non_null(strstr(said, "without oneDNN"));
    assert_non_null(strstr(said, "another build of saccade"));
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(foreign_plugin_is_refused),
    };
    return cmocka_run_group_tests_name("engine/providers", tests, NULL, NULL);
}
