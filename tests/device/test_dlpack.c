/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of others in, ours out: what is taken and refused, and who ends what when. */
#include "device/dlpack.h"

#include <pthread.h>
#include <string.h>

#include <saccade/dlpack.h>

#include "device/device.h"
#include "tests/test.h"

static sac_device *cpu(void)
{
    sac_device *dev = NULL;
    assert_sac_ok(sac_device_open(test_context(), "cpu", NULL, &dev));
    return dev;
}

/* ---- an exporter: its memory is freed by the deleter, so a use afterwards is found ---- */

struct theirs {
    struct DLManagedTensor          plain;
    struct DLManagedTensorVersioned versioned;
    int64_t                         shape[9], strides[9];
    float                          *data;
};
static int deleted;

static void end_theirs(struct theirs *t)
{
    deleted++;
    free(t->data);
    free(t);
}

static void end_plain(struct DLManagedTensor *self)
{
    end_theirs(self->context);
}

static void end_versioned(struct DLManagedTensorVersioned *self)
{
    end_theirs(self->context);
}

/* float32 [2,3,4], 0, 1, 2, ... */
static struct theirs *theirs_create(void)
{
    static const int64_t shape[] = {2, 3, 4}, strides[] = {12, 4, 1};
    struct theirs       *t = calloc(1, sizeof *t);
    t->data = calloc(24, sizeof *t->data);
    for (int i = 0; i < 24; i++)
        t->data[i] = (float)i;
    memcpy(t->shape, shape, sizeof shape);
    memcpy(t->strides, strides, sizeof strides);
    t->plain = (struct DLManagedTensor){.context = t, .deleter = end_plain};
    t->plain.tensor.data = t->data;
    t->plain.tensor.device.type = SAC_DLPACK_CPU;
    t->plain.tensor.rank = 3;
    t->plain.tensor.number.code = SAC_DLPACK_FLOAT;
    t->plain.tensor.number.bits = 32;
    t->plain.tensor.number.lanes = 1;
    t->plain.tensor.shape = t->shape;
    t->plain.tensor.strides = t->strides;
    t->versioned = (struct DLManagedTensorVersioned){
        .version = {1, 7}, .context = t, .deleter = end_versioned, .tensor = t->plain.tensor};
    deleted = 0;
    return t;
}

/* ---- in ---- */

static void takes_their_memory_and_ends_it_once(void **state)
{
    (void)state;
    sac_device    *dev = cpu();
    struct theirs *theirs = theirs_create();
    float         *data = theirs->data, copy[24];
    sac_tensor    *t = NULL, *view = NULL;
    assert_sac_ok(sac_tensor_from_dlpack(dev, &theirs->plain, &t));
    assert_ptr_equal(sac_tensor_data(t), data);
    const struct sac_tensor_desc *desc = sac_tensor_describe(t);
    assert_int_equal(desc->dtype, SAC_F32);
    assert_int_equal(desc->rank, 3);
    assert_int_equal(desc->shape[2], 4);
    const struct sac_tensor_desc row = {.dtype = SAC_F32, .rank = 1, .shape = {4}};
    assert_sac_ok(sac_tensor_view(t, 80, &row, &view));
    sac_tensor_unref(&t);
    assert_int_equal(deleted, 0); /* the view still reads it */
    assert_true(((float *)sac_tensor_data(view))[3] == 23.0f);
    assert_sac_ok(sac_tensor_download(view, copy));
    sac_tensor_unref(&view);
    assert_int_equal(deleted, 1);
    sac_device_unref(&dev);
}

/* The exporter's own handles are gone when the tensor arrives: it holds what its deleter frees. */
static void reads_the_offset_and_any_stride_of_one(void **state)
{
    (void)state;
    sac_device    *dev = cpu();
    struct theirs *theirs = theirs_create();
    sac_tensor    *t = NULL;
    theirs->shape[0] = 1; /* [1,3,4] of the second half */
    theirs->strides[0] = 77;
    theirs->plain.tensor.byte_offset = 48;
    assert_sac_ok(sac_tensor_from_dlpack(dev, &theirs->plain, &t));
    assert_true(((float *)sac_tensor_data(t))[0] == 12.0f);
    sac_tensor_unref(&t);
    theirs = theirs_create();
    theirs->plain.tensor.strides = NULL;
    theirs->plain.deleter = NULL; /* nothing to end */
    assert_sac_ok(sac_tensor_from_dlpack(dev, &theirs->plain, &t));
    sac_tensor_unref(&t);
    assert_int_equal(deleted, 0);
    theirs->shape[1] = 0; /* empty: no strides, and no address */
    theirs->plain.tensor.strides = theirs->strides;
    theirs->plain.tensor.data = NULL;
    assert_sac_ok(sac_tensor_from_dlpack(dev, &theirs->plain, &t));
    assert_int_equal(sac_tensor_desc_elements(sac_tensor_describe(t)), 0);
    sac_tensor_unref(&t);
    end_theirs(theirs);
    sac_device_unref(&dev);
}

