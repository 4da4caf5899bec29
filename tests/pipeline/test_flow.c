/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "pipeline/flow.h"
#include "tests/test.h"

/* A run of 10 s with 300 frames, all of whose threads are idle. */
static struct sac_pipeline_stats quiet_run(void)
{
    struct sac_pipeline_stats s = {.frames = 300, .elapsed_s = 10, .fps = 30, .pool_reuse = 1};
    static const char *const  queues[] = {"detect", "track", "write"};
    for (int i = 0; i < 3; i++) {
        struct sac_queue_info *q = &s.queue[s.queue_count++];
        snprintf(q->name, sizeof q->name, "%s", queues[i]);
        q->capacity = 4;
        q->passed = 300;
    }
    return s;
}

static void add_stage(struct sac_pipeline_stats *s, const char *name, double busy_s)
{
    struct sac_timer_summary *stage = &s->stage[s->stage_count++];
    snprintf(stage->name, sizeof stage->name, "%s", name);
    stage->count = 300;
    stage->total_ms = busy_s * 1e3;
}

static const struct sac_flow_facts all_cpus = {
    .streams = 1, .cpus = 4, .threads = 4, .camera_motion = true, .device = false};

static bool advises(const struct sac_pipeline_stats *s, const char *words)
{
    for (int i = 0; i < s->advice_count; i++)
        if (strstr(s->advice[i], words))
            return true;
    return false;
}

static void nothing_is_said_of_a_smooth_run(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    add_stage(&s, "decode", 1);
    add_stage(&s, "inference", 2);
    sac_flow_judge(&s, &all_cpus);
    assert_string_equal(s.bottleneck, "inference");
    assert_int_equal(s.advice_count, 0); /* the input sets the pace */
}

static void without_timers_nothing_is_known(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    sac_flow_judge(&s, &all_cpus);
    assert_string_equal(s.bottleneck, "");
    assert_string_equal(s.bottleneck_why, "");
    assert_int_equal(s.advice_count, 0);
}

/* The stages of one thread add up: none of the three is the longest by itself. */
static void the_busiest_thread_is_found(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    add_stage(&s, "decode", 1);
    add_stage(&s, "preprocess", 3);
    add_stage(&s, "inference", 3.5);
    add_stage(&s, "head", 3);
    add_stage(&s, "encode", 5);
    s.queue[0].full = 250;
    sac_flow_judge(&s, &all_cpus);
    assert_string_equal(s.bottleneck, "inference");
    assert_non_null(strstr(s.bottleneck_why, "95 % of the run"));
    assert_non_null(strstr(s.bottleneck_why, "the next (encode) for 50 %"));
    assert_non_null(strstr(s.bottleneck_why, "full 250 of 300 times"));
    assert_true(advises(&s, "smaller detector"));
    /* with CPUs to spare, those come first */
    struct sac_flow_facts two_of_four = all_cpus;
    two_of_four.threads = 2;
    sac_flow_judge(&s, &two_of_four);
    assert_true(advises(&s, "--threads 4") && advises(&s, "it ran on 2"));
}

/* Sixteen threads that decode 1 s each are less busy than one that tracks for 9 s. */
static void threads_of_many_streams_share_the_work(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    struct sac_flow_facts     many = all_cpus;
    many.streams = 16;
    add_stage(&s, "decode", 16);
    add_stage(&s, "tracking", 9);
    sac_flow_judge(&s, &many);
    assert_string_equal(s.bottleneck, "tracking");
    assert_true(advises(&s, "--no-camera-motion"));
}

static void each_stage_has_its_remedy(void **state)
{
    (void)state;
    static const struct {
        const char *stage, *words;
    } cases[] = {
        {"decode", "--decode-threads"},
        {"encode", "--preset"},
        {"reid", "--score-high"},
        {"draw", "--no-trails"},
    };
    for (size_t i = 0; i < SAC_COUNT(cases); i++) {
        struct sac_pipeline_stats s = quiet_run();
        add_stage(&s, cases[i].stage, 9.5);
        sac_flow_judge(&s, &all_cpus);
        assert_string_equal(s.bottleneck, cases[i].stage);
        assert_true(advises(&s, cases[i].words));
        assert_true(advises(&s, "95 %"));
    }
}

/* ---- with a GPU ---- */

