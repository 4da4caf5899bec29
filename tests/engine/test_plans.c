/* SPDX-License-Identifier: Apache-2.0 */
/* Plans kept in files, on the device of the tests (far.h): measured once, told afterwards; damaged,
 * foreign and cut files are made anew and that is said; `build` checks before it writes. */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/disk_cache.h"
#include "engine/model/model.h"
#include "tests/engine/far.h"
#include "tests/engine/open_size.h"
#include "tests/engine/ratio.h"
#include "tests/engine/said.h"

static sac_device *far;
static char        folder[64], out[128];
static const char  model_path[] = MODELS_DIR "/resnet50.onnx";

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/saccade-plans-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(out, sizeof out, "%s/net.plan", folder);
    setenv("SACCADE_CACHE", folder, 1);
    return said_open() && far_open(ctx, NULL, &far) == SAC_OK ? 0 : -1;
}

static void each_file(void (*fn)(const char *path))
{
    char   pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        fn(found.gl_pathv[i]);
    globfree(&found);
}

static void remove_file(const char *path)
{
    unlink(path);
}

static int end(void **state)
{
    (void)state;
    sac_device_unref(&far);
    sac_context_destroy(&ctx);
    each_file(remove_file);
    rmdir(folder);
    return 0;
}

/* Run with a batch of so many; what the kernels were told and measured stays in far_counts. Returns
 * how many were measured. */
static int measured_by(sac_model *m, int64_t batch)
{
    static float           zeros[3 * 3 * 64 * 64];
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 4, .shape = {batch, 3, 64, 64}};
    sac_tensor            *x = NULL, *y[8] = {NULL};
    far_counts = (struct far_counts){0};
    ok(sac_tensor_create(far, &desc, "test", &x));
    ok(sac_tensor_upload(x, zeros));
    ok(sac_model_run(m, &x, y));
    for (int i = 0; i < 8; i++)
        sac_tensor_unref(&y[i]);
    sac_tensor_unref(&x);
    return far_counts.measured;
}

/* Load, run once. */
static void run(const char *path)
{
    sac_model *m = NULL;
    said[0] = '\0';
    ok(sac_model_load(far, path, NULL, &m));
    measured_by(m, 1);
    sac_model_unref(&m);
}

static char   one_file[256];
static size_t files;

static void note_file(const char *path)
{
    snprintf(one_file, sizeof one_file, "%s", path);
    files++;
}

static size_t count_files(void)
{
    files = 0;
    each_file(note_file);
    return files;
}

/* ---- the cache ---- */

static void measured_once(void **state)
{
    (void)state;
    run(model_path);
    const int kernels = far_counts.prepared;
    assert_true(kernels > 10);
    assert_int_equal(far_counts.measured, kernels);
    assert_int_equal(far_counts.foreseen, kernels);
    expect_said("planned for float32[1,3,64,64] on far:0 in");
    assert_int_equal(count_files(), 1); /* nothing half written beside it */
    run(model_path);
    assert_int_equal(far_counts.prepared, kernels);
    assert_int_equal(far_counts.foreseen, kernels);
    assert_int_equal(far_counts.measured, 0);
    assert_int_equal(far_counts.told, far_counts.taken); /* the convolutions, which have variants */
    assert_true(far_counts.told > 10);
    assert_string_equal(said, "");
}

/* Two that were loaded before either was planned, as in two processes: what each found out
 * stays. */
