/* SPDX-License-Identifier: Apache-2.0 */
/* A monitor of a machine with a card that is not there, and of runs in which something goes wrong.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "observe/run_watch.h"
#include "tests/test.h"

static sac_monitor *empty(void)
{
    sac_monitor *m = NULL;
    assert_sac_ok(sac_monitor_create_empty(test_context(), NULL, &m));
    return m;
}

static double now_of(sac_monitor *m, const char *name)
{
    struct sac_monitor_figure f;
    for (int i = 0; i < sac_monitor_figure_count(m); i++)
        if (sac_monitor_get_figure(m, i, &f) == SAC_OK && strcmp(f.name, name) == 0)
            return f.now;
    fail_msg("no figure '%s'", name);
    return 0;
}

/* The only event of this figure. */
static struct sac_monitor_event event_of(sac_monitor *m, const char *figure)
{
    struct sac_monitor_event e, found = {.ended_s = -2};
    for (int i = 0; i < sac_monitor_event_count(m); i++) {
        assert_sac_ok(sac_monitor_get_event(m, i, &e));
        if (strcmp(e.figure, figure) != 0)
            continue;
        if (found.ended_s != -2)
            fail_msg("'%s' is reported again: %s; before: %s", figure, e.text, found.text);
        found = e;
    }
    if (found.ended_s == -2)
        fail_msg("'%s' is not reported", figure);
    return found;
}

static void assert_says(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("'%s' does not say '%s'", text, words);
}

/* ---- the machine ---- */

static void (*set_card)(unsigned, unsigned, unsigned long long, unsigned);

static void a_card_is_watched(void **state)
{
    (void)state;
    void        *library = dlopen(FAKE_NVML, RTLD_NOW);
    sac_monitor *m = empty();
    assert_non_null(library);
    *(void **)&set_card = dlsym(library, "fake_nvml_set");
    sac_monitor_find_cards(m, FAKE_NVML);
    assert_string_equal(sac_monitor_gpu_name(m, 0), "Card 1");
    assert_null(sac_monitor_gpu_name(m, 1));
    for (int i = 0; i < 5; i++)
        sac_monitor_sample(m);
    assert_int_equal(sac_monitor_event_count(m), 0);
    assert_true(now_of(m, "gpu0 temperature") == 40 && now_of(m, "gpu0 power") == 100);
    assert_true(fabs(now_of(m, "gpu0 power of its limit") - 0.25) < 1e-6);
    assert_true(now_of(m, "gpu0 clock") == 1500 && now_of(m, "gpu0 memory clock") == 2600);
    assert_true(now_of(m, "gpu0 bus to it") == 7 && now_of(m, "gpu0 bus from it") == 3);
    struct sac_monitor_process process[SAC_MONITOR_PROCESSES_MAX];
    assert_int_equal(sac_monitor_get_processes(m, 0, process, SAC_MONITOR_PROCESSES_MAX), 1);
    assert_int_equal(process[0].pid, getpid());
    assert_string_equal(process[0].name, "test_observe_mo"); /* what the kernel keeps of it */
    assert_int_equal(process[0].memory_bytes, 600000000);
    assert_int_equal(sac_monitor_get_processes(m, 1, process, 1), 0);
    assert_int_equal(sac_monitor_get_processes(m, -1, process, 1), 0);
    assert_int_equal(sac_monitor_get_processes(m, 0, NULL, 1), 0);
    assert_true(now_of(m, "gpu0 processes") == 1 && now_of(m, "gpu0 throttled by heat") == 0);
    assert_true(fabs(now_of(m, "gpu0 decoder") - 0.4) < 1e-6);
    set_card(91, 398000, 0x20 | 1, 900);
    for (int i = 0; i < 8; i++)
        sac_monitor_sample(m);
    assert_says(event_of(m, "gpu0 temperature").text, "91 C, and the limit is 87 C");
    assert_says(event_of(m, "gpu0 power of its limit").text, "100 %, and the limit is 98 %");
    assert_says(event_of(m, "gpu0 throttled by heat").text, "slows itself down");
    assert_true(now_of(m, "gpu0 processes") == 900); /* too many to list */
    assert_int_equal(sac_monitor_get_processes(m, 0, process, 1), 0);
    assert_int_equal(sac_monitor_event_count(m), 3);
    set_card(40, 100000, 1, 30);
    for (int i = 0; i < 8; i++)
        sac_monitor_sample(m);
    assert_int_equal(sac_monitor_get_processes(m, 0, process, SAC_MONITOR_PROCESSES_MAX), 16);
    assert_int_equal(process[0].pid, getppid()); /* it holds the most */
    assert_int_equal(process[1].pid, getpid());
    assert_true(process[2].memory_bytes == 0 && process[2].name[0] == '\0');
    set_card(40, 100000, 1, 1);
    assert_true(event_of(m, "gpu0 temperature").ended_s >= 0);
    assert_true(event_of(m, "gpu0 throttled by heat").ended_s >= 0);
    assert_int_equal(sac_monitor_event_count(m), 3);
    assert_true(sac_monitor_cost(m) > 0);
    sac_monitor_destroy(&m);
    dlclose(library);
}