static void add_gpu_time(struct sac_pipeline_stats *s, double busy_s)
{
    struct sac_timer_summary *gpu = &s->stage_gpu[s->stage_count - 1];
    *gpu = s->stage[s->stage_count - 1];
    gpu->total_ms = busy_s * 1e3;
}

static struct sac_flow_facts with_gpu(int streams)
{
    struct sac_flow_facts facts = all_cpus;
    facts.device = true;
    facts.streams = streams;
    return facts;
}

/* The inference thread waits for the device all the time, which is busy. */
static void a_busy_device_is_the_limit(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    struct sac_flow_facts     gpu = with_gpu(16);
    add_stage(&s, "decode", 150); /* of 16 threads: they wait for room */
    add_stage(&s, "inference", 9.8);
    add_gpu_time(&s, 8.5);
    add_stage(&s, "reid", 0.1);
    add_gpu_time(&s, 1);
    s.gpu =
        (struct sac_gpu_stats){.known = 1, .samples = 40, .utilisation = 1, .decoder_load = 0.5};
    sac_flow_judge(&s, &gpu);
    assert_string_equal(s.bottleneck, "inference");
    assert_non_null(strstr(s.bottleneck_why, "the device computed for 95 % of the run"));
    assert_true(advises(&s, "smaller detector"));
}

static void busy_decoders_are_the_limit(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    struct sac_flow_facts     gpu = with_gpu(32);
    add_stage(&s, "decode", 310);
    add_stage(&s, "inference", 6);
    add_gpu_time(&s, 5);
    s.gpu =
        (struct sac_gpu_stats){.known = 1, .samples = 40, .utilisation = 0.5, .decoder_load = 0.97};
    sac_flow_judge(&s, &gpu);
    assert_string_equal(s.bottleneck, "decode");
    assert_string_equal(s.bottleneck_why, "the card's decoders were busy for 97 % of the run");
    assert_true(advises(&s, "as fast as this card decodes"));
}

/* Two devices, each with its threads: what is half of their time is no limit. */
static void devices_share_the_work(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    struct sac_flow_facts     gpu = with_gpu(32);
    add_stage(&s, "decode", 200);
    add_stage(&s, "inference", 9);
    add_gpu_time(&s, 10);
    s.shard_count = 2;
    s.shard[0].gpu.decoder_load = s.shard[1].gpu.decoder_load = 0.6;
    sac_flow_judge(&s, &gpu);
    assert_string_equal(s.bottleneck, "decode");
    assert_non_null(strstr(s.bottleneck_why, "(inference) for 45 %"));
    assert_non_null(strstr(s.bottleneck_why, "the device computed for 50 %"));
    s.shard[0].gpu.decoder_load = s.shard[1].gpu.decoder_load = 0.9;
    sac_flow_judge(&s, &gpu);
    assert_non_null(strstr(s.bottleneck_why, "decoders were busy for 90 %"));
}

/* One stream uses one of the card's decoders: none of the others helps it. */
static void one_stream_waits_for_one_decoder(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    struct sac_flow_facts     gpu = with_gpu(1);
    add_stage(&s, "decode", 10);
    add_stage(&s, "inference", 3);
    add_gpu_time(&s, 1);
    s.gpu =
        (struct sac_gpu_stats){.known = 1, .samples = 40, .utilisation = 0.1, .decoder_load = 0.14};
    sac_flow_judge(&s, &gpu);
    assert_string_equal(s.bottleneck, "decode");
    assert_non_null(strstr(s.bottleneck_why, "its thread was busy for 100 % of the run"));
    assert_non_null(strstr(s.bottleneck_why, "the device computed for 10 %"));
    assert_true(advises(&s, "more streams at once"));
}

static void a_slow_host_beside_an_idle_device_is_told(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    struct sac_flow_facts     gpu = with_gpu(8);
    add_stage(&s, "decode", 20);
    add_stage(&s, "inference", 9.5);
    add_gpu_time(&s, 3);
    sac_flow_judge(&s, &gpu);
    assert_string_equal(s.bottleneck, "inference");
    assert_non_null(strstr(s.bottleneck_why, "the device computed for 30 %"));
    assert_true(advises(&s, "the host, not the device"));
}

