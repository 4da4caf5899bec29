/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for a range of shapes, on the device of the tests (far.h): what is between those that were
 * measured is not measured and gives the CPU's answers, what is outside is measured; there is one
 * copy of the weights; what is wrong with a range is told in a sentence. */
#include "tests/engine/far.h"
#include "tests/engine/plan_ranges.h"

static sac_device *far;

enum { CONVS = OPEN_SIZE_CONVS };

static int begin(void **state)
{
    (void)state;
    return ranges_begin() && far_open(ctx, NULL, &far) == SAC_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    ranges_end(&far);
    return 0;
}

/* ---- running ---- */

/* Runs on the device, and on the CPU for the same. Returns how many kernels were measured. */
static int measured_by(sac_model *m, int64_t batch, int64_t width, int64_t height)
{
    sac_model *reference = NULL;
    said[0] = '\0';
    far_counts = (struct far_counts){0};
    sac_tensor       *got = answer_of(far, m, batch, width, height);
    struct far_counts counts = far_counts;
    char              words[sizeof said];
    strcpy(words, said);
    ok(sac_model_load(cpu, model_path, NULL, &reference));
    sac_tensor *want = answer_of(cpu, reference, batch, width, height);
    float      *numbers = malloc((size_t)sac_tensor_desc_bytes(sac_tensor_describe(got)));
    assert_memory_equal(sac_tensor_describe(got), sac_tensor_describe(want),
                        sizeof(struct sac_tensor_desc));
    ok(sac_tensor_download(got, numbers));
    const double off = sac_difference(sac_tensor_describe(got), numbers, sac_tensor_data(want));
    if (!(off > 0 && off < sac_difference_limit(SAC_PRECISION_FP16))) /* float16 rounds */
        fail_msg("%dx%d, batch %d: off by %g", (int)width, (int)height, (int)batch, off);
    free(numbers);
    sac_tensor_unref(&got);
    sac_tensor_unref(&want);
    sac_model_unref(&reference);
    strcpy(said, words);
    far_counts = counts;
    return counts.measured;
}

static struct sac_build_bucket buckets[32];
static char                    given[32][128]; /* their shapes' texts */
static int                     bucket_count;

static void note_bucket(void *user, const struct sac_build_bucket *b)
{
    (void)user;
    snprintf(given[bucket_count], sizeof given[0], "%s", b->shapes ? b->shapes : "");
    buckets[bucket_count++] = *b;
}

/* Sides that are squares. 0: the usual's. */
static sac_result build(int least, int usual, int greatest, int batch_max)
{
    struct sac_build_params params = sac_build_params_default();
    params.batch_max = batch_max;
    params.width_min = params.height_min = least;
    params.width = params.height = usual;
    params.width_max = params.height_max = greatest;
    bucket_count = 0;
    return sac_model_build(far, model_path, &params, out, note_bucket, NULL);
}

static sac_model *load(const char *path)
{
    sac_model *m = NULL;
    said[0] = '\0';
    ok(sac_model_load(far, path, NULL, &m));
    assert_string_equal(said, "");
    return m;
}

/* ---- between and outside ---- */

static void each_size_is_planned_for_each_batch(void **state)
{
    (void)state;
    static const int sides[] = {8, 16, 32}, batches[] = {1, 2, 4};
    ok(build(8, 16, 32, 4));
    assert_int_equal(bucket_count, 9);
    for (int i = 0; i < bucket_count; i++) {
        assert_int_equal(buckets[i].width, sides[i / 3]);
        assert_int_equal(buckets[i].height, sides[i / 3]);
        assert_int_equal(buckets[i].batch, batches[i % 3]);
    }
    sac_model *m = load(out);
    assert_string_equal(m->book.least, "float32[1,3,8,8]");
    assert_string_equal(m->book.greatest, "float32[4,3,32,32]");
    for (int i = 0; i < bucket_count; i++) {
        assert_int_equal(measured_by(m, buckets[i].batch, buckets[i].width, buckets[i].height), 0);
        assert_int_equal(far_counts.told, CONVS);
        assert_int_equal(far_counts.lent, 0);
        assert_string_equal(said, "");
    }
    sac_model_unref(&m);
}