static void takes_every_kind_of_number(void **state)
{
    static const struct {
        uint8_t        code, bits;
        enum sac_dtype dtype;
    } kinds[] = {{0, 8, SAC_I8},   {0, 16, SAC_I16}, {0, 32, SAC_I32}, {0, 64, SAC_I64},
                 {1, 8, SAC_U8},   {1, 16, SAC_U16}, {1, 32, SAC_U32}, {1, 64, SAC_U64},
                 {2, 16, SAC_F16}, {2, 32, SAC_F32}, {2, 64, SAC_F64}, {4, 16, SAC_BF16},
                 {6, 8, SAC_BOOL}, {10, 8, SAC_F8}};
    (void)state;
    sac_device *dev = cpu();
    assert_int_equal(SAC_COUNT(kinds), SAC_DTYPE_COUNT - 1);
    for (size_t i = 0; i < SAC_COUNT(kinds); i++) {
        struct theirs                   *theirs = theirs_create();
        sac_tensor                      *t = NULL;
        struct DLManagedTensorVersioned *ours = NULL;
        theirs->shape[0] = 1;
        theirs->plain.tensor.number.code = kinds[i].code;
        theirs->plain.tensor.number.bits = kinds[i].bits;
        assert_sac_ok(sac_tensor_from_dlpack(dev, &theirs->plain, &t));
        assert_int_equal(sac_tensor_describe(t)->dtype, kinds[i].dtype);
        assert_sac_ok(sac_tensor_to_dlpack_versioned(t, &ours));
        assert_int_equal(ours->tensor.number.code, kinds[i].code);
        assert_int_equal(ours->tensor.number.bits, kinds[i].bits);
        assert_int_equal(ours->tensor.number.lanes, 1);
        ours->deleter(ours);
        sac_tensor_unref(&t);
        assert_int_equal(deleted, 1);
    }
    sac_device_unref(&dev);
}

static void is_told(struct theirs *theirs, sac_result code, const char *sentence)
{
    sac_device *dev = cpu();
    sac_tensor *t = NULL;
    char        why[512];
    assert_sac_error(sac_tensor_from_dlpack(dev, &theirs->plain, &t), code);
    sac_context_last_error(test_context(), why, sizeof why);
    if (!strstr(why, sentence))
        fail_msg("'%s' is not in '%s'", sentence, why);
    assert_null(t);
    assert_int_equal(deleted, 0); /* it stays the caller's */
    end_theirs(theirs);
    sac_device_unref(&dev);
}

static void says_what_it_does_not_take(void **state)
{
    (void)state;
    struct theirs *t = theirs_create();
    t->strides[1] = 1; /* a transposed one */
    t->strides[2] = 3;
    is_told(t, SAC_ERR_UNSUPPORTED,
            "float32 [2,3,4]: dimension 2 has a stride of 3; it is 1 where a tensor is dense");
    t = theirs_create();
    t->strides[0] = -12;
    is_told(t, SAC_ERR_UNSUPPORTED, "dimension 0 has a stride of -12");
    t = theirs_create();
    t->plain.tensor.number.code = 5;
    is_told(t, SAC_ERR_UNSUPPORTED, "numbers of code 5, 32 bits and 1 lanes");
    t = theirs_create();
    t->plain.tensor.number.lanes = 4;
    is_told(t, SAC_ERR_UNSUPPORTED, "4 lanes");
    t = theirs_create();
    t->plain.tensor.rank = 9;
    is_told(t, SAC_ERR_UNSUPPORTED, "rank 9; have 0 to 8");
    t = theirs_create();
    t->plain.tensor.rank = -1;
    is_told(t, SAC_ERR_UNSUPPORTED, "rank -1");
    t = theirs_create();
    t->plain.tensor.shape = NULL;
    is_told(t, SAC_ERR_ARG, "no shape");
    t = theirs_create();
    t->shape[1] = -3;
    is_told(t, SAC_ERR_ARG, "a negative dimension");
    t = theirs_create();
    t->shape[1] = INT64_MAX / 8;
    is_told(t, SAC_ERR_ARG, "more bytes than there can be");
    t = theirs_create();
    t->plain.tensor.device.type = SAC_DLPACK_CUDA;
    is_told(t, SAC_ERR_ARG, "device type 2, number 0, which is not that of cpu");
    t = theirs_create();
    t->plain.tensor.device.type = 1 << 20;
    is_told(t, SAC_ERR_ARG, "which is not that of cpu");
    t = theirs_create();
    t->plain.tensor.byte_offset = 2;
    is_told(t, SAC_ERR_ARG, "is no multiple of 4, the size of a float32");
    t = theirs_create();
    t->plain.tensor.data = NULL;
    is_told(t, SAC_ERR_ARG, "no address");
}

