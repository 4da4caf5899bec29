/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures that the CPU decodes for a device with memory of its own (apart.h): the pixels arrive,
 * and after the first pictures no memory is allocated, however many frames are held. */
#include <unistd.h>

#include <saccade/source.h>

#include "tests/vision/frames.h"
#include "tests/pipeline/folder.h"

enum { PICTURES = 40, HELD = 6 };

static struct sac_device_ops remote_ops;

static sac_device *open_remote(void)
{
    sac_device *dev = test_device();
    remote_ops = *dev->ops;
    remote_ops.host_memory = false;
    dev->ops = &remote_ops;
    return dev;
}

static void pictures_go_round_in_the_same_memory(void **state)
{
    (void)state;
    struct sac_source_params params = sac_source_params_default();
    sac_device              *there = open_remote(), *here = test_device();
    sac_source              *far = NULL, *near = NULL;
    sac_frame               *held[HELD] = {NULL}, *want = NULL;
    uint64_t                 before = 0;
    write_images(PICTURES);
    params.decode = SAC_DECODE_CPU;
    params.prefetch = 0;
    params.fps = 25;
    params.surfaces = HELD;
    assert_sac_ok(sac_source_open(there, in_folder("img%03d.ppm"), &params, &far));
    assert_sac_ok(sac_source_open(here, in_folder("img%03d.ppm"), &params, &near));
    for (int i = 0; i < PICTURES; i++) {
        sac_frame **at = &held[i * 7 % HELD];
        sac_frame_unref(at);
        assert_sac_ok(sac_source_read_wait(far, at));
        assert_sac_ok(sac_source_read_wait(near, &want));
        assert_int_equal((*at)->number, i);
        assert_ptr_equal((*at)->device, there);
        assert_int_equal((*at)->pitch_bytes[0] >= (size_t)want->width * 3, 1);
        for (int y = 0; y < want->height; y++)
            assert_memory_equal((*at)->plane[0] + (size_t)y * (*at)->pitch_bytes[0],
                                want->plane[0] + (size_t)y * want->pitch_bytes[0],
                                (size_t)want->width * 3);
        sac_frame_unref(&want);
        if (i == HELD - 1) /* all frames are there, and each place of page-locked memory was used */
            before = test_requests(there);
    }
    assert_int_equal(test_requests(there), before);
    sac_source_close(&far);
    sac_source_close(&near);
    assert_true(held[1]->plane[0][0] > 0); /* frames outlive their source */
    for (int i = 0; i < HELD; i++)
        sac_frame_unref(&held[i]);
    struct sac_pool_stats stats;
    sac_device_pool_stats(there, &stats);
    assert_int_equal(stats.bytes_live, 0);
    sac_device_unref(&there);
    sac_device_unref(&here);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pictures_go_round_in_the_same_memory)};
    return cmocka_run_group_tests_name("media/upload", tests, folder_create, folder_remove);
}
