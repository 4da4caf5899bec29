/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/job.h"
#include "tests/pipeline/folder.h"

static void finds_the_rows_of_a_frame(void **state)
{
    (void)state;
    struct sac_rows       rows;
    struct sac_detections found = {0};
    write_text(in_folder("det.txt"), "3,-1,10,20,30,40,0.5,-1,-1,-1\n"
                                     "1,-1,1,2,3,4,0.9\n"
                                     "3,-1,11,21,31,41,7.5,2,-1\n");
    assert_sac_ok(sac_rows_open(test_context(), in_folder("det.txt"), &rows));
    assert_int_equal(rows.frames, 3);
    assert_true(rows.fps == 0);
    assert_sac_ok(sac_rows_get(&rows, test_context(), 0, &found));
    assert_int_equal(found.count, 1);
    assert_true(found.items[0].x1 == 4.0f && found.items[0].y1 == 6.0f);
    assert_sac_ok(sac_rows_get(&rows, test_context(), 1, &found));
    assert_int_equal(found.count, 0);
    assert_sac_ok(sac_rows_get(&rows, test_context(), 2, &found));
    assert_int_equal(found.count, 2);
    assert_true(found.items[0].score == 0.5f);
    assert_int_equal(found.items[0].class_id, 0);
    assert_true(found.items[1].score == 1.0f); /* some detectors have no upper bound */
    assert_int_equal(found.items[1].class_id, 2);
    assert_sac_ok(sac_rows_get(&rows, test_context(), 1000000000000, &found));
    assert_int_equal(found.count, 0);
    sac_detections_finish(&found);
    sac_rows_finish(&rows);
}

static void reads_seqinfo_beside_it(void **state)
{
    (void)state;
    struct sac_rows rows;
    write_text(in_folder("det.txt"), "3,-1,10,20,30,40,0.5,-1,-1,-1\n");
    write_text(in_folder("seqinfo.ini"), "[Sequence]\nname=x\nframeRate=14\nseqLength=20\n");
    assert_sac_ok(sac_rows_open(test_context(), in_folder("det.txt"), &rows));
    assert_int_equal(rows.frames, 20);
    assert_true(rows.fps == 14);
    sac_rows_finish(&rows);
}

static void passes_faults_on(void **state)
{
    (void)state;
    struct sac_rows rows;
    assert_sac_error(sac_rows_open(test_context(), in_folder("none.txt"), &rows), SAC_ERR_IO);
    write_text(in_folder("bad.txt"), "1,-1,what\n");
    assert_sac_error(sac_rows_open(test_context(), in_folder("bad.txt"), &rows), SAC_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_rows_of_a_frame),
        cmocka_unit_test(reads_seqinfo_beside_it),
        cmocka_unit_test(passes_faults_on),
    };
    return cmocka_run_group_tests_name("pipeline/rows", tests, folder_create, folder_remove);
}
