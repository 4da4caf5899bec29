/* SPDX-License-Identifier: Apache-2.0 */
/* What is a model's name, and what is a path; the folders themselves are tested with the program
 * (tests/cli/test_shipped.py). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <saccade/models.h>

#include "base/base.h"
#include "tests/test.h"

static void a_path_stays_as_it_is(void **state)
{
    (void)state;
    static const char *const paths[] = {"/nowhere/person_det", "./person_det", "person_det.onnx",
                                        ""};
    char                     path[PATH_MAX];
    for (size_t i = 0; i < SAC_COUNT(paths); i++) {
        assert_sac_ok(sac_models_find(test_context(), paths[i], path, sizeof path));
        assert_string_equal(path, paths[i]);
    }
}

static void a_name_becomes_a_path(void **state)
{
    (void)state;
    char path[PATH_MAX], small[8] = "before";
    assert_sac_ok(sac_models_find(test_context(), "person_det", path, sizeof path));
    assert_non_null(strstr(path, "/models/person_det.onnx"));
    assert_sac_error(sac_models_find(test_context(), "person_det", small, sizeof small),
                     SAC_ERR_LIMIT);
    assert_sac_error(sac_models_find(test_context(), "/nowhere/x", small, sizeof small),
                     SAC_ERR_LIMIT);
    assert_int_equal(setenv("SACCADE_MODELS", "/nowhere", 1), 0);
    assert_sac_ok(sac_models_find(test_context(), "person_det", path, sizeof path));
    unsetenv("SACCADE_MODELS");
}

static void an_unknown_name_is_refused(void **state)
{
    (void)state;
    char path[PATH_MAX] = "before", why[1024], name[5000];
    assert_sac_error(sac_models_find(test_context(), "nobody", path, sizeof path), SAC_ERR_IO);
    assert_string_equal(path, "before");
    sac_context_last_error(test_context(), why, sizeof why);
    assert_non_null(strstr(why, "no model 'nobody'"));
    assert_non_null(strstr(why, "person_det_fast"));
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_sac_error(sac_models_find(test_context(), name, path, sizeof path), SAC_ERR_IO);
}

static void count_model(void *user, const struct sac_shipped_model *model)
{
    assert_true(model->name[0] && model->what[0]);
    if (strcmp(model->name, "person_det") == 0)
        assert_non_null(strstr(model->path, "/person_det.onnx"));
    ++*(int *)user;
}

static void all_are_listed(void **state)
{
    (void)state;
    int count = 0;
    sac_models_list(count_model, &count);
    assert_int_equal(count, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_stays_as_it_is),
        cmocka_unit_test(a_name_becomes_a_path),
        cmocka_unit_test(an_unknown_name_is_refused),
        cmocka_unit_test(all_are_listed),
    };
    return cmocka_run_group_tests_name("engine/shipped", tests, NULL, NULL);
}
