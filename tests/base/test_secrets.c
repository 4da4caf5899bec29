/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "tests/test.h"

static const struct {
    const char *text, *expect;
} cases[] = {
    {"", ""},
    {"in.mp4", "in.mp4"},
    {"dir/a@b.mp4: 12:30, see a?b=c", "dir/a@b.mp4: 12:30, see a?b=c"},
    {"rtsp://camera/1", "rtsp://camera/1"},
    {"rtsp://10.0.0.7:554/1?channel=1&subtype=0", "rtsp://10.0.0.7:554/1?channel=1&subtype=0"},
    {"https://example.org/a/@b/c.mp4", "https://example.org/a/@b/c.mp4"},
    {"file:///tmp/a?token=1", "file:///tmp/a?token=1"},
    /* user and password */
    {"rtsp://user:SECRET@camera:554/1", "rtsp://***@camera:554/1"},
    {"RTSP://SECRET@camera", "RTSP://***@camera"},
    {"rtsp://user:SEC@RET@camera/1", "rtsp://***@camera/1"},
    {"rtsp://user:SEC%40RET@camera/1", "rtsp://***@camera/1"},
    {"rtsp://user:SEC/RET@camera/1", "rtsp://***@camera/1"},
    {"rtsp://user:SEC?RET@camera/1", "rtsp://***@camera/1"},
    {"rtsp://user:SEC RET@camera/1", "rtsp://***@camera/1"},
    {"rtsp://user:SEC'RET@camera/1", "rtsp://***@camera/1"},
    {"rtsp://user:SECRET@[2001:db8::7]:554/1", "rtsp://***@[2001:db8::7]:554/1"},
    {"http://[::1]:8080/a", "http://[::1]:8080/a"},
    {"rtsp:user:SECRET@camera/1", "rtsp:***@camera/1"},
    {"rtsp:/user:SECRET@camera/1", "rtsp:/***@camera/1"},
    {"rtsp://user:SECR", "rtsp://***"}, /* cut */
    /* queries: what is not known to be harmless */
    {"http://h/a.m3u8?token=SECRET", "http://h/a.m3u8?token=***"},
    {"http://h/a?channel=2&to%6ben=SECRET&fps=5", "http://h/a?channel=2&to%6ben=***&fps=5"},
    {"http://h/a?X-Amz-Signature=SECRET&width=2#SECRET",
     "http://h/a?X-Amz-Signature=***&width=2#***"},
    {"http://h/a?SECRET", "http://h/a?***"},
    {"http://h/a;jsessionid=SECRET", "http://h/a;jsessionid=***"},
    {"srt://h:9000?mode=caller&passphrase=SECRET", "srt://h:9000?mode=caller&passphrase=***"},
    /* in sentences, and several */
    {"cannot open 'rtsp://u:SECRET@h/1': refused", "cannot open 'rtsp://***@h/1': refused"},
    {"Opening 'http://h/a.ts?sig=SECRET' for reading",
     "Opening 'http://h/a.ts?sig=***' for reading"},
    {"(tcp://h:80), then http://u:SECRET@g.", "(tcp://h:80), then http://***@g."},
    {"concat:http://u:SECRET@a/1|http://u:SECRET@b/2", "concat:http://***@a/1|http://***@b/2"},
    {"crypto+https://u:SECRET@h/a", "crypto+https://***@h/a"},
    {"--config site.yaml rtsp://u:SECRET@h/1 -o out", "--config site.yaml rtsp://***@h/1 -o out"},
    {"http: 404 not found", "http: 404 not found"},
    {"tcp://h:80: Connection refused", "tcp://h:80: Connection refused"},
};

static void hides_what_is_secret(void **state)
{
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        char shown[256], twice[256];
        assert_int_equal(sac_hide_secrets(cases[i].text, shown, sizeof shown),
                         strlen(cases[i].expect));
        assert_string_equal(shown, cases[i].expect);
        sac_hide_secrets(shown, twice, sizeof twice); /* lines pass more than one place that hides
                                                       */
        assert_string_equal(twice, shown);
    }
}

static void says_how_long_it_is_and_never_writes_past_the_end(void **state)
{
    (void)state;
    const char *text = "rtsp://user:SECRET@camera/1";
    const char *expect = "rtsp://***@camera/1";
    for (size_t size = 0; size < 40; size++) {
        char shown[48];
        memset(shown, '#', sizeof shown);
        assert_int_equal(sac_hide_secrets(text, shown, size), strlen(expect));
        assert_int_equal(shown[size], '#');
        if (size)
            assert_int_equal(strncmp(shown, expect, SAC_MIN(size - 1, strlen(expect))), 0);
        if (size)
            assert_int_equal(strlen(shown), SAC_MIN(size - 1, strlen(expect)));
    }
    assert_int_equal(sac_hide_secrets(text, NULL, 0), strlen(expect));
    assert_int_equal(sac_hide_secrets(NULL, NULL, 0), 0);
}

static void keep_line(void *user, enum sac_log_level level, const char *message)
{
    (void)level;
    snprintf(user, 256, "%s", message);
}

/* Whoever logs or fails need not think of it. */
static void no_sentence_and_no_line_of_the_log_has_one(void **state)
{
    (void)state;
    char                      line[256] = "", why[256];
    struct sac_context_params params = {keep_line, line, SAC_LOG_TRACE};
    sac_context              *ctx = NULL;
    assert_int_equal(sac_context_create(&params, &ctx), SAC_OK);
    sac_log(ctx, SAC_LOG_INFO, "reading %s", "rtsp://u:SECRET@h/1");
    assert_string_equal(line, "reading rtsp://***@h/1");
    SAC_FAIL(ctx, SAC_ERR_IO, "%s: no answer", "http://h/1?key=SECRET");
    assert_string_equal(line, "input/output error: http://h/1?key=***: no answer");
    sac_fail_prefix(ctx, SAC_ERR_IO, "%s: ", "http://u:SECRET@h");
    sac_context_last_error(ctx, why, sizeof why);
    assert_string_equal(why, "http://***@h: http://h/1?key=***: no answer");
    sac_context_destroy(&ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hides_what_is_secret),
        cmocka_unit_test(says_how_long_it_is_and_never_writes_past_the_end),
        cmocka_unit_test(no_sentence_and_no_line_of_the_log_has_one),
    };
    return cmocka_run_group_tests_name("base/secrets", tests, NULL, NULL);
}
