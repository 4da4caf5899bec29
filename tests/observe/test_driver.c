/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor and --device auto say of drivers of each version beside this build of the
 * plug-in. A stand-in is the driver, in a process of its own for each version, as CUDA asks but
 * once. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "observe/doctor.h"
#include "tests/test.h"

struct answer {
    struct sac_gpu_facts facts;
    char                 said[600]; /* by those who open "auto", without asking for a GPU */
};

static void keep(void *user, enum sac_log_level level, const char *message)
{
    struct answer *answer = user;
    const size_t   at = strlen(answer->said);
    (void)level;
    snprintf(answer->said + at, sizeof answer->said - at, "%s\n", message);
}

static void open_auto(struct answer *out)
{
    struct sac_context_params params = sac_context_params_default();
    sac_context              *ctx = NULL;
    sac_device               *dev = NULL;
    params.log_fn = keep;
    params.log_user = out;
    if (sac_context_create(&params, &ctx) == SAC_OK)
        sac_device_open(ctx, "auto", NULL, &dev);
    sac_device_unref(&dev);
    sac_context_destroy(&ctx);
}

/* In a process of its own. */
static void find_with(int driver, struct answer *out)
{
    char version[16];
    snprintf(version, sizeof version, "%d", driver);
    setenv("STANDIN_DRIVER", version, 1);
    if (!dlopen(FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL)) /* whoever asks for libcuda.so.1 has it from
                                                         now on */
        fprintf(stderr, "%s\n", dlerror());
    sac_gpu_facts_find(&out->facts);
    open_auto(out);
}

/* driver   1000 * major + 10 * minor; 0: one that does not know its version. */
static struct answer answer_with(int driver)
{
    struct answer answer = {0};
    int           ends[2], status = -1;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        find_with(driver, &answer);
        _exit(write(ends[1], &answer, sizeof answer) != (ssize_t)sizeof answer);
    }
    close(ends[1]);
    for (size_t at = 0; at < sizeof answer;) {
        const ssize_t n = read(ends[0], (char *)&answer + at, sizeof answer - at);
        assert_true(n > 0);
        at += (size_t)n;
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return answer;
}

/* CUDA's major version that the plug-in was built with. */
static int build_major(void)
{
    const struct sac_gpu_facts facts = answer_with(0).facts;
    int                        major = 0;
    if (!facts.plugin) {
        print_message("skipped: %s\n", facts.device);
        skip();
    }
    assert_int_equal(sscanf(facts.build, "CUDA %d.", &major), 1);
    return major;
}

/* aloud: the doctor's sentence is also said to those who opened "auto"; else they hear nothing. */
static void expect(int driver, const char *words, bool aloud)
{
    const struct answer answer = answer_with(driver);
    assert_true(answer.facts.libcuda && answer.facts.plugin && !answer.facts.opened);
    if (!strstr(answer.facts.device, words) ||
        (aloud ? !strstr(answer.said, words) : answer.said[0] != '\0'))
        fail_msg("with a driver for CUDA %d.%d: '%s' and '%s' do not say '%s'", driver / 1000,
                 driver % 1000 / 10, answer.facts.device, answer.said, words);
}

static void newer_drivers_serve(void **state)
{
    (void)state;
    const int major = build_major();
    for (int driver = major * 1000; driver < major * 1000 + 100; driver += 20) /* also one older
                                                                                  than the build */
        expect(driver, "the driver sees no NVIDIA GPU", false);
    expect((major + 1) * 1000, "the driver sees no NVIDIA GPU", false);
}

static void older_drivers_are_told_from_the_build(void **state)
{
    (void)state;
    const int major = build_major();
    char      words[120];
    snprintf(words, sizeof words,
             "the NVIDIA driver is for CUDA %d.8 and this build needs %d.0; install a newer driver",
             major - 1, major);
    expect((major - 1) * 1000 + 80, words, true);
    expect(0, "there is no NVIDIA driver", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newer_drivers_serve),
        cmocka_unit_test(older_drivers_are_told_from_the_build),
    };
    return cmocka_run_group_tests_name("observe/driver", tests, NULL, NULL);
}
