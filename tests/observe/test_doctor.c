/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <saccade/doctor.h>

#include "tests/test.h"

struct seen {
    int  findings, cpu, ffmpeg, onednn, gpu, faults;
    char last_area[32];
    int  torn; /* an area came back after another one */
};

static void look(void *user, const struct sac_finding *finding)
{
    struct seen *seen = user;
    assert_non_null(finding->text);
    assert_true(strlen(finding->text) > 0);
    assert_null(strchr(finding->text, '\n'));
    int *count = strcmp(finding->area, "cpu") == 0      ? &seen->cpu
                 : strcmp(finding->area, "ffmpeg") == 0 ? &seen->ffmpeg
                 : strcmp(finding->area, "onednn") == 0 ? &seen->onednn
                 : strcmp(finding->area, "gpu") == 0    ? &seen->gpu
                                                        : NULL;
    if (count && strcmp(seen->last_area, finding->area) != 0)
        seen->torn += *count != 0;
    if (count)
        ++*count;
    seen->findings++;
    seen->faults += finding->level == SAC_FINDING_FAULT;
    assert_true(finding->level != SAC_FINDING_OK || !finding->mend);
    strcpy(seen->last_area, finding->area);
}

static void every_area_is_looked_at_once(void **state)
{
    (void)state;
    struct seen seen = {0};
    sac_doctor_run(test_context(), look, &seen);
    assert_true(seen.cpu >= 2);
    assert_true(seen.ffmpeg >= 3);
    assert_int_equal(seen.onednn, 1);
    assert_true(seen.gpu >= 1);
    assert_int_equal(seen.torn, 0);
    /* the tests themselves decode H.264 */
    assert_int_equal(seen.faults, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_area_is_looked_at_once)};
    return cmocka_run_group_tests_name("observe/doctor", tests, NULL, NULL);
}