static void without_a_card_the_machine_is_watched(void **state)
{
    (void)state;
    sac_monitor *m = empty();
    sac_monitor_find_cards(m, "/nowhere/libnvidia-ml.so.1");
    assert_null(sac_monitor_gpu_name(m, 0));
    sac_monitor_sample(m);
    assert_true(now_of(m, "memory") > 0 && now_of(m, "memory") < 1);
    sac_monitor_destroy(&m);
    sac_monitor_destroy(&m);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    struct sac_monitor_params params = sac_monitor_params_default();
    struct sac_monitor_figure figure;
    struct sac_monitor_event  event;
    sac_monitor              *m = NULL;
    params.interval_ms = 20;
    assert_why(sac_monitor_create(test_context(), &params, &m), SAC_ERR_ARG, "interval_ms");
    params = sac_monitor_params_default();
    params.anomaly_ratio = 0.5;
    assert_why(sac_monitor_create(test_context(), &params, &m), SAC_ERR_ARG, "anomaly_ratio");
    params = sac_monitor_params_default();
    params.hold_s = NAN;
    assert_why(sac_monitor_create(test_context(), &params, &m), SAC_ERR_ARG, "hold_s");
    assert_null(m);
    assert_sac_ok(sac_monitor_create(test_context(), NULL, &m));
    assert_sac_error(sac_monitor_get_figure(m, 0, &figure), SAC_ERR_ARG);
    assert_sac_error(sac_monitor_get_event(m, -1, &event), SAC_ERR_ARG);
    assert_int_equal(sac_monitor_figure_count(NULL), 0);
    assert_sac_error(sac_monitor_list_runs(test_context(), NULL, NULL), SAC_ERR_ARG);
    sac_monitor_destroy(&m);
}

/* ---- runs in which something goes wrong ---- */

/* A run as its figures tell it, one sample a second. */
struct run {
    double fps, inference_ms, tracking_ms, others, wait, held, load, objects, batch;
    double pool, decode, inference, processes;
    double input, detect, write, disk, due; /* due: 0 unknown */
    double stolen;
};
static const struct run ordinary = {.fps = 100,
                                    .inference_ms = 4,
                                    .tracking_ms = 1,
                                    .others = 0.05,
                                    .load = 0.8,
                                    .objects = 8,
                                    .batch = 4,
                                    .pool = 400e6,
                                    .decode = 200e6,
                                    .inference = 150e6,
                                    .processes = 1,
                                    .input = 100,
                                    .due = 100};

