/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that are whole, damaged, too many, and written by several processes; files of others. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/disk_cache.h"
#include "tests/pipeline/folder.h"

static sac_cache *open_cache(uint64_t bytes_max)
{
    const struct sac_cache_params params = {.folder = folder, .bytes_max = bytes_max};
    sac_cache                    *cache = NULL;
    assert_sac_ok(sac_cache_open(test_context(), &params, &cache));
    return cache;
}

static void put(sac_cache *cache, const char *key, const char *text)
{
    const struct sac_cache_label label = {
        .key = key, .kind = "word", .clip = "a.mp4", .model = "m.onnx"};
    assert_sac_ok(sac_cache_put(cache, &label, text, strlen(text)));
}

static void expect(sac_cache *cache, const char *key, const char *text)
{
    sac_cached *cached = NULL;
    size_t      size;
    assert_sac_ok(sac_cache_get(cache, key, &cached));
    const void *bytes = sac_cached_bytes(cached, &size);
    assert_int_equal(size, strlen(text));
    assert_int_equal((uintptr_t)bytes % 16, 0);
    if (size)
        assert_memory_equal(bytes, text, size);
    sac_cached_release(&cached);
    assert_null(cached);
}

static void expect_none(sac_cache *cache, const char *key)
{
    sac_cached *cached = NULL;
    assert_int_equal(sac_cache_get(cache, key, &cached), SAC_AGAIN);
    assert_null(cached);
}

/* The path of the only entry. */
static const char *only_entry(void)
{
    const char *found = NULL;
    DIR        *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strlen(e->d_name) == 32 + 6)
            found = in_folder(e->d_name);
    closedir(dir);
    assert_non_null(found);
    return found;
}

static void gives_back_what_was_put(void **state)
{
    (void)state;
    sac_cache *cache = open_cache(0);
    expect_none(cache, "a");
    put(cache, "a", "one");
    put(cache, "b", "two");
    put(cache, "a", "three");
    put(cache, "empty", "");
    put(cache, "no multiple of a block's bytes", "");
    expect(cache, "a", "three");
    expect(cache, "b", "two");
    expect(cache, "empty", "");
    expect_none(cache, "ab");
    assert_int_equal(count_files(".part"), 0);
    assert_sac_ok(sac_cache_clear(cache, 0, NULL, NULL));
    sac_cache_close(&cache);
}

/* Every byte of a small entry: changed, and the file cut there. */
static void damaged_entries_are_absent(void **state)
{
    (void)state;
    enum { MAX = 4096 };
    sac_cache *cache = open_cache(0);
    char       whole[MAX];
    put(cache, "key", "some text of the payload");
    const char *path = only_entry();
    int         fd = open(path, O_RDWR);
    const long  size = read(fd, whole, MAX);
    assert_in_range(size, 100, MAX - 1);
    for (long i = 0; i < size; i++) {
        const char other = (char)(whole[i] ^ 0x40);
        assert_int_equal(pwrite(fd, &other, 1, i), 1);
        expect_none(cache, "key");
        assert_int_equal(pwrite(fd, &whole[i], 1, i), 1);
    }
    expect(cache, "key", "some text of the payload");
    for (long i = 0; i < size; i++) {
        assert_int_equal(ftruncate(fd, i), 0);
        expect_none(cache, "key");
    }
    close(fd);
    put(cache, "key", "again");
    expect(cache, "key", "again");
    assert_sac_ok(sac_cache_clear(cache, 0, NULL, NULL));
    sac_cache_close(&cache);
}

static void unfinished_entries_have_no_name(void **state)
{
    (void)state;
    sac_cache                   *cache = open_cache(0);
    const struct sac_cache_label label = {.key = "slow"};
    struct sac_cache_writer      w = {0};
    assert_sac_ok(sac_cache_begin(cache, &label, &w));
    sac_cache_add(&w, "ab", 2);
    expect_none(cache, "slow");
    assert_int_equal(count_files(".part"), 1);
    sac_cache_abandon(&w);
    sac_cache_abandon(&w);
    assert_int_equal(count_files(".part"), 0);
    assert_sac_ok(sac_cache_begin(cache, &label, &w));
    sac_cache_add(&w, "ab", 2);
    sac_cache_add(&w, "cd", 2);
    assert_sac_ok(sac_cache_commit(&w));
    expect(cache, "slow", "abcd");
    assert_sac_ok(sac_cache_clear(cache, 0, NULL, NULL));
    sac_cache_close(&cache);
}

