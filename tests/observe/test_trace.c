/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/thread.h"
#include "observe/trace.h"
#include "tests/temporary.h"
#include "tests/test.h"

static char path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/saccade-test-trace-%d.json", (int)getpid());
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static struct sac_trace *new_trace(void)
{
    struct sac_trace *trace = NULL;
    assert_sac_ok(sac_trace_create(test_context(), path, &trace));
    return trace;
}

static cJSON *read_trace(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(1, size + 1);
    assert_int_equal(fread(bytes, 1, size, file), size);
    fclose(file);
    cJSON *json = cJSON_Parse(bytes);
    free(bytes);
    assert_true(cJSON_IsArray(json));
    return json;
}

static int count_phase(const cJSON *json, const char *phase)
{
    int          n = 0;
    const cJSON *event;
    cJSON_ArrayForEach(event, json) n +=
        !strcmp(cJSON_GetObjectItem(event, "ph")->valuestring, phase);
    return n;
}

static double number(const cJSON *event, const char *key)
{
    return cJSON_GetObjectItem(event, key)->valuedouble;
}

static void an_event_is_found_again(void **state)
{
    (void)state;
    struct sac_trace *trace = new_trace();
    int64_t           now = sac_time_ns();
    int               gpu = sac_trace_track(trace, "gpu \"0\"");
    sac_trace_add(trace, &(struct sac_trace_event){.name = "inference",
                                                   .track = gpu,
                                                   .begun_ns = now,
                                                   .ended_ns = now + 1500250,
                                                   .frame = 7,
                                                   .pts_us = 280000,
                                                   .stream_id = 3,
                                                   .batch = 4});
    sac_trace_add(trace, &(struct sac_trace_event){.name = "early",
                                                   .track = sac_trace_thread(trace),
                                                   .begun_ns = now - 3600000000000,
                                                   .ended_ns = now});
    sac_trace_add(trace, &(struct sac_trace_event){.name = "nowhere", .track = -1});
    assert_int_equal(access(path, F_OK), -1); /* under its name when it is whole */
    assert_sac_ok(sac_trace_finish(trace));
    sac_trace_add(trace, &(struct sac_trace_event){.name = "late", .track = gpu});
    assert_sac_ok(sac_trace_finish(trace));
    sac_trace_destroy(&trace);
    assert_null(trace);
    assert_int_equal(temporaries_of(path, NULL, 0), 0);

    cJSON *json = read_trace();
    assert_int_equal(count_phase(json, "M"), 3); /* the process and two tracks */
    assert_int_equal(count_phase(json, "X"), 2);
    const cJSON *event, *seen = NULL;
    cJSON_ArrayForEach(event, json)
    {
        if (!strcmp(cJSON_GetObjectItem(event, "name")->valuestring, "inference"))
            seen = event;
        if (!strcmp(cJSON_GetObjectItem(event, "name")->valuestring, "early"))
            assert_true(number(event, "ts") >= 0); /* before the trace: clamped */
    }
    assert_non_null(seen);
    assert_true(number(seen, "dur") == 1500.25);
    const cJSON *args = cJSON_GetObjectItem(seen, "args");
    assert_true(number(args, "frame") == 7 && number(args, "stream") == 3);
    assert_true(number(args, "pts") == 0.28 && number(args, "batch") == 4);
    cJSON_ArrayForEach(event, json)
    {
        if (!strcmp(cJSON_GetObjectItem(event, "name")->valuestring, "thread_name") &&
            number(event, "tid") == number(seen, "tid"))
            assert_string_equal(
                cJSON_GetObjectItem(cJSON_GetObjectItem(event, "args"), "name")->valuestring,
                "gpu \"0\"");
    }
    cJSON_Delete(json);
}

struct load {
    struct sac_trace *trace;
    int               events;
};

static void *add_events(void *arg)
{
    struct load *load = arg;
    int          track = sac_trace_thread(load->trace);
    for (int i = 0; i < load->events; i++) {
        sac_trace_add(load->trace, &(struct sac_trace_event){.name = "work",
                                                             .track = track,
                                                             .frame = i,
                                                             .begun_ns = sac_time_ns(),
                                                             .ended_ns = sac_time_ns()});
    }
    return NULL;
}

static int lines_in(const char *name)
{
    FILE *file = fopen(name, "r");
    int   lines = 0;
    assert_non_null(file);
    for (int c = getc(file); c != EOF; c = getc(file))
        lines += c == '\n';
    fclose(file);
    return lines;
}

/* Many times what the ring holds, a part of it at a time: whoever is slow, the threads or the
 * writer, the ring never overflows. */
static void threads_lose_nothing(void **state)
{
    (void)state;
    enum { THREADS = 4, EVENTS = 3000, ROUNDS = 6 };
    struct load load = {new_trace(), EVENTS};
    pthread_t   threads[THREADS];
    char        written[300];
    assert_int_equal(temporaries_of(path, written, sizeof written), 1);
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < THREADS; i++)
            assert_sac_ok(
                sac_thread_start(test_context(), &threads[i], "worker", add_events, &load));
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        int64_t until = sac_time_ns() + 60000000000;
        while (lines_in(written) < round * THREADS * EVENTS && sac_time_ns() < until)
            usleep(5000);
    }
    assert_sac_ok(sac_trace_finish(load.trace));
    sac_trace_destroy(&load.trace);
    cJSON *json = read_trace();
    assert_int_equal(count_phase(json, "X"), ROUNDS * THREADS * EVENTS);
    assert_int_equal(count_phase(json, "M"), 1 + ROUNDS * THREADS);
    cJSON_Delete(json);
}

/* A pipe that nobody reads: recording must neither wait nor grow. */
static void a_stuck_disk_holds_nobody_up(void **state)
{
    (void)state;
    struct load load = {NULL, 30000}; /* the ring holds half of them */
    int         ends[2];
    char        name[64];
    assert_int_equal(pipe(ends), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    assert_sac_ok(sac_trace_create(test_context(), name, &load.trace));
    int64_t begun = sac_time_ns();
    add_events(&load);
    assert_in_range(sac_time_ns() - begun, 0, 20000000000);
    close(ends[0]); /* the writer's write fails now */
    assert_int_not_equal(sac_trace_finish(load.trace), SAC_OK);
    sac_trace_destroy(&load.trace);
    close(ends[1]);
}

static void an_unfinished_one_goes_away(void **state)
{
    (void)state;
    struct sac_trace *trace = new_trace();
    sac_trace_add(trace, &(struct sac_trace_event){.name = "x", .track = sac_trace_thread(trace)});
    sac_trace_destroy(&trace);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(temporaries_of(path, NULL, 0), 0);
    assert_sac_error(sac_trace_create(test_context(), "/nowhere/t.json", &trace), SAC_ERR_IO);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_event_is_found_again, remove_files),
        cmocka_unit_test_teardown(threads_lose_nothing, remove_files),
        cmocka_unit_test_teardown(a_stuck_disk_holds_nobody_up, remove_files),
        cmocka_unit_test_teardown(an_unfinished_one_goes_away, remove_files),
    };
    return cmocka_run_group_tests_name("observe/trace", tests, set_up, NULL);
}