static void sample(sac_monitor *m, const struct run *r, int i)
{
    const double sway = 1 + 0.05 * sin(i * 1.7);
    sac_monitor_begin(m);
    sac_monitor_put(m, SAC_ALARM_NOTHING, "share", r->held, "cpu held back");
    sac_monitor_put(m, SAC_ALARM_STOLEN, "share", r->stolen, "cpu stolen");
    sac_monitor_put(m, SAC_ALARM_OTHERS, "share", r->others * sway, "cpu of others");
    sac_monitor_put(m, SAC_ALARM_STRETCH, "", 1 + r->wait / r->load, "stretch");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "cores", r->load * sway, "thread sac-infer");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "share", r->wait * sway, "wait sac-infer");
    sac_monitor_put(m, SAC_ALARM_RATE, "frames/s", r->fps * sway, "frames");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "", r->objects, "objects");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "frames", r->batch, "batch");
    sac_monitor_put_time(m, SAC_ALARM_WORK, r->inference_ms * sway, 1, "stage inference");
    sac_monitor_put_time(m, SAC_ALARM_WORK, r->tracking_ms * sway, 1, "stage tracking");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "bytes", r->decode, "memory decode");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "bytes", r->inference, "memory inference");
    sac_monitor_put(m, SAC_ALARM_BYTES, "bytes", r->pool * sway, "pool");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "", r->processes, "gpu0 processes");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "frames/s", r->input * sway, "input");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "share", r->detect, "queue detect");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "share", r->write, "queue write");
    sac_monitor_put(m, SAC_ALARM_NOTHING, "share", r->disk, "disk wait");
    if (r->due > 0)
        sac_monitor_put(m, SAC_ALARM_BEHIND, "share", r->fps / r->due, "frames of those due");
    sac_monitor_end(m);
}

/* After a minute and a half of ordinary work; the run is then as told for so many seconds. */
static sac_monitor *after(const struct run *odd, int seconds)
{
    sac_monitor *m = empty();
    for (int i = 0; i < 90; i++)
        sample(m, &ordinary, i);
    assert_int_equal(sac_monitor_event_count(m), 0);
    for (int i = 0; i < seconds; i++)
        sample(m, odd, i);
    return m;
}

/* Within ten seconds, with the cause; and once more when it ends. */
static void faults_are_told_with_their_cause(void **state)
{
    (void)state;
    struct fault {
        struct run  run;
        const char *figure, *says;
    } faults[13];
    for (size_t i = 0; i < SAC_COUNT(faults); i++)
        faults[i].run = ordinary;
    faults[0].run.inference_ms = 13; /* a thread that has no CPU */
    faults[0].run.wait = 0.6;
    faults[0].figure = "stage inference";
    faults[0].says = "thread sac-infer is kept waiting for a CPU for 60 %";
    faults[1].run.inference_ms = 13; /* another program, which also keeps the thread waiting */
    faults[1].run.wait = 0.6;
    faults[1].run.others = 0.9;
    faults[1].run.fps = 30;
    faults[1].figure = "frames"; /* the stage works as it did */
    faults[1].says = "other programs use 9";
    faults[2].run.fps = 30; /* a container's limit */
    faults[2].run.held = 0.7;
    faults[2].figure = "frames";
    faults[2].says = "the control group holds the CPUs back for 70 % of the time";
    faults[3].run.inference_ms = 13; /* on the card */
    faults[3].run.processes = 2;
    faults[3].figure = "stage inference";
    faults[3].says = "2 processes compute on the GPU, and 1 did";
    faults[4].run.tracking_ms = 6; /* a crowd */
    faults[4].run.objects = 60;
    faults[4].figure = "stage tracking";
    faults[4].says = "a frame has 60 objects, and had 8";
    faults[5].run.fps = 40; /* inside the run */
    faults[5].run.inference_ms = 13;
    faults[5].figure = "frames";
    faults[5].says = "stage inference takes 1";
    faults[6].run.fps = 5; /* it stands still */
    faults[6].run.load = 0.02;
    faults[6].figure = "frames";
    faults[6].says = "thread sac-infer runs on 0.02 cores, and ran on 0.8";
    faults[7].run.fps = 30;
    faults[7].figure = "frames";
    faults[7].says = "no other figure tells why";
    faults[8].run.fps = faults[8].run.input = 40; /* a camera that sends less */
    faults[8].run.batch = 1;
    faults[8].run.load = 0.3;
    faults[8].figure = "frames";
    faults[8].says = "the inputs bring 39.9 frames/s, and brought 100.1";
    faults[9].run.fps = faults[9].run.input = 20; /* a sink that stands still: all before it is full
                                                   */
    faults[9].run.detect = faults[9].run.write = 1;
    faults[9].figure = "frames";
    faults[9].says = "the queue before writing is 100 % full, and was 0 %";
    faults[10].run.fps = faults[10].run.input = 20; /* the same, and one sees why */
    faults[10].run.detect = faults[10].run.write = 1;
    faults[10].run.disk = 0.7;
    faults[10].figure = "frames";
    faults[10].says = "programs wait for the disks for 70 % of the time";
    faults[11].run.fps = 40; /* others compute, but it is the stage that sleeps */
    faults[11].run.others = 0.5;
    faults[11].run.tracking_ms = 25;
    faults[11].figure = "frames";
    faults[11].says = "stage tracking takes 2";
    faults[12].run.fps = 50; /* a virtual machine whose host is busy */
    faults[12].run.inference_ms = 8;
    faults[12].run.stolen = 0.5;
    faults[12].figure = "frames";
    faults[12].says = "the machine's host keeps 50 % of the CPUs' time from it";
    for (size_t i = 0; i < SAC_COUNT(faults); i++) {
        sac_monitor             *m = after(&faults[i].run, 10);
        struct sac_monitor_event e = event_of(m, faults[i].figure);
        assert_says(e.text, faults[i].says);
        assert_int_equal(e.kind, SAC_MONITOR_ANOMALY);
        assert_true(e.ended_s < 0);
        for (int k = 0; k < 10; k++)
            sample(m, &ordinary, k);
        assert_true(event_of(m, faults[i].figure).ended_s >= 0);
        sac_monitor_destroy(&m);
    }
}