static void tensors_that_cross_are_told(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    struct sac_flow_facts     gpu = with_gpu(1);
    add_stage(&s, "inference", 1);
    s.ledger.reason[SAC_COPY_TENSOR_LAYOUT] = (struct sac_ledger_entry){600, 5000000000};
    s.ledger.reason[SAC_COPY_TENSOR_DOWNLOAD] = (struct sac_ledger_entry){300, 4000000000};
    sac_flow_judge(&s, &gpu);
    assert_true(advises(&s, "600 tensors (5000 MB) were copied between device and host"));
    assert_true(advises(&s, "300 network outputs (4000 MB) were copied to the host"));
}

static void half_empty_batches_are_told(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    add_stage(&s, "inference", 9);
    add_stage(&s, "encode", 8.9);
    s.batch =
        (struct sac_batch_stats){.count = 120, .frames = 300, .full = 3, .max = 8, .mean = 2.5};
    sac_flow_judge(&s, &all_cpus);
    assert_true(advises(&s, "up to 8 frames held 2.5") && advises(&s, "3 of 120"));
    s.batch =
        (struct sac_batch_stats){.count = 38, .frames = 300, .full = 37, .max = 8, .mean = 7.9};
    sac_flow_judge(&s, &all_cpus);
    assert_false(advises(&s, "Batches"));
}

static void copies_are_told_with_their_reason(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    struct sac_flow_facts     gpu = all_cpus;
    gpu.device = true;
    add_stage(&s, "inference", 1);
    s.ledger.reason[SAC_COPY_FRAME_CONVERT] = (struct sac_ledger_entry){300, 2000000000};
    s.source.converted = 300;
    sac_flow_judge(&s, &all_cpus);
    assert_true(advises(&s, "300 frames (2000 MB) were converted twice"));
    s.ledger.reason[SAC_COPY_DRAW] = (struct sac_ledger_entry){299, 20000000000};
    sac_flow_judge(&s, &all_cpus);
    assert_int_equal(s.advice_count, 2);
    assert_non_null(strstr(s.advice[0], "299 frames")); /* the dearest first */
    assert_true(advises(&s, "decoder still predicts"));
    s.ledger.reason[SAC_COPY_OVERLAY] = (struct sac_ledger_entry){299, 20000000000};
    sac_flow_judge(&s, &gpu);
    assert_true(advises(&s, "copied to the host to be encoded"));
    s = quiet_run();
    add_stage(&s, "inference", 1);
    s.ledger.reason[SAC_COPY_FRAME_UPLOAD] = (struct sac_ledger_entry){300, 5000000000};
    sac_flow_judge(&s, &gpu);
    assert_true(advises(&s, "decoded on the host"));
    s.ledger.reason[SAC_COPY_FRAME_DOWNLOAD] = (struct sac_ledger_entry){300, 5000000000};
    sac_flow_judge(&s, &gpu); /* --zero-copy off: then nothing was decoded on the host */
    assert_int_equal(s.advice_count, 1);
    assert_true(advises(&s, "to the host and back") && advises(&s, "without --zero-copy off"));
    /* a few bytes are not worth a sentence */
    s.ledger = (struct sac_ledger){.reason[SAC_COPY_FRAME_UPLOAD] = {1, 3000000}};
    sac_flow_judge(&s, &gpu);
    assert_int_equal(s.advice_count, 0);
}

static void one_copy_has_a_singular(void **state)
{
    (void)state;
    static const struct {
        enum sac_copy_reason reason;
        const char          *words;
    } copies[] = {
        {SAC_COPY_FRAME_CONVERT, "1 frame (900000 MB) was converted"},
        {SAC_COPY_DRAW, "1 frame (900000 MB) was copied to be drawn on"},
        {SAC_COPY_OVERLAY, "1 annotated frame (900000 MB) was copied"},
        {SAC_COPY_FRAME_DOWNLOAD, "1 frame (900000 MB) was copied from the device"},
        {SAC_COPY_FRAME_UPLOAD, "1 frame (900000 MB) was decoded on the host"},
        {SAC_COPY_TENSOR_LAYOUT, "1 tensor (900000 MB) was copied between"},
        {SAC_COPY_TENSOR_DOWNLOAD, "1 network output (900000 MB) was copied"},
    };
    for (size_t i = 0; i < SAC_COUNT(copies); i++) {
        struct sac_pipeline_stats s = quiet_run();
        struct sac_flow_facts     gpu = with_gpu(1);
        add_stage(&s, "inference", 1);
        s.source.converted = 1;
        s.ledger.reason[copies[i].reason] = (struct sac_ledger_entry){1, 900000000000};
        sac_flow_judge(&s, &gpu);
        if (!advises(&s, copies[i].words))
            fail_msg("not '%s' but '%s'", copies[i].words, s.advice_count ? s.advice[0] : "");
    }
    struct sac_pipeline_stats s = quiet_run();
    add_stage(&s, "inference", 1);
    s.pool.fragmentation = 1;
    sac_flow_judge(&s, &all_cpus);
    assert_true(advises(&s, "1 request for memory failed"));
}