static void obeys_the_versioned_form(void **state)
{
    (void)state;
    sac_device                      *dev = cpu();
    struct theirs                   *theirs = theirs_create();
    sac_tensor                      *t = NULL;
    struct DLManagedTensor          *plain = NULL;
    struct DLManagedTensorVersioned *ours = NULL;
    const float                      zeros[24] = {0};
    theirs->versioned.version.major = 2;
    assert_sac_error(sac_tensor_from_dlpack_versioned(dev, &theirs->versioned, &t),
                     SAC_ERR_UNSUPPORTED);
    theirs->versioned.version.major = 1;
    theirs->versioned.flags = 1; /* read-only */
    assert_sac_ok(sac_tensor_from_dlpack_versioned(dev, &theirs->versioned, &t));
    assert_sac_error(sac_tensor_upload(t, zeros), SAC_ERR_ARG);
    assert_true(theirs->data[5] == 5.0f);
    assert_sac_error(sac_tensor_to_dlpack(t, &plain), SAC_ERR_ARG); /* could not say so */
    assert_null(plain);
    assert_sac_ok(sac_tensor_to_dlpack_versioned(t, &ours));
    assert_int_equal(ours->flags, 1);
    assert_int_equal(ours->version.major, 1);
    sac_tensor_unref(&t);
    assert_int_equal(deleted, 0);
    ours->deleter(ours);
    assert_int_equal(deleted, 1);
    theirs = theirs_create();
    assert_sac_ok(sac_tensor_from_dlpack_versioned(dev, &theirs->versioned, &t));
    assert_sac_ok(sac_tensor_upload(t, zeros));
    assert_true(theirs->data[5] == 0.0f);
    assert_sac_ok(sac_tensor_to_dlpack_versioned(t, &ours));
    assert_int_equal(ours->flags, 0);
    ours->deleter(ours);
    sac_tensor_unref(&t);
    sac_device_unref(&dev);
}

/* ---- out ---- */

static void gives_ours_dense_and_in_place(void **state)
{
    (void)state;
    sac_device                  *dev = cpu();
    sac_tensor                  *t = NULL, *back = NULL;
    struct DLManagedTensor      *ours = NULL;
    const struct sac_tensor_desc desc = {.dtype = SAC_I64, .rank = 3, .shape = {2, 3, 5}};
    assert_sac_ok(sac_tensor_create(dev, &desc, "ours", &t));
    assert_sac_ok(sac_tensor_to_dlpack(t, &ours));
    assert_ptr_equal(ours->tensor.data, sac_tensor_data(t));
    assert_int_equal(ours->tensor.rank, 3);
    assert_int_equal(ours->tensor.shape[1], 3);
    assert_int_equal(ours->tensor.strides[0], 15);
    assert_int_equal(ours->tensor.strides[2], 1);
    assert_int_equal(ours->tensor.device.type, SAC_DLPACK_CPU);
    assert_int_equal(ours->tensor.byte_offset, 0);
    /* And in again: the same memory, kept by the chain of both. */
    void *data = sac_tensor_data(t);
    sac_tensor_unref(&t);
    assert_sac_ok(sac_tensor_from_dlpack(dev, ours, &back));
    assert_ptr_equal(sac_tensor_data(back), data);
    memset(data, 1, 240);
    sac_tensor_unref(&back);
    struct sac_pool_stats stats;
    sac_device_pool_stats(dev, &stats);
    assert_int_equal(stats.returns, 1);
    sac_device_unref(&dev);
}

/* ---- the consumer keeps it longer than the program keeps the library ---- */

static int lines;

static void count_line(void *user, enum sac_log_level level, const char *message)
{
    (void)user, (void)level, (void)message;
    lines++;
}

