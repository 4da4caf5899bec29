/* SPDX-License-Identifier: Apache-2.0 */
#include "media/media.h"
#include "tests/test.h"

static void push(struct sac_kept *kept, int number, int bytes)
{
    AVPacket *packet = av_packet_alloc();
    assert_int_equal(av_new_packet(packet, bytes), 0);
    packet->pts = number;
    assert_true(sac_kept_push(kept, packet, number % 3));
    assert_int_equal(packet->size, 0); /* taken */
    av_packet_free(&packet);
}

static int64_t take(struct sac_kept *kept)
{
    AVPacket *packet = av_packet_alloc();
    assert_int_equal(sac_kept_first(kept)->stream, (int)(sac_kept_first(kept)->packet->pts % 3));
    sac_kept_take(kept, packet);
    int64_t pts = packet->pts;
    av_packet_free(&packet);
    return pts;
}

static void gives_packets_in_their_order(void **state)
{
    (void)state;
    struct sac_kept kept = {0};
    int             pushed = 0, taken = 0;
    for (int round = 0; round < 50; round++) { /* the ring turns and grows */
        for (int i = 0; i < 7; i++)
            push(&kept, pushed++, 10);
        for (int i = 0; i < 3; i++)
            assert_int_equal(take(&kept), taken++);
    }
    while (sac_kept_first(&kept))
        assert_int_equal(take(&kept), taken++);
    assert_int_equal(taken, pushed);
    assert_int_equal(kept.bytes, 0);
    assert_int_equal(kept.dropped, 0);
    sac_kept_finish(&kept);
}

static void drops_the_oldest_when_nobody_fetches(void **state)
{
    (void)state;
    struct sac_kept kept = {0};
    for (int i = 0; i < 70; i++)
        push(&kept, i, 1 << 20);
    assert_int_equal(kept.dropped, 6);
    assert_int_equal(kept.bytes, 64 << 20);
    assert_int_equal(take(&kept), 6);
    sac_kept_finish(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_packets_in_their_order),
        cmocka_unit_test(drops_the_oldest_when_nobody_fetches),
    };
    return cmocka_run_group_tests_name("media/kept", tests, NULL, NULL);
}