static void age(const char *path, int seconds)
{
    const struct timespec then = {time(NULL) - seconds, 0}, times[2] = {then, then};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void the_least_recently_used_goes(void **state)
{
    (void)state;
    sac_cache *cache = open_cache(0);
    char       text[1001], key[2] = "a";
    memset(text, 'x', 1000);
    text[1000] = '\0';
    put(cache, "a", text);
    age(only_entry(), 3000);
    struct stat st;
    assert_int_equal(stat(only_entry(), &st), 0);
    sac_cache_close(&cache);
    cache = open_cache((uint64_t)st.st_size * 2 + 10);
    put(cache, "b", text);
    expect(cache, "a", text); /* now b is the older one */
    put(cache, "c", text);
    expect(cache, "a", text);
    expect(cache, "c", text);
    expect_none(cache, "b");
    for (key[0] = 'd'; key[0] < 'h'; key[0]++)
        put(cache, key, text);
    assert_int_equal(count_files(".entry"), 2);
    assert_sac_ok(sac_cache_clear(cache, 0, NULL, NULL));
    assert_int_equal(count_files(".entry"), 0);
    sac_cache_close(&cache);
}

/* Instead of being removed as soon as it is whole, with all that were there. */
static void what_is_larger_than_the_bound_is_refused(void **state)
{
    (void)state;
    sac_cache                   *cache = open_cache(400);
    const struct sac_cache_label label = {.key = "large"};
    static const char            text[400];
    put(cache, "small", "text");
    assert_int_equal(sac_cache_put(cache, &label, text, sizeof text), SAC_ERR_LIMIT);
    expect_none(cache, "large");
    expect(cache, "small", "text");
    assert_int_equal(count_files(".part"), 0);
    assert_sac_ok(sac_cache_clear(cache, 0, NULL, NULL));
    sac_cache_close(&cache);
}

/* What is given up while it is made takes no room until its end. */
static void what_outgrows_the_bound_is_known_at_once(void **state)
{
    (void)state;
    static const char            text[200];
    sac_cache                   *cache = open_cache(600);
    const struct sac_cache_label label = {.key = "large"};
    struct sac_cache_writer      w = {0};
    assert_sac_ok(sac_cache_begin(cache, &label, &w));
    sac_cache_add(&w, text, sizeof text);
    sac_cache_add(&w, text, sizeof text);
    assert_false(sac_cache_is_lost(&w));
    sac_cache_add(&w, text, sizeof text);
    assert_true(sac_cache_is_lost(&w));
    assert_int_equal(sac_cache_commit(&w), SAC_ERR_LIMIT);
    assert_int_equal(count_files(".part") + count_files(".entry"), 0);
    sac_cache_close(&cache);
}

/* Its parts have sums of their own; only what says how long it is must be whole. */
static void a_mapped_entry_is_not_read_for_its_sum(void **state)
{
    (void)state;
    enum { SIZE = 20000 };
    char        text[SIZE + 1];
    sac_cache  *cache = open_cache(0);
    sac_cached *cached = NULL;
    size_t      size;
    memset(text, 'x', SIZE);
    text[SIZE] = '\0';
    put(cache, "key", text);
    const char *path = only_entry();
    int         fd = open(path, O_RDWR);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(pwrite(fd, "y", 1, st.st_size - 1), 1);
    expect_none(cache, "key");
    assert_int_equal(sac_cache_map(cache, "kex", &cached), SAC_AGAIN);
    assert_sac_ok(sac_cache_map(cache, "key", &cached));
    const char *bytes = sac_cached_bytes(cached, &size);
    assert_int_equal(size, SIZE);
    sac_cached_drop_pages(bytes, 0);
    sac_cached_drop_pages(bytes + 100, SIZE - 100); /* and it is there again when it is read */
    assert_memory_equal(bytes, text, SIZE - 1);
    assert_int_equal(bytes[SIZE - 1], 'y');
    sac_cache_remove(cache, "key");
    sac_cache_remove(cache, "key");
    assert_int_equal(count_files(".entry"), 0);
    assert_memory_equal(bytes, text, SIZE - 1);
    sac_cached_release(&cached);
    close(fd);
    put(cache, "key", text);
    fd = open(only_entry(), O_RDWR);
    assert_int_equal(ftruncate(fd, st.st_size - 1), 0);
    assert_int_equal(sac_cache_map(cache, "key", &cached), SAC_AGAIN);
    close(fd);
    assert_sac_ok(sac_cache_clear(cache, 0, NULL, NULL));
    sac_cache_close(&cache);
}

struct seen {
    int      count, words, plans;
    uint64_t bytes;
};

static void see(void *user, const struct sac_cache_entry *e)
{
    struct seen *seen = user;
    seen->count++;
    seen->bytes += e->bytes;
    seen->plans += strcmp(e->kind, "plan") == 0;
    if (strcmp(e->kind, "word") == 0) {
        assert_string_equal(e->clip, "a.mp4");
        assert_string_equal(e->model, "m.onnx");
        assert_true(e->age_s >= 0 && e->age_s < 100);
        seen->words++;
    }
}

#define DIGITS "0123456789abcdef0123456789abcdef"

static void only_files_of_ours_are_seen_and_removed(void **state)
{
    (void)state;
    static const char *const others[] = {"notes.txt",     DIGITS ".txt",
                                         DIGITS ".entry", DIGITS ".entry.12.3.bak",
                                         "x.plan",        "cudnn-12.json"};
    sac_cache               *cache = open_cache(1);
    struct seen              seen = {0};
    int                      removed;
    uint64_t                 bytes;
    for (size_t i = 0; i < SAC_COUNT(others); i++) {
        write_text(in_folder(others[i]), "saccade plan 1\nnot an entry");
        age(in_folder(others[i]), 1000000);
    }
    write_text(in_folder(DIGITS ".plan"), "saccade plan 1\n");
    write_text(in_folder(DIGITS ".entry.12.3.part"), "x");
    sac_cache_close(&cache);
    cache = open_cache(0);
    put(cache, "a", "b");
    assert_sac_ok(sac_cache_list(cache, see, &seen));
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.words, 1);
    assert_int_equal(seen.plans, 1);
    assert_sac_ok(sac_cache_clear(cache, 3600, &removed, &bytes));
    assert_int_equal(removed, 0);
    assert_sac_ok(sac_cache_clear(cache, 0, &removed, &bytes));
    assert_int_equal(removed, 2); /* the unfinished one is young: another process writes it */
    age(in_folder(DIGITS ".entry.12.3.part"), 1000000);
    put(cache, "a", "b");
    assert_int_equal(count_files(".part"), 0);
    assert_sac_ok(sac_cache_clear(cache, 0, NULL, NULL));
    for (size_t i = 0; i < SAC_COUNT(others); i++)
        assert_int_equal(unlink(in_folder(others[i])), 0);
    sac_cache_close(&cache);
}