static void those_that_write_beside_each_other_lose_nothing(void **state)
{
    (void)state;
    sac_model *a = NULL, *b = NULL, *later = NULL;
    ok(sac_model_load(far, model_path, NULL, &a));
    ok(sac_model_load(far, model_path, NULL, &b));
    assert_true(measured_by(a, 1) > 10);
    assert_true(measured_by(b, 2) > 10);
    assert_true(measured_by(a, 3) > 10);
    ok(sac_model_load(far, model_path, NULL, &later));
    assert_int_equal(measured_by(later, 1), 0);
    assert_int_equal(measured_by(later, 2), 0);
    assert_int_equal(measured_by(later, 3), 0);
    sac_model_unref(&a);
    sac_model_unref(&b);
    sac_model_unref(&later);
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

/* The network of ratios, loaded from a file and run. */
static void run_ratio(const char *path, int64_t wide)
{
    struct sac_model_info   info;
    struct sac_model_params params = sac_model_params_default();
    sac_model              *m = NULL;
    sac_tensor             *x = ratio_input(far), *y = NULL;
    said[0] = '\0';
    params.precision = SAC_PRECISION_FP16;
    ok(sac_model_load(far, path, &params, &m));
    ok(sac_model_run(m, &x, &y));
    assert_true(ratio_is_right(y));
    sac_model_inspect(m, &info);
    assert_int_equal(info.wide_step_count, wide);
    sac_tensor_unref(&x);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
}

/* Which steps stay in float32 is found out once, and not again when the network is loaded. */
static void ranges_are_watched_once(void **state)
{
    char         path[128];
    struct proto bytes = {0};
    (void)state;
    snprintf(path, sizeof path, "%s/ratio.onnx", folder);
    ratio_write(&bytes, 30);
    write_file(path, (const char *)bytes.bytes, bytes.size);
    run_ratio(path, 3);
    expect_said("watched on the CPU");
    run_ratio(path, 3);
    assert_null(strstr(said, "watched on the CPU"));
    proto_free(&bytes);
}

/* Weights of 1e-6, beside a bias of one or alone: nothing of either is kept in float32. */
static void write_light(const char *path)
{
    enum { FLOAT32 = 1, SIZE = 256 };
    struct proto graph = {0}, model = {0};
    static float w[SIZE * SIZE];
    const float  one = 1;
    for (int i = 0; i < SIZE * SIZE; i++)
        w[i] = (float)(i * 7 % 13 - 6) * 1e-7f;
    proto_node(&graph, "Tanh", "x", "t", NULL);
    proto_node(&graph, "MatMul", "t w", "m", NULL);
    proto_node(&graph, "Add", "m one", "gate", NULL);
    proto_node(&graph, "Mul", "t gate", "u", NULL);
    proto_node(&graph, "MatMul", "t v", "small", NULL);
    proto_node(&graph, "Add", "u small", "y", NULL);
    proto_initializer(&graph, "w", FLOAT32, "256 256", w, sizeof w);
    proto_initializer(&graph, "v", FLOAT32, "256 256", w, sizeof w);
    proto_initializer(&graph, "one", FLOAT32, "1", &one, sizeof one);
    proto_input(&graph, "x", FLOAT32, "1 8 256");
    proto_output(&graph, "y", FLOAT32, "1 8 256");
    proto_model(&model, &graph, 17);
    write_file(path, (const char *)model.bytes, model.size);
    proto_free(&model);
}

/* What is read again has what leaves, and does not say of others that they were not seen. */
static void what_stays_in_float16_is_known_later(void **state)
{
    struct sac_model_params params = sac_model_params_default();
    char                    path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/light.onnx", folder);
    write_light(path);
    params.precision = SAC_PRECISION_FP16;
    for (int turn = 0; turn < 2; turn++) {
        sac_model  *m = NULL;
        sac_tensor *x = ratio_input(far), *y = NULL;
        said[0] = '\0';
        ok(sac_model_load(far, path, &params, &m));
        ok(sac_model_run(m, &x, &y));
        assert_int_equal(m->wide_count, 0);
        assert_int_equal(sac_book_find(&m->book, "ranges 0 0") != NULL, 1);
        sac_tensor_unref(&x);
        sac_tensor_unref(&y);
        sac_model_unref(&m);
    }
}

/* Whether a batch of 1 in the file can be opened is found out once: what a later load is told is
 * true for it, also where it was not so. */
static void a_batch_is_checked_once(void **state)
{
    static const char *const wrong[] = {"fixed: it mixes them"};
    char                     path[128];
    struct proto             bytes = {0};
    sac_model               *m = NULL;
    (void)state;
    snprintf(path, sizeof path, "%s/ratio.onnx", folder);
    ratio_write(&bytes, 30);
    write_file(path, (const char *)bytes.bytes, bytes.size);
    for (int turn = 0; turn < 2; turn++) {
        far_counts = (struct far_counts){0};
        ok(sac_model_load(far, path, NULL, &m));
        assert_int_equal(m->batching, SAC_BATCH_UNCHECKED);
        assert_true(sac_model_batches(m));
        assert_int_equal(far_counts.prepared > 0, turn == 0);
        if (turn == 1) {
            assert_true(sac_book_write(&m->book, "batch of 1 opened", wrong, 1));
            sac_model_save_book(m);
        }
        sac_model_unref(&m);
    }
    ok(sac_model_load(far, path, NULL, &m));
    assert_false(sac_model_batches(m));
    assert_string_equal(m->why_fixed, "it mixes them");
    sac_model_unref(&m);
    setenv("SACCADE_WITHOUT", "memory-reuse", 1); /* it finds out for itself, and tells nobody */
    ok(sac_model_load(far, path, NULL, &m));
    assert_true(sac_model_batches(m));
    sac_model_unref(&m);
    unsetenv("SACCADE_WITHOUT");
    ok(sac_model_load(far, path, NULL, &m));
    assert_false(sac_model_batches(m));
    sac_model_unref(&m);
    proto_free(&bytes);
}

/* x [1,3,16,16] times r -> a convolution -> y. */
static void write_product(const char *path)
{
    struct proto graph = {0}, model = {0};
    proto_node(&graph, "Mul", "x r", "a", NULL);
    open_size_conv(&graph, "Conv", "a w", "y", "3 3");
    open_size_weights(&graph, "w", "4 3 3 3", 4 * 3 * 9, 1);
    proto_input(&graph, "x", 1, "1 3 16 16");
    proto_input(&graph, "r", 1, "1");
    proto_output(&graph, "y", 1, "1 4 8 8");
    proto_model(&model, &graph, 17);
    open_size_keep(&model, path);
}

/* With r made a constant. Returns how many kernels were measured. */
static int measured_with(const char *path, double r)
{
    static const float     zeros[3 * 16 * 16];
    struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 4, .shape = {1, 3, 16, 16}};
    sac_model             *m = NULL;
    sac_tensor            *x = NULL, *y = NULL;
    far_counts = (struct far_counts){0};
    ok(sac_model_load_fixed(far, path, NULL, "r", r, &m));
    ok(sac_tensor_create(far, &desc, "test", &x));
    ok(sac_tensor_upload(x, zeros));
    ok(sac_model_run(m, &x, &y));
    sac_tensor_unref(&x);
    sac_tensor_unref(&y);
    sac_model_unref(&m);
    return far_counts.measured;
}