static void what_is_between_is_not_measured(void **state)
{
    (void)state;
    static const struct {
        int         batch, width, height;
        const char *nearest;
    } shapes[] = {{1, 12, 12, "float32[1,3,16,16]"},
                  {3, 24, 16, "float32[4,3,16,16]"},
                  {2, 32, 8, "float32[2,3,16,16]"},
                  {4, 12, 8, "float32[4,3,8,8]"},
                  {3, 16, 16, "float32[4,3,16,16]"}};
    char words[256];
    ok(build(8, 16, 32, 4));
    sac_model *m = load(out);
    for (size_t i = 0; i < SAC_COUNT(shapes); i++) {
        assert_int_equal(measured_by(m, shapes[i].batch, shapes[i].width, shapes[i].height), 0);
        assert_true(far_counts.prepared > CONVS);
        assert_int_equal(far_counts.told, CONVS);
        assert_int_equal(far_counts.lent, CONVS);
        snprintf(words, sizeof words, "float32[%d,3,%d,%d] runs on far:0 with the kernels of %s",
                 shapes[i].batch, shapes[i].height, shapes[i].width, shapes[i].nearest);
        expect_said(words);
    }
    sac_model_unref(&m);
}

static void what_is_outside_is_measured(void **state)
{
    (void)state;
    static const int shapes[][3] = {{1, 4, 16}, {1, 32, 36}, {5, 16, 16}};
    ok(build(8, 16, 32, 4));
    sac_model *m = load(out);
    for (size_t i = 0; i < SAC_COUNT(shapes); i++) {
        measured_by(m, shapes[i][0], shapes[i][1], shapes[i][2]);
        assert_int_equal(far_counts.measured, far_counts.prepared);
        assert_int_equal(far_counts.lent, 0);
        expect_said("trying kernels for float32[");
    }
    sac_model_unref(&m);
}

/* The cache keeps what a .plan lacks: shapes, and what was seen of the numbers. It has no range, so
 * that the model itself is measured as ever. */
static void what_a_plan_lacks_is_kept_in_the_cache(void **state)
{
    (void)state;
    ok(build(8, 16, 32, 1));
    setenv("SACCADE_CACHE", folder, 1);
    for (int turn = 0; turn < 2; turn++) {
        sac_model *m = load(out);
        sac_model_expect(m, 0, 1);
        assert_int_equal(sac_book_find(&m->book, "ranges 0 1") != NULL, turn == 1);
        assert_int_equal(measured_by(m, 1, 36, 36) > 0, turn == 0);
        assert_int_equal(measured_by(m, 1, 12, 12), 0);
        assert_int_equal(far_counts.lent, CONVS);
        sac_model_unref(&m);
    }
    sac_model *m = load(model_path);
    assert_null(m->book.least);
    assert_int_equal(measured_by(m, 1, 36, 36), 0);
    assert_true(measured_by(m, 1, 12, 12) > 0);
    setenv("SACCADE_CACHE", "", 1);
    unlink(m->book_path);
    sac_model_unref(&m);
}

/* Batches alone are a range too; one shape is none. */
static void only_what_was_asked_for_is_a_range(void **state)
{
    (void)state;
    ok(build(0, 16, 0, 4));
    sac_model *m = load(out);
    assert_int_equal(measured_by(m, 3, 16, 16), 0);
    assert_int_equal(far_counts.lent, CONVS);
    assert_true(measured_by(m, 3, 12, 12) > 0);
    sac_model_unref(&m);
    ok(build(0, 16, 0, 1));
    m = load(out);
    assert_null(m->book.least);
    assert_int_equal(measured_by(m, 1, 16, 16), 0);
    assert_true(measured_by(m, 2, 16, 16) > 0);
    assert_true(measured_by(m, 3, 16, 16) > 0); /* between what it has, and nobody asked */
    sac_model_unref(&m);
}