/* Readers see one text or the other, whole. */
static void processes_share_a_folder(void **state)
{
    (void)state;
    enum { TURNS = 200, SIZE = 5000 };
    char text[2][SIZE + 1];
    for (int i = 0; i < 2; i++) {
        memset(text[i], 'a' + i, SIZE);
        text[i][SIZE] = '\0';
    }
    sac_cache *cache = open_cache(1 << 20);
    pid_t      child = fork();
    for (int i = 0; i < TURNS; i++) {
        sac_cached *cached = NULL;
        size_t      size;
        put(cache, "shared", text[child == 0]);
        sac_result res = sac_cache_get(cache, "shared", &cached);
        assert_sac_ok(res);
        const char *bytes = sac_cached_bytes(cached, &size);
        assert_int_equal(size, SIZE);
        assert_memory_equal(bytes, text[bytes[0] - 'a'], SIZE);
        sac_cached_release(&cached);
    }
    if (child == 0)
        _exit(0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(count_files(".part"), 0);
    assert_sac_ok(sac_cache_clear(cache, 0, NULL, NULL));
    sac_cache_close(&cache);
}

static void refuses_what_is_no_folder(void **state)
{
    (void)state;
    sac_cache              *cache = NULL;
    struct sac_cache_params params = sac_cache_params_default();
    write_text(in_folder("file"), "x");
    params.folder = in_folder("file");
    assert_int_equal(sac_cache_open(test_context(), &params, &cache), SAC_ERR_IO);
    params.folder = in_folder("file/below");
    assert_int_equal(sac_cache_open(test_context(), &params, &cache), SAC_ERR_IO);
    assert_null(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_what_was_put),
        cmocka_unit_test(damaged_entries_are_absent),
        cmocka_unit_test(unfinished_entries_have_no_name),
        cmocka_unit_test(the_least_recently_used_goes),
        cmocka_unit_test(what_is_larger_than_the_bound_is_refused),
        cmocka_unit_test(what_outgrows_the_bound_is_known_at_once),
        cmocka_unit_test(a_mapped_entry_is_not_read_for_its_sum),
        cmocka_unit_test(only_files_of_ours_are_seen_and_removed),
        cmocka_unit_test(processes_share_a_folder),
        cmocka_unit_test(refuses_what_is_no_folder),
    };
    return cmocka_run_group_tests_name("base/disk_cache", tests, folder_create, folder_remove);
}
