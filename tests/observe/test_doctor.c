/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "observe/doctor.h"
#include "tests/gpu.h"

struct seen {
    int  findings, cpu, ffmpeg, onednn, gpu, faults;
    char last_area[32];
    int  torn; /* an area came back after another one */
};

static void look(void *user, const struct sac_finding *finding)
{
    struct seen *seen = user;
    assert_non_null(finding->text);
    assert_true(strlen(finding->text) > 0);
    assert_null(strchr(finding->text, '\n'));
    int *count = strcmp(finding->area, "cpu") == 0      ? &seen->cpu
                 : strcmp(finding->area, "ffmpeg") == 0 ? &seen->ffmpeg
                 : strcmp(finding->area, "onednn") == 0 ? &seen->onednn
                 : strcmp(finding->area, "gpu") == 0    ? &seen->gpu
                                                        : NULL;
    if (count && strcmp(seen->last_area, finding->area) != 0)
        seen->torn += *count != 0;
    if (count)
        ++*count;
    seen->findings++;
    seen->faults += finding->level == SAC_FINDING_FAULT;
    assert_true(finding->level != SAC_FINDING_OK || !finding->mend);
    strcpy(seen->last_area, finding->area);
}

static void every_area_is_looked_at_once(void **state)
{
    (void)state;
    struct seen seen = {0};
    sac_doctor_run(test_context(), look, &seen);
    assert_true(seen.cpu >= 2);
    assert_true(seen.ffmpeg >= 3);
    assert_int_equal(seen.onednn, 1);
    assert_true(seen.gpu >= 1);
    assert_int_equal(seen.torn, 0);
    /* the tests themselves decode H.264 */
    assert_int_equal(seen.faults, 0);
}

/* ---- the GPU's part: machines as they come ---- */

struct said {
    char text[4096]; /* LEVEL TEXT|MEND; a line each */
};

static void keep(void *user, const struct sac_finding *finding)
{
    struct said *said = user;
    size_t       at = strlen(said->text);
    assert_string_equal(finding->area, "gpu");
    assert_true(finding->level != SAC_FINDING_OK || !finding->mend);
    snprintf(said->text + at, sizeof said->text - at, "%d %s|%s\n", (int)finding->level,
             finding->text, finding->mend ? finding->mend : "");
}

static void say(const struct sac_gpu_facts *facts, struct said *said)
{
    const struct sac_doctor doc = {.fn = keep, .user = said};
    said->text[0] = '\0';
    sac_doctor_say_gpu(&doc, facts);
}

#define assert_says(said, words)                                 \
    do {                                                         \
        if (!strstr((said).text, words))                         \
            fail_msg("'%s' is not in:\n%s", words, (said).text); \
    } while (0)

static struct sac_gpu_facts good_machine(void)
{
    struct sac_gpu_facts     f = {.cards = 1,
                                  .libcuda = true,
                                  .nvml = true,
                                  .nvenc = true,
                                  .nvcuvid = true,
                                  .plugin = true,
                                  .opened = true,
                                  .free_bytes = (uint64_t)130 << 30,
                                  .total_bytes = (uint64_t)140 << 30};
    static const char *const codecs[SAC_GPU_CODECS] = {"h264", "hevc", "vp9", "av1"};
    snprintf(f.module, sizeof f.module, "NVRM version: 580");
    snprintf(f.device, sizeof f.device, "cuda:0: NVIDIA H200, driver for CUDA 13.0");
    snprintf(f.build, sizeof f.build, "CUDA 13.0, code for sm_90 and newer");
    for (int i = 0; i < SAC_GPU_CODECS; i++)
        f.codec[i] = (struct sac_gpu_codec){codecs[i], true};
    for (int i = 0; i < SAC_NVIDIA_COUNT; i++) {
        f.nvidia[i] =
            (struct sac_nvidia_library){.handle = &f, .version = {9, 19, 0}, .cuda_major = 13};
        snprintf(f.nvidia[i].path, sizeof f.nvidia[i].path, "/opt/lib.so");
    }
    return f;
}