/* A plan of a plan measures its own shapes, also between those of the first, and says its own
 * range. */
static void a_plan_is_built_of_a_plan(void **state)
{
    (void)state;
    struct sac_build_params params = sac_build_params_default();
    char                    again[160];
    snprintf(again, sizeof again, "%s/again.plan", folder);
    ok(build(8, 16, 32, 1));
    params.width_min = params.height_min = 12;
    params.width = params.height = params.width_max = params.height_max = 20;
    said[0] = '\0';
    ok(sac_model_build(far, out, &params, again, NULL, NULL));
    expect_said("trying kernels for float32[1,3,12,12]");
    sac_model *m = load(again);
    assert_string_equal(m->book.least, "float32[1,3,12,12]");
    assert_string_equal(m->book.greatest, "float32[1,3,20,20]");
    assert_int_equal(measured_by(m, 1, 32, 32), 0);
    assert_int_equal(far_counts.lent, 0);
    assert_true(measured_by(m, 1, 24, 24) > 0);
    sac_model_unref(&m);
    unlink(again);
}

/* With a batch of 1 two steps are views, so the others have other numbers: a kernel is known by
 * what it computes. */
static void steps_are_known_by_their_values(void **state)
{
    (void)state;
    setenv("SACCADE_CACHE", folder, 1);
    sac_model *m = load(model_path);
    setenv("SACCADE_CACHE", "", 1);
    assert_true(measured_by(m, 1, 16, 16) > 0);
    const int kernels = far_counts.prepared;
    assert_true(sac_book_set_range(&m->book, "float32[1,3,8,8]", "float32[4,3,32,32]"));
    assert_int_equal(measured_by(m, 2, 16, 16), 0);
    assert_true(far_counts.prepared > kernels);
    assert_int_equal(far_counts.told, CONVS);
    unlink(m->book_path);
    sac_model_unref(&m);
}

/* ---- shapes that are no size of images ---- */

static struct sac_tensor_desc desc_of(int64_t height, int64_t width)
{
    return (struct sac_tensor_desc){.rank = 4, .shape = {1, 3, height, width}};
}

/* The same range, named as shapes of input x: sides need not be equal. */
static sac_result build_shapes(const char *input, struct sac_tensor_desc least,
                               struct sac_tensor_desc usual, struct sac_tensor_desc greatest,
                               int batch_max)
{
    const struct sac_build_shape shapes[] = {{input, least, usual, greatest}, {.input = NULL}};
    struct sac_build_params      params = sac_build_params_default();
    params.batch_max = batch_max;
    params.shapes = shapes;
    bucket_count = 0;
    return sac_model_build(far, model_path, &params, out, note_bucket, NULL);
}

static void any_input_may_have_a_range(void **state)
{
    (void)state;
    static const int heights[] = {8, 8, 32}, widths[] = {8, 16, 16};
    char             want[4 * 32];
    for (int named = 0; named < 2; named++) {
        ok(build_shapes(named ? "x" : NULL, desc_of(8, 8), desc_of(8, 16), desc_of(32, 16), 2));
        assert_int_equal(bucket_count, 6);
        for (int i = 0; i < bucket_count; i++) {
            assert_int_equal(buckets[i].batch, 1 + i % 2);
            assert_int_equal(buckets[i].width, 0);
            snprintf(want, sizeof want, "x [%d,3,%d,%d]", 1 + i % 2, heights[i / 2], widths[i / 2]);
            assert_string_equal(given[i], want);
        }
        sac_model *m = load(out);
        assert_string_equal(m->book.least, "float32[1,3,8,8]");
        assert_string_equal(m->book.greatest, "float32[2,3,32,16]");
        assert_int_equal(measured_by(m, 2, 16, 8), 0); /* told */
        assert_int_equal(far_counts.lent, 0);
        assert_int_equal(measured_by(m, 1, 12, 20), 0); /* between */
        assert_int_equal(far_counts.lent, CONVS);
        assert_true(measured_by(m, 1, 20, 12) > 0); /* outside */
        sac_model_unref(&m);
    }
    ok(build_shapes("x", desc_of(16, 16), desc_of(16, 16), desc_of(16, 16), 1));
    assert_int_equal(bucket_count, 1);
}

