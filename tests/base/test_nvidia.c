/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries are found where they may lie; each that does not do has its sentence.
 * Stand-ins take their places, in folders of each layout. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/nvidia.h"
#include "tests/test.h"

static char root[64];

static void make_folders(const char *path)
{
    char part[512];
    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        mkdir(part, 0777);
    }
}

/* A copy, so that the loader takes each for a library of its own. */
static void place(const char *from, const char *name, char *path, size_t size)
{
    char buf[4096];
    snprintf(path, size, "%s/%s", root, name);
    make_folders(path);
    FILE *in = fopen(from, "rb"), *out = fopen(path, "wb");
    assert_true(in && out);
    for (size_t n; (n = fread(buf, 1, sizeof buf, in)) > 0;)
        assert_int_equal(fwrite(buf, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void check_found(enum sac_nvidia_id id, const char *file, const char *folders,
                        const char *path)
{
    struct sac_nvidia_library lib;
    static const int          versions[SAC_NVIDIA_COUNT][3] = {{9, 12, 3}, {13, 2, 4}, {13, 2, 0}};
    setenv("SACCADE_CUDA_LIBS", folders, 1);
    sac_nvidia_open(id, 13, &lib);
    if (!lib.handle)
        fail_msg("%s: %s", file, lib.missing);
    assert_string_equal(lib.path, path);
    assert_int_equal(lib.cuda_major, 13);
    assert_memory_equal(lib.version, versions[id], sizeof lib.version);
}

static void each_layout_is_known(void **state)
{
    static const struct {
        enum sac_nvidia_id id;
        const char        *file, *folder;
    } rows[] = {
        {SAC_NVIDIA_CUDNN, "a/nvidia/cudnn/lib/libcudnn.so.9", "a"},
        {SAC_NVIDIA_CUBLASLT, "a/nvidia/cu13/lib/libcublasLt.so.13", "a"},
        {SAC_NVIDIA_NVRTC, "a/nvidia/cu13/lib/libnvrtc.so.13", "a"},
        {SAC_NVIDIA_CUBLASLT, "b/nvidia/cublas/lib/libcublasLt.so.13", "b"},
        {SAC_NVIDIA_NVRTC, "b/nvidia/cuda_nvrtc/lib/libnvrtc.so.13", "b"},
        {SAC_NVIDIA_CUDNN, "c/libcudnn.so.9", "c"},
        {SAC_NVIDIA_CUDNN, "d/lib64/libcudnn.so.9", "d"},
    };
    (void)state;
    for (size_t i = 0; i < SAC_COUNT(rows); i++) {
        char path[256], folders[256];
        place(FAKE_NVIDIA, rows[i].file, path, sizeof path);
        snprintf(folders, sizeof folders, "/does/not/exist::%s/%s:%s", root, rows[i].folder, root);
        check_found(rows[i].id, rows[i].file, folders, path);
    }
}

static void expect_missing(enum sac_nvidia_id id, int cuda_major, const char *folders,
                           const char *words)
{
    struct sac_nvidia_library lib;
    setenv("SACCADE_CUDA_LIBS", folders, 1);
    sac_nvidia_open(id, cuda_major, &lib);
    if (lib.handle) { /* this machine has it elsewhere, and that is taken */
        assert_null(strstr(lib.path, folders));
        assert_string_equal(lib.missing, "");
        return;
    }
    if (!strstr(lib.missing, words))
        fail_msg("'%s' does not say '%s'", lib.missing, words);
}

static void what_does_not_do_is_said(void **state)
{
    char path[256], folder[128];
    (void)state;
    snprintf(folder, sizeof folder, "%s/none", root);
    expect_missing(SAC_NVIDIA_CUDNN, 13, folder,
                   "neither on the loader's path nor in the folders of SACCADE_CUDA_LIBS");
    place(FAKE_NVIDIA, "old/libcudnn.so.9", path, sizeof path);
    snprintf(folder, sizeof folder, "%s/old", root);
    expect_missing(SAC_NVIDIA_CUDNN, 12, folder, "is for CUDA 13 and the driver for CUDA 12");
    place(FAKE_EMPTY, "empty/libcudnn.so.9", path, sizeof path);
    snprintf(folder, sizeof folder, "%s/empty", root);
    expect_missing(SAC_NVIDIA_CUDNN, 13, folder, "does not tell its version");
    place("/proc/version", "text/libcudnn.so.9", path, sizeof path);
    snprintf(folder, sizeof folder, "%s/text", root);
    expect_missing(SAC_NVIDIA_CUDNN, 13, folder, "cannot be used");
    for (int i = 0; i < SAC_NVIDIA_COUNT; i++)
        assert_true(strlen(sac_nvidia_name((enum sac_nvidia_id)i)) > 0 &&
                    strstr(sac_nvidia_mend((enum sac_nvidia_id)i), "SACCADE_CUDA_LIBS"));
}

/* A driver for CUDA 12 cannot run what was built for CUDA 13, so a library of its own is taken. */
static void older_ones_for_older_drivers(void **state)
{
    struct sac_nvidia_library lib;
    char                      path[256], newer[256], folder[128];
    (void)state;
    place(FAKE_NVIDIA, "both/libnvrtc.so.13", newer, sizeof newer);
    place(FAKE_NVIDIA, "both/libnvrtc.so.12", path, sizeof path);
    snprintf(folder, sizeof folder, "%s/both", root);
    setenv("SACCADE_CUDA_LIBS", folder, 1);
    sac_nvidia_open(SAC_NVIDIA_NVRTC, 12, &lib);
    assert_non_null(lib.handle);
    assert_string_equal(lib.path, path);
    sac_nvidia_open(SAC_NVIDIA_NVRTC, 0, &lib);
    assert_string_equal(lib.path, newer);
}

/* Else it would end the process when it first looks for that. */
static void cudnn_wants_cublas_of_its_cuda(void **state)
{
    struct sac_nvidia_library all[SAC_NVIDIA_COUNT];
    char                      path[256], folder[128];
    (void)state;
    place(FAKE_NVIDIA, "own/libcudnn.so.9", path, sizeof path);
    place(FAKE_NVIDIA, "own/libcublasLt.so.13", path, sizeof path);
    place(FAKE_NVIDIA, "own/libcublasLt.so.12", path, sizeof path);
    snprintf(folder, sizeof folder, "%s/own", root);
    setenv("SACCADE_CUDA_LIBS", folder, 1);
    for (int cuda = 13; cuda >= 12; cuda--) {
        setenv("STANDIN_CUDART", cuda == 13 ? "13000" : "12080", 1);
        sac_nvidia_open_all(13, all);
        assert_true(all[SAC_NVIDIA_CUDNN].handle && all[SAC_NVIDIA_CUDNN].cuda_major == cuda);
        assert_true(all[SAC_NVIDIA_CUBLASLT].handle && all[SAC_NVIDIA_CUBLASLT].cuda_major == 13);
    }
    setenv("STANDIN_CUDART", "11080", 1);
    sac_nvidia_open_all(13, all);
    unsetenv("STANDIN_CUDART");
    assert_null(all[SAC_NVIDIA_CUDNN].handle);
    assert_non_null(
        strstr(all[SAC_NVIDIA_CUDNN].missing, "wants cuBLASLt for CUDA 11, which is not there"));
    assert_non_null(all[SAC_NVIDIA_CUBLASLT].handle);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/saccade-nvidia-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_layout_is_known),
        cmocka_unit_test(what_does_not_do_is_said),
        cmocka_unit_test(older_ones_for_older_drivers),
        cmocka_unit_test(cudnn_wants_cublas_of_its_cuda),
    };
    return cmocka_run_group_tests_name("base/nvidia", tests, make_root, remove_root);
}