/* Who came onto the card is named, with what it holds of it; who was there before is not. */
static void who_came_onto_the_card_is_named(void **state)
{
    (void)state;
    struct sac_nvml_process list[] = {{1, 12300000000}, {getpid(), 600000000}, {0x7ffffff0, 0}};
    struct run              run = ordinary;
    sac_monitor            *m = empty();
    char                    words[64], name[32];
    for (int i = 0; i < 90; i++) {
        sac_monitor_put_processes(m, 0, list + 1, 2);
        sample(m, &run, i);
    }
    run.inference_ms = 13;
    run.processes = 2;
    for (int i = 0; i < 10; i++) {
        sac_monitor_put_processes(m, 0, list, 3);
        sample(m, &run, i);
    }
    FILE *file = fopen("/proc/1/comm", "r");
    assert_non_null(file);
    assert_non_null(fgets(name, sizeof name, file));
    fclose(file);
    snprintf(words, sizeof words, "and 1 did; new: 1 %.*s (12.30 GB)", (int)strcspn(name, "\n"),
             name);
    const struct sac_monitor_event e = event_of(m, "stage inference");
    assert_says(e.text, words);
    assert_null(strstr(e.text, "2147483632"));
    sac_monitor_destroy(&m);
}

/* What others' load explains is not told of the stages, which others then only wait for. */
static void a_stage_is_not_blamed_for_others(void **state)
{
    (void)state;
    struct run runs[2] = {ordinary, ordinary};
    runs[0].inference_ms = 8; /* and the run keeps up */
    runs[0].wait = 0.7;
    runs[0].others = 0.6;
    runs[1].inference_ms = 8;
    runs[1].stolen = 0.5;
    for (size_t i = 0; i < SAC_COUNT(runs); i++) {
        sac_monitor *m = after(&runs[i], 25);
        assert_int_equal(sac_monitor_event_count(m), 0);
        sac_monitor_destroy(&m);
    }
}

/* From its beginning a camera brings less than it says, or a run does less than it is sent. */
static void less_than_is_due_is_told(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        struct run   run = ordinary;
        sac_monitor *m = empty();
        run.fps = run.input = 60;
        run.detect = slow;
        for (int i = 0; i < 20; i++)
            sample(m, &run, i);
        struct sac_monitor_event e = event_of(m, "frames of those due");
        assert_int_equal(e.kind, SAC_MONITOR_WARNING);
        assert_says(e.text, "60 %, and the limit is 80 %");
        assert_says(e.text,
                    slow ? "the run is too slow for its inputs" : "the inputs bring no more");
        assert_true(e.ended_s < 0);
        run.fps = run.input = 99;
        for (int i = 0; i < 6; i++)
            sample(m, &run, i);
        assert_true(event_of(m, "frames of those due").ended_s >= 0);
        sac_monitor_destroy(&m);
    }
}