/* ---- one copy of the weights ---- */

static void plans_share_their_weights(void **state)
{
    (void)state;
    ok(build(8, 16, 32, 4));
    sac_model *m = load(out);
    measured_by(m, 1, 16, 16);
    const size_t count = m->weights.count, bytes = m->weights.bytes;
    assert_true(count >= CONVS && bytes > 0);
    measured_by(m, 4, 32, 32); /* told */
    measured_by(m, 3, 12, 12); /* lent */
    measured_by(m, 2, 40, 40); /* measured */
    for (int i = 0; i < 4; i++) {
        assert_non_null(m->plans[i]);
        assert_int_equal(m->plans[i]->weights.bytes, 0);
    }
    assert_int_equal(m->weights.count, count);
    assert_int_equal(m->weights.bytes, bytes);
    sac_model_unref(&m);
}

/* ---- sentences ---- */

static void expect_refused(sac_result res, const char *words)
{
    if (res != SAC_ERR_ARG || !strstr(last_error(), words))
        fail_msg("%s: '%s' does not say '%s'", sac_result_name(res), last_error(), words);
    assert_int_not_equal(access(out, F_OK), 0);
    assert_int_equal(bucket_count, 0);
}

static void wrong_ranges_are_told(void **state)
{
    (void)state;
    struct sac_build_params params = sac_build_params_default();
    expect_refused(build(32, 16, 8, 1), "size 32x32:16x16:8x8: want least <= usual <= greatest");
    expect_refused(build(16, 0, 0, 1), "size 16x16:0x0:0x0: want least <= usual");
    expect_refused(build(-4, 16, 0, 1), "size -4x-4:16x16:16x16: want");
    expect_refused(build(8, 16, 1 << 16, 1), "no side above 32768");
    expect_refused(build(0, 0, 0, 1), "input 'x' leaves a size open; --size WIDTHxHEIGHT gives it");
    expect_refused(build(8, 16, 30, 1), "images of 30x30 do not fit: ");
    params.width = params.width_max = 96;
    params.height = params.height_max = 96;
    params.width_min = params.height_min = 64;
    expect_refused(
        sac_model_build(far, MODELS_DIR "/resnet50.onnx", &params, out, NULL, NULL),
        "resnet50.onnx: the file fixes the size of input 'images', float32 [?,3,64,64]: it "
        "cannot be 96x96");
}

static void wrong_shapes_are_told(void **state)
{
    (void)state;
    static const char            order[] = "do not fit it, float32 [?,3,?,?], or are not the least";
    const struct sac_tensor_desc usual = desc_of(16, 16);
    struct sac_tensor_desc       other = usual;
    expect_refused(build_shapes("y", usual, usual, usual, 1), "it has no input 'y'");
    expect_refused(build_shapes("x", desc_of(16, 32), usual, usual, 1), order);
    expect_refused(build_shapes("x", usual, usual, desc_of(8, 16), 1), order);
    other.shape[1] = 4; /* the file has 3 */
    expect_refused(build_shapes("x", other, other, other, 1), order);
    other = usual;
    other.rank = 3;
    expect_refused(build_shapes("x", other, other, other, 1), order);
    expect_refused(build_shapes("x", usual, usual, desc_of(30, 30), 1),
                   "x [1,3,30,30] does not fit: ");
}