static void constants_are_told_apart_to_the_last_bit(void **state)
{
    char path[128];
    (void)state;
    snprintf(path, sizeof path, "%s/product.onnx", folder);
    write_product(path);
    assert_true(measured_with(path, 1.0 / 3) > 0);
    assert_int_equal(measured_with(path, 1.0 / 3), 0);
    assert_true(measured_with(path, nextafter(1.0 / 3, 1)) > 0);
    assert_int_equal(measured_with(path, 1.0 / 3), 0);
}

/* ---- its bound ---- */

/* Every plan was used ten seconds earlier: what a file system notes of two files in a row may be
 * one and the same time. */
static void age(const char *path)
{
    struct stat st;
    if (strstr(path, ".onnx") || stat(path, &st) != 0)
        return;
    const struct timespec times[2] = {{0, UTIME_OMIT},
                                      {st.st_mtim.tv_sec - 10, st.st_mtim.tv_nsec}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static size_t   plans;
static uint64_t plan_bytes;

static void note_plan(const char *path)
{
    struct stat st;
    if (strstr(path, ".onnx"))
        return;
    assert_int_equal(stat(path, &st), 0);
    assert_non_null(strstr(path, ".plan")); /* nothing half written */
    plan_bytes += (uint64_t)st.st_size;
    plans++;
}

static size_t count_plans(void)
{
    plans = 0;
    plan_bytes = 0;
    each_file(note_plan);
    return plans;
}

static void bound_plans(uint64_t bytes_max)
{
    struct sac_device_params params = sac_device_params_default();
    params.plan_cache_bytes = bytes_max;
    sac_device_unref(&far);
    ok(far_open(ctx, &params, &far));
}

/* Run network i, made when it is first needed. Returns how many kernels were measured. */
static int measured_of(int i)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%d.onnx", folder, i);
    if (access(path, R_OK) != 0)
        write_product(path); /* each has other weights */
    return measured_with(path, 1);
}

/* Room for three plans of such networks, and not for four. */
static void bound_to_three(void)
{
    assert_true(measured_of(0) > 0);
    assert_int_equal(count_plans(), 1);
    bound_plans(3 * plan_bytes + plan_bytes / 2);
}

static void the_oldest_plan_goes(void **state)
{
    enum { LAST = 8 };
    (void)state;
    bound_to_three();
    for (int i = 1; i < LAST; i++) {
        each_file(age);
        assert_true(measured_of(i) > 0);
        assert_int_equal(count_plans(), SAC_MIN(i + 1, 3));
    }
    each_file(age);
    assert_int_equal(measured_of(LAST - 3), 0); /* the oldest that is left is the latest now */
    each_file(age);
    assert_true(measured_of(LAST) > 0);
    assert_int_equal(measured_of(LAST - 3), 0);
    assert_int_equal(measured_of(LAST - 1), 0);
    assert_int_equal(measured_of(LAST), 0);
    assert_true(measured_of(LAST - 2) > 0);
    assert_true(measured_of(1) > 0);
}

/* Its file goes, as another process has a smaller bound and used another plan later; the network
 * that is loaded keeps what it chose, and with the next shape all of it is in a file again. */
static void a_plan_in_use_is_not_lost(void **state)
{
    sac_model *used = NULL, *later = NULL;
    (void)state;
    ok(sac_model_load(far, model_path, NULL, &used));
    assert_true(measured_by(used, 1) > 10);
    assert_int_equal(count_plans(), 1);
    const uint64_t bytes = plan_bytes;
    each_file(age);
    assert_true(measured_of(1) > 0);
    assert_int_equal(count_plans(), 2);
    assert_in_range(plan_bytes - bytes, 1, bytes);
    sac_cache_bound_plans(bytes);
    assert_int_equal(count_plans(), 1);
    assert_int_equal(measured_of(1), 0);
    assert_int_equal(measured_by(used, 1), 0);
    assert_true(measured_by(used, 2) > 10);
    ok(sac_model_load(far, model_path, NULL, &later));
    assert_int_equal(measured_by(later, 1), 0);
    assert_int_equal(measured_by(later, 2), 0);
    sac_model_unref(&later);
    sac_model_unref(&used);
}

enum { SHARED = 5, OWN = 20 }; /* networks: of both processes, and of each */

/* It has a plan in use, and makes others. */
static void make_plans(uint64_t bytes_max, int first)
{
    sac_model *used = NULL;
    bound_plans(bytes_max);
    ok(sac_model_load(far, model_path, NULL, &used));
    measured_by(used, 1);
    for (int i = 0; i < OWN; i++) {
        measured_of(first + i);
        assert_int_equal(measured_by(used, 1), 0);
        measured_of(i % SHARED);
    }
    sac_model_unref(&used);
}

/* They remove each other's plans and write the same ones: what is there at the end is within the
 * bound, and whole. */
static void two_processes_keep_one_bound(void **state)
{
    int status, whole = 0;
    (void)state;
    for (int i = 1; i < SHARED + 2 * OWN; i++)
        measured_of(i); /* its file is there before there are two who would make it */
    sac_cache_bound_plans(1);
    assert_int_equal(count_plans(), 0);
    bound_to_three();
    const uint64_t bytes_max = far->params.plan_cache_bytes;
    sac_device_unref(&far); /* its threads are not the child's */
    said[0] = '\0';
    const pid_t child = fork();
    make_plans(bytes_max, child == 0 ? SHARED : SHARED + OWN);
    if (child == 0)
        _exit(strstr(said, "damaged") != NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_null(strstr(said, "damaged"));
    const size_t kept = count_plans();
    assert_in_range(kept, 1, 3);
    assert_in_range(plan_bytes, 1, bytes_max);
    bound_plans(0);
    for (int i = 0; i < SHARED + 2 * OWN; i++)
        whole += measured_of(i) == 0;
    assert_int_equal(whole, kept);
}

/* ---- what is found out once ---- */

/* In which layout a network takes its input is known before any kernel is prepared, and a stack
 * that comes later is not checked with such inputs. */
static void layouts_need_no_kernels(void **state)
{
    const struct sac_tensor_desc pictures = {.dtype = SAC_F32, .rank = 4, .shape = {1, 3, 64, 64}},
                                 rows = {.dtype = SAC_F32, .rank = 3, .shape = {1, 8, 256}};
    enum sac_layout layout = SAC_LAYOUT_COUNT;
    char            path[128];
    struct proto    bytes = {0};
    sac_model      *m = NULL;
    (void)state;
    far_counts = (struct far_counts){0};
    ok(sac_model_load(far, model_path, NULL, &m));
    ok(sac_model_take_native(m, &pictures, &layout));
    assert_true(sac_layout_is_last(layout));
    assert_int_equal(far_counts.prepared, 0);
    assert_null(sac_model_latest_plan(m));
    sac_model_unref(&m);
    snprintf(path, sizeof path, "%s/ratio.onnx", folder);
    ratio_write(&bytes, 30);
    write_file(path, (const char *)bytes.bytes, bytes.size);
    ok(sac_model_load(far, path, NULL, &m));
    ok(sac_model_take_native(m, &rows, &layout));
    assert_int_equal(m->batching, SAC_BATCH_UNCHECKED);
    assert_false(sac_model_batches(m));
    sac_model_unref(&m);
    proto_free(&bytes);
}

/* It would be read as one that says less. */
static void half_a_page_is_none(void **state)
{
    (void)state;
    enum { TOO_MANY = 100001 };
    const char         **choices = calloc(TOO_MANY, sizeof *choices);
    struct sac_plan_book book = {.count = 0};
    choices[0] = "1 2 3";
    assert_true(sac_book_write(&book, "first", choices, 1));
    assert_true(sac_book_write(&book, "ranges", choices, 1));
    assert_true(sac_book_write(&book, "last", choices, 1));
    assert_false(sac_book_write(&book, "ranges", choices, TOO_MANY));
    assert_null(sac_book_find(&book, "ranges"));
    assert_string_equal(sac_book_find(&book, "last")->choices[0], "1 2 3");
    assert_int_equal(book.count, 2);
    sac_book_finish(&book);
    free(choices);
}

/* More shapes than a file may have: the latest are kept, and the file stays whole. */
static void a_book_of_very_many_shapes_is_read_again(void **state)
{
    (void)state;
    enum { SHAPES = 300 };
    const struct sac_plan plan = {.step_count = 0};
    struct sac_plan_book  book = {.count = 0}, again = {.count = 0};
    size_t                size, model;
    char                  shapes[40], why[160] = "";
    for (int i = 0; i < SHAPES; i++) {
        snprintf(shapes, sizeof shapes, "float32[%d,3,64,64]", i);
        assert_true(sac_book_note(&book, shapes, &plan));
    }
    char *text = sac_book_text(&book, 0, &size);
    assert_non_null(text);
    if (!sac_book_parse(text, size, &again, &model, why, sizeof why))
        fail_msg("%s", why);
    assert_non_null(sac_book_find(&again, shapes));
    assert_non_null(sac_book_find(&again, "float32[100,3,64,64]"));
    assert_null(sac_book_find(&again, "float32[0,3,64,64]"));
    free(text);
    sac_book_finish(&book);
    sac_book_finish(&again);
}

static char *read_file(const char *path, size_t *size)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    char *bytes = calloc(1, (size_t)st.st_size + 1);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(bytes, 1, (size_t)st.st_size, f), st.st_size);
    fclose(f);
    *size = (size_t)st.st_size;
    return bytes;
}