static void a_good_gpu_is_told_without_complaint(void **state)
{
    (void)state;
    struct sac_gpu_facts f = good_machine();
    struct said          said;
    say(&f, &said);
    assert_says(said, "0 cuda:0: NVIDIA H200, driver for CUDA 13.0; 130.0 of 140.0 GiB free; this "
                      "build: CUDA 13.0, code for sm_90 and newer|\n");
    assert_says(said, "0 NVDEC through this libavcodec: h264, hevc, vp9, av1");
    assert_says(said, "0 cuDNN 9.19.0 for CUDA 13 (/opt/lib.so)|\n");
    assert_null(strstr(said.text, "\n1 "));
    assert_null(strstr(said.text, "\n2 "));
}

static void each_missing_part_has_its_sentence_and_mend(void **state)
{
    (void)state;
    struct sac_gpu_facts f = good_machine();
    struct said          said;
    f.codec[3].hwaccel = false;
    f.nvenc = f.nvml = false;
    for (int i = 0; i < SAC_NVIDIA_COUNT; i++) {
        f.nvidia[i].handle = NULL;
        snprintf(f.nvidia[i].missing, sizeof f.nvidia[i].missing, "%s is not there",
                 sac_nvidia_name((enum sac_nvidia_id)i));
    }
    say(&f, &said);
    assert_says(said, "2 this libavcodec was built without NVDEC for av1: of such video --decode "
                      "auto lets the CPU decode it|");
    assert_says(said, "2 cuDNN is not there: convolutions run on saccade's own kernels, which are "
                      "slower|pip install");
    assert_says(said, "2 cuBLASLt is not there: matrix products");
    assert_says(said, "2 NVRTC is not there: cuDNN fuses less|pip install");
    assert_says(said, "1 no libnvidia-encode.so.1");
    assert_says(said, "1 no libnvidia-ml.so.1");
    f.nvcuvid = false;
    say(&f, &said);
    assert_says(said, "2 no libnvcuvid.so.1: NVDEC is not available; --decode auto lets the CPU "
                      "decode|start the container");
    assert_null(strstr(said.text, "0 NVDEC through"));
}

static void a_gpu_that_cannot_be_used_is_missing(void **state)
{
    (void)state;
    struct sac_gpu_facts f = {.cards = 1, .plugin = true};
    struct said          said;
    snprintf(f.device, sizeof f.device, "there is no NVIDIA driver");
    say(&f, &said);
    assert_says(said, "2 1 NVIDIA GPU; kernel driver: not loaded; libcuda.so.1: not found|");
    assert_says(said, "2 there is no NVIDIA driver|install NVIDIA's driver");
    f.libcuda = true;
    snprintf(f.module, sizeof f.module, "NVRM version: 535");
    snprintf(f.device, sizeof f.device,
             "the NVIDIA driver is for CUDA 12.2 and this build needs 13.0");
    say(&f, &said);
    assert_says(said, "2 the NVIDIA driver is for CUDA 12.2 and this build needs 13.0|\n"); /* it
                                                                                               tells
                                                                                               its
                                                                                               mend
                                                                                             */
    f.plugin = false;
    say(&f, &said);
    assert_says(said, "|build where nvcc is");
}

static void no_gpu_is_a_note(void **state)
{
    (void)state;
    struct sac_gpu_facts f = {.plugin = true};
    struct said          said;
    snprintf(f.device, sizeof f.device, "there is no NVIDIA driver");
    say(&f, &said);
    assert_string_equal(said.text, "1 no NVIDIA GPU|\n1 there is no NVIDIA driver|\n");
}

static void this_gpu_is_known(void **state)
{
    (void)state;
    sac_device          *dev = gpu_open(NULL);
    struct sac_gpu_facts f;
    struct said          said;
    sac_gpu_facts_find(&f);
    say(&f, &said);
    print_message("%s", said.text);
    assert_true(f.opened && f.plugin && f.libcuda && f.total_bytes > 0);
    assert_non_null(strstr(f.build, "CUDA "));
    sac_device_unref(&dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_area_is_looked_at_once),
        cmocka_unit_test(a_good_gpu_is_told_without_complaint),
        cmocka_unit_test(each_missing_part_has_its_sentence_and_mend),
        cmocka_unit_test(a_gpu_that_cannot_be_used_is_missing),
        cmocka_unit_test(no_gpu_is_a_note),
        cmocka_unit_test(this_gpu_is_known),
    };
    return cmocka_run_group_tests_name("observe/doctor", tests, NULL, NULL);
}
