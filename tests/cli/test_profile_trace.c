/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as observe/trace.c writes them, of runs that take longer to open than to run. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/profile.h"
#include "tests/test.h"

static struct profile_trace trace;

static void put_span(FILE *file, int tid, const char *stage, double begun_us, double took_us)
{
    fprintf(file,
            "{\"name\":\"%s\",\"cat\":\"stage\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,"
            "\"dur\":%.3f,\"args\":{\"frame\":0,\"batch\":1}},\n",
            stage, tid, begun_us, took_us);
}

/* Decoding begins at once; after so long, ten frames of 10 ms. */
static void read_run(double opening_us)
{
    char  path[] = "/tmp/saccade-test-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    fputs("{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"read\"}}"
          ",\n",
          file);
    for (double at = 0; at < opening_us; at += 10e3)
        put_span(file, 1, "decode", at, 9e3);
    for (int i = 0; i < 10; i++)
        put_span(file, 2, "inference", opening_us + i * 10e3, 8e3);
    fclose(file);
    profile_read_trace(path, &trace);
    unlink(path);
}

static void the_middle_is_that_of_the_run(void **state)
{
    (void)state;
    for (double opening_us = 0; opening_us < 3e6; opening_us += 0.9e6) {
        read_run(opening_us);
        assert_in_range(trace.span_count, 1, 4);
        for (int i = 0; i < trace.span_count; i++)
            assert_string_equal(trace.span[i].stage, "inference");
        assert_true(trace.batches[1] == 10);
        assert_string_equal(trace.track[0], "read");
    }
}

static void a_trace_without_frames_has_no_middle(void **state)
{
    (void)state;
    profile_read_trace("/nowhere/trace.json", &trace);
    assert_int_equal(trace.span_count, 0);
    assert_int_equal(trace.track_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_middle_is_that_of_the_run),
        cmocka_unit_test(a_trace_without_frames_has_no_middle),
    };
    return cmocka_run_group_tests_name("cli/profile_trace", tests, NULL, NULL);
}
