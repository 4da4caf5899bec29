/* SPDX-License-Identifier: Apache-2.0 */
/* Rows from a store: none overlap while they are out, whatever the order in which they come back;
 * who wants more than there is waits, or is told. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "reid/embeddings.h"
#include "tests/vision/frames.h"
#include "tests/test.h"

enum { ROWS = 100, DIM = 8, OUT = 20 };

static struct sac_embedding_store *open_store(sac_device *dev)
{
    struct sac_embedding_store *store = NULL;
    assert_sac_ok(sac_embedding_store_open(dev, ROWS, DIM, &store));
    return store;
}

static void rows_never_overlap(void **state)
{
    (void)state;
    sac_device                 *dev = test_device();
    struct sac_embedding_store *store = open_store(dev);
    struct sac_embeddings      *out[OUT] = {NULL};
    struct sac_pool_stats       before, after;
    int                         owner[ROWS], taken = 0, refused = 0;
    memset(owner, 0xff, sizeof owner);
    sac_device_pool_stats(dev, &before);
    for (int turn = 0; turn < 20000; turn++) {
        int i = test_between(0, OUT);
        i = i == OUT ? 0 : i;
        if (!out[i] && sac_embedding_store_take(store, test_between(1, turn % 50 ? 12 : ROWS),
                                                false, &out[i])) {
            assert_true(out[i]->first + (size_t)out[i]->count <= ROWS);
            for (int r = 0; r < out[i]->count; r++) {
                assert_int_equal(owner[out[i]->first + (size_t)r], -1);
                owner[out[i]->first + (size_t)r] = i;
            }
            taken++;
        } else if (out[i]) {
            for (int r = 0; r < out[i]->count; r++)
                owner[out[i]->first + (size_t)r] = -1;
            sac_embeddings_unref(&out[i]);
        } else {
            refused++;
        }
    }
    assert_true(taken > 1000 && refused > 100);
    sac_device_pool_stats(dev, &after);
    assert_int_equal(after.allocations + after.reuses, before.allocations + before.reuses);
    sac_embedding_store_close(&store); /* what is out keeps the memory */
    for (int i = 0; i < OUT; i++) {
        if (out[i])
            memset(sac_embeddings_data(out[i]), 0, (size_t)out[i]->count * DIM * sizeof(float));
        sac_embeddings_unref(&out[i]);
    }
    sac_device_pool_stats(dev, &after);
    assert_int_equal(after.bytes_live, 0);
    sac_device_unref(&dev);
}

struct taker {
    struct sac_embedding_store *store;
    struct sac_embeddings      *got;
    atomic_int                  done;
};

static void *take_most(void *arg)
{
    struct taker *t = arg;
    if (sac_embedding_store_take(t->store, ROWS - 10, true, &t->got))
        atomic_store(&t->done, 1);
    return NULL;
}

static void who_wants_more_waits(void **state)
{
    (void)state;
    sac_device            *dev = test_device();
    struct taker           t = {.store = open_store(dev)};
    struct sac_embeddings *first = NULL, *second = NULL, *none = NULL;
    pthread_t              thread;
    assert_true(sac_embedding_store_take(t.store, 40, false, &first));
    assert_true(sac_embedding_store_take(t.store, 40, false, &second));
    assert_false(sac_embedding_store_take(t.store, 40, false, &none));
    assert_false(sac_embedding_store_take(t.store, ROWS + 1, true, &none)); /* never */
    assert_int_equal(pthread_create(&thread, NULL, take_most, &t), 0);
    usleep(50 * 1000);
    sac_embeddings_unref(&first);
    usleep(50 * 1000);
    assert_int_equal(atomic_load(&t.done), 0); /* the second is in the way */
    sac_embeddings_unref(&second);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&t.done), 1);
    sac_embeddings_unref(&t.got);
    sac_embedding_store_close(&t.store);
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_never_overlap),
        cmocka_unit_test(who_wants_more_waits),
    };
    return cmocka_run_group_tests_name("reid/embeddings", tests, NULL, NULL);
}