/* The cache file is damaged now: it is created again with a warning, and valid afterwards. */
static void expect_anew(const char *bytes, size_t size, const char *sentence)
{
    write_file(one_file, bytes, size);
    run(model_path);
    expect_said(sentence);
    expect_said("it is created again");
    assert_true(far_counts.measured > 10);
    run(model_path);
    assert_int_equal(far_counts.measured, 0);
    assert_string_equal(said, "");
}

static void replace(char *bytes, const char *from, const char *to)
{
    char *at = strstr(bytes, from);
    assert_non_null(at);
    memcpy(at, to, strlen(to));
}

static void damaged_files_are_made_anew(void **state)
{
    (void)state;
    size_t size;
    run(model_path);
    assert_int_equal(count_files(), 1);
    char *bytes = read_file(one_file, &size);
    expect_anew(bytes, size / 2, "damaged (it ends early)");
    expect_anew(bytes, 0, "damaged (it does not begin like a plan of saccade)");
    expect_anew("ONNX or so\n", 11, "damaged (it does not begin like a plan of saccade)");
    bytes[size / 2] ^= 4;
    expect_anew(bytes, size, "damaged (");
    free(bytes);
    bytes = read_file(one_file, &size);
    replace(bytes, "variant 7", "variant 8");
    expect_anew(bytes, size, "damaged (its checksum is wrong)");
    free(bytes);
}

