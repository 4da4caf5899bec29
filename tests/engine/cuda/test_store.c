/* SPDX-License-Identifier: Apache-2.0 */
/* Kept plans come back whole or not at all. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cache.h"
#include "engine/cuda/products/cudnn_store.h"
#include "tests/test.h"

static char folder[64], inside[80];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/saccade-store-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(inside, sizeof inside, "%s/cache", folder);
    return setenv("SACCADE_CACHE", inside, 1);
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* The one file in the cache. */
static void only_file(char *path, size_t size)
{
    DIR           *dir = opendir(inside);
    struct dirent *e;
    int            count = 0;
    assert_non_null(dir);
    while ((e = readdir(dir)))
        if (e->d_name[0] != '.') {
            snprintf(path, size, "%s/%.200s", inside, e->d_name);
            count++;
        }
    closedir(dir);
    assert_int_equal(count, 1);
}

static void what_is_kept_comes_back(void **state)
{
    size_t size = 0;
    (void)state;
    assert_null(cudnn_store_load("key", &size));
    assert_true(cudnn_store_save("key", "a text\nof lines", 15));
    char *text = cudnn_store_load("key", &size);
    assert_non_null(text);
    assert_int_equal(size, 15);
    assert_string_equal(text, "a text\nof lines");
    sac_free(text);
    assert_null(cudnn_store_load("another key", &size));
    assert_true(cudnn_store_save("key", "newer", 5));
    text = cudnn_store_load("key", &size);
    assert_non_null(text);
    assert_string_equal(text, "newer");
    sac_free(text);
}

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void what_is_damaged_does_not(void **state)
{
    char   path[300];
    size_t size = 0, got = 0;
    (void)state;
    assert_true(cudnn_store_save("key", "{\"plan\":[1,2,3]}", 16));
    only_file(path, sizeof path);
    char *whole = sac_cache_read(path, 1 << 20, &size);
    assert_non_null(whole);
    for (size_t i = 0; i < size; i++) { /* each bit matters, and so does the length */
        whole[i] ^= 1;
        write_file(path, whole, size);
        assert_null(cudnn_store_load("key", &got));
        whole[i] ^= 1;
        write_file(path, whole, i);
        assert_null(cudnn_store_load("key", &got));
    }
    write_file(path, whole, size);
    char *text = cudnn_store_load("key", &got);
    assert_non_null(text);
    sac_free(text);
    assert_null(sac_cache_read(path, size - 1, &got));
    sac_free(whole);
}

static void without_a_place_nothing_is_kept(void **state)
{
    size_t size = 0;
    (void)state;
    setenv("SACCADE_CACHE", "", 1);
    assert_false(cudnn_store_save("key", "text", 4));
    assert_null(cudnn_store_load("key", &size));
    setenv("SACCADE_CACHE", "/proc/nowhere/at/all", 1);
    assert_false(cudnn_store_save("key", "text", 4));
    unsetenv("SACCADE_CACHE");
    setenv("XDG_CACHE_HOME", inside, 1);
    assert_true(cudnn_store_save("key", "text", 4));
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", inside, 1);
    assert_true(cudnn_store_save("key", "text", 4));
    unsetenv("HOME");
    assert_false(cudnn_store_save("key", "text", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_comes_back),
        cmocka_unit_test(what_is_damaged_does_not),
        cmocka_unit_test(without_a_place_nothing_is_kept),
    };
    return cmocka_run_group_tests_name("engine/cuda/store", tests, make_folder, remove_folder);
}