/* 20 MB a second from the decoder's surfaces: told soon, and by whom. */
static void a_growing_pool_is_told_with_its_owner(void **state)
{
    (void)state;
    struct run   run = ordinary;
    sac_monitor *m = after(&run, 0);
    int          told = 0;
    for (int i = 0; i < 240; i++) {
        run.pool += 20e6;
        run.decode += 20e6;
        sample(m, &run, i);
        told += told == 0 && sac_monitor_event_count(m) ? i + 1 : 0;
    }
    struct sac_monitor_event e;
    assert_in_range(told, 1, 12); /* it has to have grown by a quarter, which are five seconds */
    assert_sac_ok(sac_monitor_get_event(m, 0, &e));
    assert_string_equal(e.figure, "pool");
    assert_says(e.text, "of it more are held by decode");
    assert_sac_ok(sac_monitor_get_event(m, sac_monitor_event_count(m) - 1, &e));
    assert_int_equal(e.kind, SAC_MONITOR_WARNING);
    assert_says(e.text, "has only grown for three minutes");
    assert_says(e.text, "as a leak");
    assert_int_equal(sac_monitor_event_count(m), 2);
    sac_monitor_destroy(&m);
}

/* ---- a run's own figures ---- */

struct fake_run {
    struct sac_pipeline_stats stats;
    int                       asked, streams;
};

static void get(void *user, struct sac_pipeline_stats *out)
{
    struct fake_run *run = user;
    run->asked++;
    run->stats.frames += 10;
    run->stats.stage[0].count += 10;
    run->stats.stage[0].total_ms += 25;
    run->stats.gpu.samples += 4;
    run->stats.gpu.utilisation = run->asked == 1 ? 0.5 : 0.75; /* so far: 1 in the second half */
    run->stats.pool.bytes_live = 5000000;
    *out = run->stats;
}

static int streams(void *user)
{
    return ((struct fake_run *)user)->streams;
}

static int processes(void *user, int shard, struct sac_nvml_process *out, int max)
{
    (void)user;
    assert_true(shard == 0 && max >= 1);
    out[0] = (struct sac_nvml_process){getpid(), 700000000};
    return 1;
}

static void a_run_is_measured_between_samples(void **state)
{
    (void)state;
    static struct fake_run     run;
    const struct sac_run_feed  feed = {get, streams, &run, .processes = processes};
    struct sac_monitor_process who[2];
    struct sac_run_sampler    *sampler = sac_run_sampler_create(1000);
    sac_monitor               *m = empty();
    assert_non_null(sampler);
    run.stats.stage_count = 1;
    run.stats.gpu.known = 1;
    snprintf(run.stats.stage[0].name, sizeof run.stats.stage[0].name, "decode");
    sac_run_sampler_take(sampler, m, &feed);
    assert_int_equal(sac_monitor_figure_count(m), 0);
    usleep(20000);
    sac_run_sampler_take(sampler, m, &feed);
    assert_true(fabs(now_of(m, "stage decode") - 2.5) < 1e-6);
    assert_true(fabs(now_of(m, "gpu0 utilisation") - 1) < 1e-6);
    assert_true(now_of(m, "frames") > 0 && now_of(m, "frames") <= 500);
    assert_true(now_of(m, "pool") == 5e6 && now_of(m, "descriptors") > 0);
    assert_true(isnan(now_of(m, "latency"))); /* none was timed */
    assert_int_equal(sac_monitor_get_processes(m, 0, who, 2), 1);
    assert_true(who[0].pid == getpid() && who[0].memory_bytes == 700000000);
    sac_monitor_destroy(&m);
    sac_run_sampler_destroy(&sampler);
    sac_run_sampler_destroy(&sampler);
}

/* Frames of which most take 10 ms, and every twentieth `slow_ms`. */
static void pass_frames(sac_timers *timers, struct sac_pipeline_stats *stats, int n, double slow_ms)
{
    for (int i = 0; i < n; i++) {
        const double ms = i % 20 ? 10 + 0.01 * (i % 7) : slow_ms;
        sac_timer_add(timers, 0, (int64_t)(ms * 1e6));
        stats->latency.total_ms += ms;
        stats->latency.count++;
    }
}

static double rate(void *user)
{
    (void)user;
    return 100;
}

