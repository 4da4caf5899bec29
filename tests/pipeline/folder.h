/* SPDX-License-Identifier: Apache-2.0 */
/* A temporary folder for a test's files. */
#ifndef SAC_TESTS_PIPELINE_FOLDER_H
#define SAC_TESTS_PIPELINE_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/test.h"

static char folder[64];

static inline int folder_create(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/saccade-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* The path of a file inside; the latest few stay valid. */
static inline const char *in_folder(const char *name)
{
    static char     paths[8][384];
    static unsigned next;
    char           *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline int folder_remove(void **state)
{
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        unlink(in_folder(e->d_name));
    if (dir)
        closedir(dir);
    return rmdir(folder);
}

/* How many files whose name ends so. */
static inline int count_files(const char *ending)
{
    int  n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t length = strlen(e->d_name), tail = strlen(ending);
        n += length >= tail && !strcmp(e->d_name + length - tail, ending);
    }
    if (dir)
        closedir(dir);
    return n;
}

static inline void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline void expect_text(const char *path, const char *text)
{
    char  have[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    have[fread(have, 1, sizeof have - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(have, text);
}

/* An object that walks to the right, and one that stands; frames from 1. */
static inline void write_detections(const char *path, int frames)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < frames; i++) {
        fprintf(file, "%d,-1,%d,20,20,40,0.9,-1,-1,-1\n", i + 1, 5 + 2 * i);
        fprintf(file, "%d,-1,110,100,30,60,0.8,-1,-1,-1\n", i + 1);
    }
    assert_int_equal(fclose(file), 0);
}

/* Frames of 160x192 as images img000.ppm, ...: a grey ramp with a walking square. */
static inline void write_images(int frames)
{
    enum { W = 160, H = 192 };
    static unsigned char rgb[H][W][3];
    for (int i = 0; i < frames; i++) {
        char name[32];
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                int inside = x >= 5 + 2 * i && x < 25 + 2 * i && y >= 20 && y < 60;
                memset(rgb[y][x], inside ? 250 : 20 + x / 2, 3);
            }
        snprintf(name, sizeof name, "img%03d.ppm", i);
        FILE *file = fopen(in_folder(name), "wb");
        assert_non_null(file);
        fprintf(file, "P6\n%d %d\n255\n", W, H);
        assert_int_equal(fwrite(rgb, 1, sizeof rgb, file), sizeof rgb);
        assert_int_equal(fclose(file), 0);
    }
}

#endif