/* The other is the file's, which leaves both open or has both. */
static void one_side_alone_is_checked(void **state)
{
    (void)state;
    struct sac_build_params params = sac_build_params_default();
    params.height = 96;
    expect_refused(
        sac_model_build(far, MODELS_DIR "/resnet50.onnx", &params, out, NULL, NULL),
        "resnet50.onnx: the file fixes the size of input 'images', float32 [?,3,64,64]: it "
        "cannot be 64x96");
    expect_refused(sac_model_build(far, model_path, &params, out, NULL, NULL),
                   "input 'x' leaves a size open; --size WIDTHxHEIGHT gives it");
    params.height = 0;
    params.width = 64;
    bucket_count = 0;
    ok(sac_model_build(far, MODELS_DIR "/resnet50.onnx", &params, out, note_bucket, NULL));
    assert_int_equal(buckets[0].width, 64);
    assert_int_equal(buckets[0].height, 64);
}

/* What was measured is written all the same. */
static void many_inputs_have_no_range(void **state)
{
    enum { INPUTS = 17 };
    struct proto graph = {0}, model = {0};
    char         words[128] = "", name[8];
    (void)state;
    for (int i = 0; i < INPUTS; i++) {
        snprintf(name, sizeof name, "x%d", i);
        strcat(strcat(words, i ? " " : ""), name);
        proto_input(&graph, name, 1, "? 3 ? ?");
    }
    proto_node(&graph, "Sum", words, "y", NULL);
    proto_output(&graph, "y", 1, "? 3 ? ?");
    proto_model(&model, &graph, 17);
    open_size_keep(&model, model_path);
    ok(build(0, 16, 0, 2));
    expect_said("its inputs are too many for a range");
    assert_int_equal(access(out, R_OK), 0);
}

/* ---- the file ---- */

/* The lines, with what belongs before and behind them. */
static bool parse(const char *lines, struct sac_plan_book *book)
{
    char   text[1024], hash[33], why[160];
    size_t model;
    snprintf(text, sizeof text, "saccade plan 1\n%smodel 0\n", lines);
    sac_bytes_hash(text, strlen(text), hash);
    snprintf(text + strlen(text), sizeof text - strlen(text), "end %s\n", hash);
    *book = (struct sac_plan_book){.count = 0};
    return sac_book_parse(text, strlen(text), book, &model, why, sizeof why);
}

static void damaged_lines_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "range float32[1,3,16,16]\n",
        "range \n",
        "range  to \n",
        "range float32[1] to \n",
        "range float32[2] to float32[1]\n",
        "range float32[1] to float64[2]\n",
        "range float32[1] to float32[2,2]\n",
        "range float32[1] to float32[2] float32[1]\n",
        "range float32[1,] to float32[1,2]\n",
        "range float32[-1] to float32[2]\n",
        "range float32[1 to float32[2]\n",
        "range float32[1,1,1,1,1,1,1,1,1] to float32[1,1,1,1,1,1,1,1,1]\n",
        "range float32[1] to float32[2]\nrange float32[1] to float32[2]\n",
        "shapes float32[1]\nchoice 1/ a\n",
        "shapes float32[1]\nchoice 1/x a\n",
        "shapes float32[1]\nchoice 1/2a\n",
        "shapes float32[1]\nchoice 1/100000 a\n",
    };
    struct sac_plan_book book;
    for (size_t i = 0; i < SAC_COUNT(wrong); i++) {
        if (parse(wrong[i], &book))
            fail_msg("'%s' is taken", wrong[i]);
        sac_book_finish(&book);
    }
}