/* Every cut and many flips of a bit: never a crash, and never taken for whole. */
static void no_damage_is_taken(void **state)
{
    (void)state;
    size_t size, model;
    char   why[160];
    run(model_path);
    count_files();
    char *bytes = read_file(one_file, &size);
    for (size_t i = 0; i < 2 * size; i++) {
        struct sac_plan_book book = {.count = 0};
        const bool           cut = i < size;
        if (!cut)
            bytes[i - size] ^= (char)(1 << i % 7);
        if (sac_book_parse(bytes, cut ? i : size, &book, &model, why, sizeof why))
            fail_msg("%s %zu is taken", cut ? "cut at" : "a flip at", cut ? i : i - size);
        sac_book_finish(&book);
        if (!cut)
            bytes[i - size] ^= (char)(1 << i % 7);
    }
    free(bytes);
}

static void a_folder_that_cannot_be_written_is_said(void **state)
{
    (void)state;
    setenv("SACCADE_CACHE", "/proc/nowhere", 1);
    run(model_path);
    expect_said("no folder to keep plans in");
    assert_true(far_counts.measured > 10);
}

/* ---- build ---- */

static struct sac_build_bucket buckets[16];
static int                     bucket_count;

static void note_bucket(void *user, const struct sac_build_bucket *b)
{
    (void)user;
    buckets[bucket_count++] = *b;
}

