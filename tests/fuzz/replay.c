/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over its corpus without libFuzzer, as an ordinary test: what once went wrong
 * stays mended on every compiler. One case per file. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exact-sized copy, so that the address sanitizer sees a read past the end. */
static void replays(void **state)
{
    const char *path = *state;
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t *data = malloc((size_t)st.st_size + !st.st_size);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)st.st_size, file), st.st_size);
    fclose(file);
    assert_int_equal(LLVMFuzzerTestOneInput(data, (size_t)st.st_size), 0);
    free(data);
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent    **entries;
    struct CMUnitTest *tests;
    if (argc != 3) /* replay NAME FOLDER */
        return 2;
    int n = scandir(argv[2], &entries, is_input, alphasort);
    if (n <= 0) {
        fprintf(stderr, "%s: no inputs\n", argv[2]);
        return 1;
    }
    tests = calloc((size_t)n, sizeof *tests);
    if (!tests)
        return 1;
    for (int i = 0; i < n; i++) {
        tests[i] = (struct CMUnitTest){.name = entries[i]->d_name, .test_func = replays};
        if (asprintf((char **)&tests[i].initial_state, "%s/%s", argv[2], entries[i]->d_name) < 0)
            return 1;
    }
    int failed = _cmocka_run_group_tests(argv[1], tests, (size_t)n, NULL, NULL);
    for (int i = 0; i < n; i++) {
        free(tests[i].initial_state);
        free(entries[i]);
    }
    free(entries);
    free(tests);
    return failed;
}