static void *end_elsewhere(void *ours)
{
    ((struct DLManagedTensor *)ours)->deleter(ours);
    return NULL;
}

static void outlives_device_and_context(void **state)
{
    (void)state;
    struct sac_context_params params = sac_context_params_default();
    sac_context              *ctx = NULL;
    sac_device               *dev = NULL;
    sac_tensor               *t = NULL;
    struct DLManagedTensor   *ours = NULL;
    pthread_t                 thread;
    params.log_fn = count_line;
    params.log_level = SAC_LOG_TRACE;
    assert_sac_ok(sac_context_create(&params, &ctx));
    assert_sac_ok(sac_device_open(ctx, "cpu", NULL, &dev));
    const struct sac_tensor_desc desc = {.dtype = SAC_F32, .rank = 1, .shape = {1000}};
    assert_sac_ok(sac_tensor_create(dev, &desc, "ours", &t));
    assert_sac_ok(sac_tensor_to_dlpack(t, &ours));
    sac_tensor_unref(&t);
    lines = 0;
    sac_device_unref(&dev);
    assert_int_equal(lines, 0); /* no leak is named: somebody has a handle */
    sac_context_destroy(&ctx);
    memset(ours->tensor.data, 0xff, 4000);
    assert_int_equal(pthread_create(&thread, NULL, end_elsewhere, ours), 0);
    pthread_join(thread, NULL);
    assert_int_equal(lines, 0); /* whatever was said, the callback may be gone */
}

/* The ledger has no entry: nothing was copied. */
static void copies_nothing_either_way(void **state)
{
    (void)state;
    struct sac_device_params params = sac_device_params_default();
    sac_device              *dev = NULL;
    sac_tensor              *t = NULL;
    struct sac_ledger        ledger;
    params.zero_copy_strict = 1;
    assert_sac_ok(sac_device_open(test_context(), "cpu", &params, &dev));
    assert_sac_ok(sac_tensor_from_dlpack(dev, &theirs_create()->plain, &t));
    struct DLManagedTensor *ours = NULL;
    assert_sac_ok(sac_tensor_to_dlpack(t, &ours));
    assert_ptr_equal(ours->tensor.data, sac_tensor_data(t));
    sac_device_ledger(dev, &ledger);
    for (int i = 0; i < SAC_COPY_REASON_COUNT; i++)
        assert_int_equal(ledger.reason[i].calls, 0);
    struct sac_pool_stats stats;
    sac_device_pool_stats(dev, &stats);
    assert_int_equal(stats.allocations, 0);
    sac_tensor_unref(&t);
    ours->deleter(ours);
    assert_int_equal(deleted, 1);
    sac_device_unref(&dev);
}

/* ---- frames ---- */

static void count_frame(void *user)
{
    ++*(int *)user;
}

static void gives_a_frames_plane_to_be_read(void **state)
{
    (void)state;
    sac_device                      *dev = cpu();
    static uint8_t                   pixels[8 * 12];
    int                              released = 0;
    sac_frame                       *frame = NULL;
    sac_tensor                      *plane = NULL;
    struct DLManagedTensorVersioned *ours = NULL;
    sac_frame                        desc = {.format = SAC_PIXEL_RGB24, .width = 4, .height = 8};
    desc.plane[0] = pixels;
    desc.pitch_bytes[0] = 12;
    assert_sac_ok(sac_frame_wrap(dev, &desc, count_frame, &released, &frame));
    assert_sac_ok(sac_frame_plane_tensor(frame, 0, &plane));
    assert_sac_ok(sac_tensor_to_dlpack_versioned(plane, &ours));
    assert_int_equal(ours->flags, 1);
    assert_ptr_equal(ours->tensor.data, pixels);
    sac_tensor_unref(&plane);
    sac_frame_unref(&frame);
    assert_int_equal(released, 0);
    ours->deleter(ours);
    assert_int_equal(released, 1);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_their_memory_and_ends_it_once),
        cmocka_unit_test(reads_the_offset_and_any_stride_of_one),
        cmocka_unit_test(takes_every_kind_of_number),
        cmocka_unit_test(says_what_it_does_not_take),
        cmocka_unit_test(obeys_the_versioned_form),
        cmocka_unit_test(gives_ours_dense_and_in_place),
        cmocka_unit_test(outlives_device_and_context),
        cmocka_unit_test(copies_nothing_either_way),
        cmocka_unit_test(gives_a_frames_plane_to_be_read),
    };
    return cmocka_run_group_tests_name("device/dlpack", tests, NULL, NULL);
}
