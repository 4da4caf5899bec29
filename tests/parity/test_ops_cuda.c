/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA device's kernels on all parity cases, one line for each that is wrong. A kernel that
 * breaks the device would hide all that come after it: the program starts itself anew behind that
 * operator.
 * usage: test_parity_ops_cuda [OPERATOR] [PART/PARTS]     each PARTS-th case, from 0/PARTS on
 * internal: --after PROVIDER OPERATOR FAILED PART/PARTS */
#include <stdio.h>
#include <unistd.h>

#include "tests/gpu.h"
#include "tests/parity/trial.h"

static const char *only, *after;
static int         first_provider, failed_before, part, parts;
static char      **arguments;

static void go_on(int provider, const char *op, int failed)
{
    char number[2][16], share[32];
    printf("the device broke in %s; on from there in a new process\n", op);
    fflush(stdout);
    snprintf(number[0], sizeof number[0], "%d", provider);
    snprintf(number[1], sizeof number[1], "%d", failed);
    snprintf(share, sizeof share, "%d/%d", part, parts);
    execl("/proc/self/exe", arguments[0], "--after", number[0], op, number[1], share, (char *)NULL);
    fail_msg("cannot start anew");
}

static void all_providers(void **state)
{
    int         count, failed = failed_before;
    sac_device *dev = gpu_open(NULL);
    (void)state;
    const struct sac_kernel_provider *const *list = sac_kernel_providers(dev, &count);
    assert_true(count > 0);
    for (int i = first_provider; i < count; i++) {
        struct trial t = {.dev = dev,
                          .provider = list[i],
                          .only = only,
                          .weights = true,
                          .part = part,
                          .parts = parts,
                          .after = i == first_provider ? after : NULL};
        const char  *broke = trial_all(&t);
        failed += t.failed;
        if (broke)
            go_on(i, broke, failed);
    }
    sac_device_unref(&dev);
    assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_providers)};
    arguments = argv;
    if (argc == 6 && strcmp(argv[1], "--after") == 0) {
        first_provider = atoi(argv[2]);
        after = argv[3];
        failed_before = atoi(argv[4]);
    } else if (argc > 1 && !strchr(argv[1], '/'))
        only = argv[1];
    if (argc > (only ? 2 : 1) && sscanf(argv[argc - 1], "%d/%d", &part, &parts) != 2)
        return 2;
    return cmocka_run_group_tests_name("parity/ops_cuda", tests, NULL, NULL);
}