static void build(void)
{
    struct sac_build_params params = sac_build_params_default();
    params.batch_opt = 3;
    params.batch_max = 5;
    params.width = params.height = 64;
    bucket_count = 0;
    ok(sac_model_build(far, model_path, &params, out, note_bucket, NULL));
}

static void build_checks_and_writes(void **state)
{
    (void)state;
    static const int batches[] = {1, 2, 3, 4, 5};
    build();
    assert_int_equal(bucket_count, SAC_COUNT(batches));
    for (int i = 0; i < bucket_count; i++) {
        assert_int_equal(buckets[i].batch, batches[i]);
        assert_true(buckets[i].error > 0 && buckets[i].error < buckets[i].limit); /* float16 rounds
                                                                                   */
        assert_float_equal(buckets[i].limit, 0.03, 1e-9);
    }
    setenv("SACCADE_CACHE", "", 1);
    run(out);
    assert_int_equal(far_counts.measured, 0);
    assert_true(far_counts.told > 10);
    assert_string_equal(said, "");
}

static void a_plan_keeps_its_precision(void **state)
{
    (void)state;
    struct sac_build_params params = sac_build_params_default();
    sac_model              *m = NULL;
    params.width = params.height = 64;
    params.model.precision = SAC_PRECISION_FP32;
    ok(sac_model_build(far, model_path, &params, out, NULL, NULL));
    ok(sac_model_load(far, out, NULL, &m));
    assert_int_equal(sac_model_precision(m), SAC_PRECISION_FP32);
    sac_model_unref(&m);
    sac_device *cpu = NULL; /* where it is just a model */
    ok(sac_device_open(ctx, "cpu", NULL, &cpu));
    ok(sac_model_load(cpu, out, NULL, &m));
    assert_int_equal(sac_model_precision(m), SAC_PRECISION_FP32);
    sac_model_unref(&m);
    sac_device_unref(&cpu);
}