/* What was written before there were ranges serves its own shapes, and lends nothing. */
static void old_files_are_read(void **state)
{
    (void)state;
    struct sac_plan_book book;
    const char         **choices = NULL;
    size_t               count = 0;
    assert_true(parse("shapes float32[1,3,16,16]\nchoice 2 stem 0\nchoice 3 tile 1\n", &book));
    const struct sac_book_page *page = sac_book_find(&book, "float32[1,3,16,16]");
    assert_non_null(page);
    assert_string_equal(page->choices[3], "tile 1");
    assert_null(sac_book_lend(&book, "float32[1,3,16,16]", &choices, &count));
    assert_true(sac_book_set_range(&book, "float32[1,3,16,16]", "float32[1,3,64,64]"));
    assert_null(sac_book_lend(&book, "float32[1,3,32,32]", &choices, &count));
    assert_null(choices);
    sac_book_finish(&book);
}

static void the_nearest_lends_first(void **state)
{
    (void)state;
    struct sac_plan_book book;
    const char         **choices = NULL;
    size_t               count = 0, size = 0;
    assert_true(parse("range float32[1,64] int64[1] to float32[8,512] int64[8]\n"
                      "shapes float32[1,64] int64[1]\nchoice 0/7 a\nchoice 1/9 b\nchoice 2/4 c\n"
                      "shapes batch of 1 opened\nchoice 0 opened\n"
                      "shapes float32[8,1024] int64[8]\nchoice 0/7 outside\n"
                      "shapes float32[8,64] int64[8]\nchoice 0/9 d\nchoice 1/7 e\n",
                      &book));
    char *text = sac_book_text(&book, 1, &size); /* the terminator stands for the model */
    sac_book_finish(&book);
    char   why[160];
    size_t model;
    assert_true(sac_book_parse(text, size + 1, &book, &model, why, sizeof why));
    free(text);
    const struct sac_book_page *page =
        sac_book_lend(&book, "float32[6,64] int64[6]", &choices, &count);
    assert_non_null(page);
    assert_string_equal(page->shapes, "float32[8,64] int64[8]");
    assert_int_equal(count, 10);
    assert_string_equal(choices[7], "e");
    assert_string_equal(choices[9], "d");
    assert_string_equal(choices[4], "c");
    assert_null(choices[0]);
    sac_free(choices);
    choices = NULL;
    static const char *const others[] = {
        "float32[6,63] int64[6]", "float32[9,64] int64[6]",   "float32[6,64]",
        "float32[6,64] int32[6]", "float32[6,64,1] int64[6]", "float32[6,64] int64[6] 0.5"};
    for (size_t i = 0; i < SAC_COUNT(others); i++)
        assert_null(sac_book_lend(&book, others[i], &choices, &count));
    sac_book_finish(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_size_is_planned_for_each_batch, begin, end),
        cmocka_unit_test_setup_teardown(what_is_between_is_not_measured, begin, end),
        cmocka_unit_test_setup_teardown(what_is_outside_is_measured, begin, end),
        cmocka_unit_test_setup_teardown(what_a_plan_lacks_is_kept_in_the_cache, begin, end),
        cmocka_unit_test_setup_teardown(only_what_was_asked_for_is_a_range, begin, end),
        cmocka_unit_test_setup_teardown(a_plan_is_built_of_a_plan, begin, end),
        cmocka_unit_test_setup_teardown(steps_are_known_by_their_values, begin, end),
        cmocka_unit_test_setup_teardown(plans_share_their_weights, begin, end),
        cmocka_unit_test_setup_teardown(any_input_may_have_a_range, begin, end),
        cmocka_unit_test_setup_teardown(wrong_ranges_are_told, begin, end),
        cmocka_unit_test_setup_teardown(wrong_shapes_are_told, begin, end),
        cmocka_unit_test_setup_teardown(one_side_alone_is_checked, begin, end),
        cmocka_unit_test_setup_teardown(many_inputs_have_no_range, begin, end),
        cmocka_unit_test(damaged_lines_are_refused),
        cmocka_unit_test(old_files_are_read),
        cmocka_unit_test(the_nearest_lends_first),
    };
    return cmocka_run_group_tests_name("engine/plan ranges", tests, NULL, NULL);
}
