/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "src/cli/counterparts.h"
#include "src/cli/options.h"
#include "tests/test.h"

/* "--no-audio" is --audio, "precision fp16" is --precision. */
static const struct option *option_of(const char *text)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " "), text);
    const struct option *option = option_find(name, VERB_TRACK);
    return !option && strncmp(name, "no-", 3) == 0 ? option_find(name + 3, VERB_TRACK) : option;
}

static void each_names_an_option_or_says_what_to_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < counterpart_count; i++) {
        const struct counterpart *c = &counterparts[i];
        if (!c->option && !c->advice)
            fail_msg("'%s' leads nowhere", c->word);
        if (c->option && !option_of(c->option))
            fail_msg("'%s': track has no '%s'", c->word, c->option);
        if (option_find(c->word, VERB_TRACK))
            fail_msg("'%s' is an option of ours", c->word);
        assert_ptr_equal(counterpart_find(c->word), c); /* once */
    }
}

static void values_are_spelled_as_help_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < counterpart_count; i++) {
        const char *space = counterparts[i].option ? strchr(counterparts[i].option, ' ') : NULL;
        if (counterparts[i].option && !space &&
            option_of(counterparts[i].option)->type != OPTION_FLAG)
            fail_msg("'%s': '%s' wants a value", counterparts[i].word, counterparts[i].option);
    }
}

static void words_are_found_as_they_are_typed(void **state)
{
    (void)state;
    assert_non_null(counterpart_find("conf_thres"));
    assert_non_null(counterpart_find("save-txt"));
    assert_null(counterpart_find("conf-thresh"));
    assert_null(counterpart_find("con"));
    assert_null(counterpart_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_names_an_option_or_says_what_to_do),
        cmocka_unit_test(values_are_spelled_as_help_does),
        cmocka_unit_test(words_are_found_as_they_are_typed),
    };
    return cmocka_run_group_tests_name("cli/counterparts", tests, NULL, NULL);
}
