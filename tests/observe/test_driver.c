/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor says of drivers of each version beside this build of the plug-in. A stand-in is the driver, in a
 * process of its own for each version, as CUDA asks but once. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/doctor.h"
#include "tests/test.h"

/* In a process of its own. */
static void find_with(int driver, struct sac_gpu_facts *out)
{
    char version[16];
    snprintf(version, sizeof version, "%d", driver);
    setenv("STANDIN_DRIVER", version, 1);
    if (!dlopen(FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL)) /* whoever asks for libcuda.so.1 has it from now on */
        fprintf(stderr, "%s\n", dlerror());
    sac_gpu_facts_find(out);
}

/* driver   1000 * major + 10 * minor; 0: one that does not know its version. */
static struct sac_gpu_facts facts_with(int driver)
{
    struct sac_gpu_facts facts = {0};
    int                  ends[2], status = -1;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        find_with(driver, &facts);
        _exit(write(ends[1], &facts, sizeof facts) != (ssize_t)sizeof facts);
    }
    close(ends[1]);
    for (size_t at = 0; at < sizeof facts;) {
        const ssize_t n = read(ends[0], (char *)&facts + at, sizeof facts - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return facts;
}

/* CUDA's major version that the plug-in was built with. */
static int build_major(void)
{
    const struct sac_gpu_facts facts = facts_with(0);
    int                        major = 0;
    if (!facts.plugin) {
        print_message("skipped: %s\n", facts.device);
        skip();
    }
    assert_int_equal(sscanf(facts.build, "CUDA %d.", &major), 1);
    return major;
}

static void expect(int driver, const char *words)
{
    const struct sac_gpu_facts facts = facts_with(driver);
    assert_true(facts.libcuda && facts.plugin && !facts.opened);
    if (!strstr(facts.device, words))
        fail_msg("with a driver for CUDA %d.%d: '%s' does not say '%s'", driver / 1000, driver % 1000 / 10,
                 facts.device, words);
}

static void newer_drivers_serve(void **state)
{
    (void)state;
    const int major = build_major();
    for (int driver = major * 1000; driver < major * 1000 + 100; driver += 20) /* also one older than the build */
        expect(driver, "the driver sees no NVIDIA GPU");
    expect((major + 1) * 1000, "the driver sees no NVIDIA GPU");
}

static void older_drivers_are_told_from_the_build(void **state)
{
    (void)state;
    const int major = build_major();
    char      words[120];
    snprintf(words, sizeof words, "the NVIDIA driver is for CUDA %d.8 and this build needs %d.0; install a newer driver",
             major - 1, major);
    expect((major - 1) * 1000 + 80, words);
    expect(0, "there is no NVIDIA driver");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newer_drivers_serve),
        cmocka_unit_test(older_drivers_are_told_from_the_build),
    };
    return cmocka_run_group_tests_name("observe/driver", tests, NULL, NULL);
}
