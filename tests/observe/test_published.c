/* SPDX-License-Identifier: Apache-2.0 */
/* What a run publishes is what others read, and nobody else's files are believed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/monitor.h"
#include "observe/published.h"
#include "tests/test.h"

static char root[64], folder[128];

static int make_folder(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/saccade-published-XXXXXX");
    if (!mkdtemp(root))
        return -1;
    snprintf(folder, sizeof folder, "%s/saccade", root);
    return setenv("XDG_RUNTIME_DIR", root, 1);
}

static int remove_folder(void **state)
{
    char command[100];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

struct seen {
    int    count, pid, figures, events;
    char   title[256], unit[16], event[320];
    double now, elapsed_s, ended_s;
};

static void see(void *user, const struct sac_monitor_run *run)
{
    struct seen *s = user;
    s->count++;
    s->pid = run->pid;
    s->figures = run->figure_count;
    s->events = run->event_count;
    s->elapsed_s = run->elapsed_s;
    snprintf(s->title, sizeof s->title, "%s", run->title);
    if (run->figure_count) {
        s->now = run->figures[0].now;
        snprintf(s->unit, sizeof s->unit, "%s", run->figures[0].unit);
    }
    if (run->event_count) {
        s->ended_s = run->events[0].ended_s;
        snprintf(s->event, sizeof s->event, "%s", run->events[0].text);
    }
    assert_true(run->silent_s >= 0 && run->silent_s < 600);
}

static struct seen list(void)
{
    struct seen s = {0};
    assert_sac_ok(sac_monitor_list_runs(test_context(), see, &s));
    return s;
}

static void sample(sac_monitor *m, double share)
{
    sac_monitor_begin(m);
    sac_monitor_put(m, SAC_ALARM_FULL, "share", share, "memory \"of\" it");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "", NAN, "never");
    sac_monitor_end(m);
}

static void what_is_published_is_read(void **state)
{
    (void)state;
    struct sac_published p;
    sac_monitor         *m = NULL;
    assert_int_equal(list().count, 0);
    assert_sac_ok(sac_monitor_create_empty(test_context(), NULL, &m));
    sac_published_open(&p, "a \\ \"file\".mp4");
    for (int i = 0; i < 6; i++)
        sample(m, 0.99);
    sac_published_write(&p, m);
    struct seen s = list();
    assert_int_equal(s.count, 1);
    assert_int_equal(s.pid, getpid());
    assert_string_equal(s.title, "a \\ \"file\".mp4");
    assert_int_equal(s.figures, 2);
    assert_true(fabs(s.now - 0.99) < 1e-3);
    assert_string_equal(s.unit, "share");
    assert_int_equal(s.events, 1);
    assert_true(s.ended_s < 0); /* it goes on */
    assert_string_equal(s.event, "memory \"of\" it: 99 %, and the limit is 95 %");
    for (int i = 0; i < 6; i++)
        sample(m, 0.5);
    sac_published_write(&p, m);
    assert_true(list().ended_s >= 0);
    sac_published_close(&p);
    assert_int_equal(list().count, 0);
    sac_monitor_destroy(&m);
}

/* A program may run several pipelines at once. */
static void runs_of_one_process_are_apart(void **state)
{
    (void)state;
    struct sac_published p[2];
    sac_monitor         *m = NULL;
    assert_sac_ok(sac_monitor_create_empty(test_context(), NULL, &m));
    for (int i = 0; i < 2; i++) {
        sac_published_open(&p[i], i ? "second" : "first");
        sample(m, 0.5);
        sac_published_write(&p[i], m);
    }
    assert_int_equal(list().count, 2);
    sac_published_close(&p[0]);
    assert_int_equal(list().count, 1);
    assert_string_equal(list().title, "second");
    sac_published_close(&p[1]);
    assert_int_equal(list().count, 0);
    sac_monitor_destroy(&m);
}

static void write_file(const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int ended_process(void)
{
    const pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    return pid;
}

static bool is_there(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void other_files_are_passed_over(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "null",
        "{\"format\":\"saccade-run\"}",
        "{\"format\":\"saccade-run\",\"version\":2,\"figures\":[]}",
        "{\"format\":\"saccade-run\",\"version\":1,\"figures\":[{\"name\":3}]}",
        "{\"format\":\"saccade-run\",\"version\":1,\"events\":{}}"};
    char name[32], dead[32], cut[32];
    snprintf(name, sizeof name, "%d.json", (int)getpid());
    for (size_t i = 0; i < SAC_COUNT(bad); i++) {
        write_file(name, bad[i]);
        assert_int_equal(list().count, 0);
    }
    write_file(name, "{\"format\":\"saccade-run\",\"version\":1,\"later\":[{}],\"title\":\"t\","
                     "\"written_ms\":99999999999999}");
    assert_int_equal(list().count, 1); /* a later version's member */
    snprintf(dead, sizeof dead, "%d.json", ended_process());
    write_file(dead, "{}");
    snprintf(cut, sizeof cut, "%d-1.json.part", ended_process());
    write_file(cut, "{");
    write_file("notes.json", "{}");
    list();
    assert_false(is_there(dead)); /* a run that crashed */
    assert_false(is_there(cut));
    assert_true(is_there("notes.json"));
}

/* In a folder that others can write, somebody else may have put it. */
static void the_folder_is_ones_own(void **state)
{
    (void)state;
    char path[256];
    assert_true(sac_published_folder(path, sizeof path));
    assert_string_equal(path, folder);
    assert_int_equal(chmod(folder, 0777), 0);
    if (sac_published_folder(path, sizeof path)) /* the next place */
        assert_string_not_equal(path, folder);
    assert_int_equal(chmod(folder, 0700), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_published_is_read),
        cmocka_unit_test(runs_of_one_process_are_apart),
        cmocka_unit_test(other_files_are_passed_over),
        cmocka_unit_test(the_folder_is_ones_own),
    };
    return cmocka_run_group_tests_name("observe/published", tests, make_folder, remove_folder);
}