/* Made on another device: taken as a model, planned anew and kept in the cache. */
static void a_foreign_plan_is_made_anew(void **state)
{
    (void)state;
    struct sac_plan_book book = {.count = 0};
    size_t               size, model, length;
    char                 why[160];
    build();
    each_file(note_file);
    char *bytes = read_file(out, &size);
    assert_true(sac_book_parse(bytes, size, &book, &model, why, sizeof why));
    assert_true(sac_book_set_key(&book, SAC_BOOK_DEVICE, "NVIDIA T4"));
    char *text = sac_book_text(&book, size - model, &length);
    char *whole = malloc(length + size - model);
    memcpy(whole, text, length);
    memcpy(whole + length, bytes + model, size - model);
    each_file(remove_file); /* the cache knows these shapes by now */
    write_file(out, whole, length + size - model);
    run(out);
    assert_non_null(strstr(
        said, "the plan was made for another device ('NVIDIA T4', and here it is 'a device for "
              "tests'); it is created again"));
    assert_true(far_counts.measured > 10);
    run(out);
    assert_int_equal(far_counts.measured, 0); /* from the cache */
    sac_book_finish(&book);
    free(text);
    free(whole);
    free(bytes);
}

static void cut_plans_are_refused(void **state)
{
    (void)state;
    size_t     size;
    sac_model *m = NULL;
    build();
    char *bytes = read_file(out, &size);
    write_file(out, bytes, size - 1);
    assert_int_equal(sac_model_load(far, out, NULL, &m), SAC_ERR_FORMAT);
    assert_non_null(strstr(last_error(), "the plan is damaged (the model in it is incomplete)"));
    write_file(out, bytes, 100);
    assert_int_equal(sac_model_load(far, out, NULL, &m), SAC_ERR_FORMAT);
    assert_non_null(strstr(last_error(), "the plan is damaged (it ends early)"));
    unlink(out);
    count_files();
    assert_int_equal(sac_model_load(far, one_file, NULL, &m), SAC_ERR_FORMAT);
    assert_non_null(strstr(last_error(), "one of the cache, without its model"));
    free(bytes);
}