/* Five of a hundred frames are late: the mean hardly moves, the p99 is told within ten seconds. */
static void a_tail_of_the_latency_is_told(void **state)
{
    (void)state;
    static struct fake_run run;
    sac_timers            *timers = NULL;
    assert_sac_ok(sac_timers_create(test_context(), &timers));
    const struct sac_run_feed feed = {.get = get,
                                      .streams = streams,
                                      .user = &run,
                                      .due = rate,
                                      .timers = timers,
                                      .latency = sac_timers_id(timers, "latency")};
    struct sac_run_sampler   *sampler = sac_run_sampler_create(1000);
    sac_monitor              *m = empty();
    assert_non_null(sampler);
    sac_run_sampler_take(sampler, m, &feed);
    for (int i = 0; i < 90; i++) {
        pass_frames(timers, &run.stats, 100, 12);
        sac_run_sampler_take(sampler, m, &feed);
    }
    assert_true(fabs(now_of(m, "latency p99") - 12) < 0.3);
    for (int i = 0; i < 10; i++) {
        pass_frames(timers, &run.stats, 100, 60);
        sac_run_sampler_take(sampler, m, &feed);
    }
    assert_true(now_of(m, "latency") < 13 && fabs(now_of(m, "latency p99") - 60) < 1.2);
    assert_says(event_of(m, "latency p99").text, "latency p99: 6");
    assert_int_equal(event_of(m, "latency p99").kind, SAC_MONITOR_ANOMALY);
    for (int i = 0; i < 10; i++) {
        pass_frames(timers, &run.stats, 100, 12);
        sac_run_sampler_take(sampler, m, &feed);
    }
    assert_true(event_of(m, "latency p99").ended_s >= 0);
    sac_run_sampler_take(sampler, m, &feed); /* in which no frame was done */
    assert_true(isnan(now_of(m, "latency p99")));
    sac_monitor_destroy(&m);
    sac_run_sampler_destroy(&sampler);
    sac_timers_destroy(&timers);
}

/* The thread: it begins, publishes nothing unasked, and ends. */
static void a_watch_begins_and_ends(void **state)
{
    (void)state;
    static struct fake_run    run;
    const struct sac_run_feed feed = {.get = get, .user = &run};
    struct sac_monitor_params params = sac_monitor_params_default();
    struct sac_run_watch     *watch = NULL;
    params.interval_ms = 100;
    assert_null(sac_run_watch_monitor(NULL));
    assert_sac_ok(sac_run_watch_start(test_context(), &params, &feed, "a run", &watch));
    for (int i = 0; i < 600 && !sac_monitor_figure_count(sac_run_watch_monitor(watch)); i++)
        usleep(50000);
    sac_run_watch_end(watch);
    const int asked = run.asked;
    assert_true(sac_monitor_figure_count(sac_run_watch_monitor(watch)) > 5);
    usleep(250000);
    assert_int_equal(run.asked, asked);
    sac_run_watch_destroy(&watch);
    sac_run_watch_destroy(&watch);
}

static void values_are_for_people(void **state)
{
    (void)state;
    static const struct {
        double      value;
        const char *unit, *text;
    } cases[] = {{0.973, "share", "97 %"},
                 {1.2e9, "bytes", "1.20 GB"},
                 {3.4e7, "bytes", "34 MB"},
                 {12.345, "ms", "12.35 ms"},
                 {25, "frames/s", "25.0 frames/s"},
                 {7, "", "7"},
                 {7.25, "", "7.2"},
                 {NAN, "ms", "-"}};
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        char text[32];
        sac_monitor_format(cases[i].value, cases[i].unit, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_is_watched),
        cmocka_unit_test(without_a_card_the_machine_is_watched),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(faults_are_told_with_their_cause),
        cmocka_unit_test(who_came_onto_the_card_is_named),
        cmocka_unit_test(a_stage_is_not_blamed_for_others),
        cmocka_unit_test(less_than_is_due_is_told),
        cmocka_unit_test(a_growing_pool_is_told_with_its_owner),
        cmocka_unit_test(a_run_is_measured_between_samples),
        cmocka_unit_test(a_tail_of_the_latency_is_told),
        cmocka_unit_test(a_watch_begins_and_ends),
        cmocka_unit_test(values_are_for_people),
    };
    return cmocka_run_group_tests_name("observe/monitor", tests, NULL, NULL);
}