/* What a GPU copies within its memory takes no time that would be worth a sentence; across the bus
 * it does. */
static void copies_weigh_what_they_cost(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    struct sac_flow_facts     gpu = with_gpu(1);
    add_stage(&s, "encode", 3);
    s.ledger.reason[SAC_COPY_DRAW] = (struct sac_ledger_entry){300, 10000000000};
    s.ledger.reason[SAC_COPY_FRAME_CONVERT] = (struct sac_ledger_entry){30, 1000000000};
    sac_flow_judge(&s, &gpu);
    assert_int_equal(s.advice_count, 0);
    s.ledger.reason[SAC_COPY_OVERLAY] = (struct sac_ledger_entry){300, 10000000000};
    sac_flow_judge(&s, &gpu);
    assert_int_equal(s.advice_count, 1);
    assert_true(advises(&s, "copied to the host to be encoded"));
}

static void an_empty_queue_is_told(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    add_stage(&s, "inference", 2);
    s.queue[0].empty = 290;
    sac_flow_judge(&s, &all_cpus);
    assert_non_null(strstr(s.bottleneck_why, "mostly empty: the input sets the pace"));
    s.stage[0].total_ms = 9e3; /* it was busy all the same */
    sac_flow_judge(&s, &all_cpus);
    assert_null(strstr(s.bottleneck_why, "empty"));
}

static void memory_that_is_not_reused_is_told(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    add_stage(&s, "inference", 1);
    s.pool.allocations_warm = 20;
    s.pool.requests_warm = 20;
    sac_flow_judge(&s, &all_cpus);
    assert_int_equal(s.advice_count, 0); /* no habit yet */
    s.pool.allocations_warm = 500;
    s.pool.requests_warm = 900;
    sac_flow_judge(&s, &all_cpus);
    assert_true(advises(&s, "first 300 frames") && advises(&s, "500 new buffers") &&
                advises(&s, "of 900"));
    s.pool.requests_warm = 20000;
    sac_flow_judge(&s, &all_cpus);
    assert_int_equal(s.advice_count, 0);
    s.pool.fragmentation = 7;
    sac_flow_judge(&s, &all_cpus);
    assert_true(advises(&s, "7 requests"));
}

static void a_short_run_tells_nothing(void **state)
{
    (void)state;
    struct sac_pipeline_stats s = quiet_run();
    add_stage(&s, "encode", 9.5);
    s.frames = 10;
    sac_flow_judge(&s, &all_cpus);
    assert_string_equal(s.bottleneck, "encode");
    assert_int_equal(s.advice_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_of_a_smooth_run),
        cmocka_unit_test(without_timers_nothing_is_known),
        cmocka_unit_test(the_busiest_thread_is_found),
        cmocka_unit_test(threads_of_many_streams_share_the_work),
        cmocka_unit_test(each_stage_has_its_remedy),
        cmocka_unit_test(a_busy_device_is_the_limit),
        cmocka_unit_test(busy_decoders_are_the_limit),
        cmocka_unit_test(devices_share_the_work),
        cmocka_unit_test(one_stream_waits_for_one_decoder),
        cmocka_unit_test(a_slow_host_beside_an_idle_device_is_told),
        cmocka_unit_test(tensors_that_cross_are_told),
        cmocka_unit_test(half_empty_batches_are_told),
        cmocka_unit_test(copies_are_told_with_their_reason),
        cmocka_unit_test(one_copy_has_a_singular),
        cmocka_unit_test(copies_weigh_what_they_cost),
        cmocka_unit_test(an_empty_queue_is_told),
        cmocka_unit_test(memory_that_is_not_reused_is_told),
        cmocka_unit_test(a_short_run_tells_nothing),
    };
    return cmocka_run_group_tests_name("pipeline/flow", tests, NULL, NULL);
}