static void build_refuses(void **state)
{
    (void)state;
    struct sac_build_params params = sac_build_params_default();
    sac_device             *cpu = NULL;
    params.batch_opt = 2;
    assert_int_equal(sac_model_build(far, model_path, &params, out, NULL, NULL), SAC_ERR_ARG);
    assert_non_null(strstr(last_error(), "batch 1:2:1: want 1 <= min <= opt <= max"));
    params.batch_opt = 1;
    assert_int_equal(sac_model_build(far, MODELS_DIR "/nowhere.onnx", &params, out, NULL, NULL),
                     SAC_ERR_IO);
    ok(sac_device_open(ctx, "cpu", NULL, &cpu));
    assert_int_equal(sac_model_build(cpu, model_path, &params, out, NULL, NULL),
                     SAC_ERR_UNSUPPORTED);
    sac_device_unref(&cpu);
}

static void expect_off(const char *words)
{
    struct sac_build_params params = sac_build_params_default();
    params.model.precision = far_counts.drift != 0 ? SAC_PRECISION_FP32 : SAC_PRECISION_FP16;
    assert_int_equal(sac_model_build(far, model_path, &params, out, NULL, NULL), SAC_ERR_FORMAT);
    if (!strstr(last_error(), "with batch 1 it is off by") || !strstr(last_error(), words))
        fail_msg("'%s' does not say '%s'", last_error(), words);
    assert_int_not_equal(access(out, F_OK), 0);
}

static void build_names_the_wrong_step(void **state)
{
    (void)state;
    far_counts.wrong = true;
    expect_off("; build it with --precision tf32");
    far_counts.wrong_op = "MaxPool";
    expect_off("steps that are off by themselves: 1 of ");
    expect_off(", most of all layer 3 (MaxPool");
    far_counts.wrong = false;
    far_counts.drift = 6e-4f;
    expect_off("no step is off by itself (most of all ");
    expect_off("): small errors add up");
    assert_null(strstr(last_error(), "--precision"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(measured_once, begin, end),
        cmocka_unit_test_setup_teardown(ranges_are_watched_once, begin, end),
        cmocka_unit_test_setup_teardown(what_stays_in_float16_is_known_later, begin, end),
        cmocka_unit_test_setup_teardown(a_batch_is_checked_once, begin, end),
        cmocka_unit_test_setup_teardown(constants_are_told_apart_to_the_last_bit, begin, end),
        cmocka_unit_test_setup_teardown(the_oldest_plan_goes, begin, end),
        cmocka_unit_test_setup_teardown(a_plan_in_use_is_not_lost, begin, end),
        cmocka_unit_test_setup_teardown(two_processes_keep_one_bound, begin, end),
        cmocka_unit_test_setup_teardown(layouts_need_no_kernels, begin, end),
        cmocka_unit_test_setup_teardown(those_that_write_beside_each_other_lose_nothing, begin,
                                        end),
        cmocka_unit_test(half_a_page_is_none),
        cmocka_unit_test(a_book_of_very_many_shapes_is_read_again),
        cmocka_unit_test_setup_teardown(damaged_files_are_made_anew, begin, end),
        cmocka_unit_test_setup_teardown(no_damage_is_taken, begin, end),
        cmocka_unit_test_setup_teardown(a_folder_that_cannot_be_written_is_said, begin, end),
        cmocka_unit_test_setup_teardown(build_checks_and_writes, begin, end),
        cmocka_unit_test_setup_teardown(a_plan_keeps_its_precision, begin, end),
        cmocka_unit_test_setup_teardown(a_foreign_plan_is_made_anew, begin, end),
        cmocka_unit_test_setup_teardown(cut_plans_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(build_refuses, begin, end),
        cmocka_unit_test_setup_teardown(build_names_the_wrong_step, begin, end),
    };
    return cmocka_run_group_tests_name("engine/plans", tests, NULL, NULL);
}
