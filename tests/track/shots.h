/* SPDX-License-Identifier: Apache-2.0 */
/* A scene for trackers: people who cross, with embeddings, seen by cameras that sway. */
#ifndef SAC_TESTS_TRACK_SHOTS_H
#define SAC_TESTS_TRACK_SHOTS_H

#include <saccade/head.h>

#include "tests/vision/frames.h"
#include "tests/track/picture.h"

enum { PEOPLE = 7, DIM = 40, WIDTH = 480, HEIGHT = 270 };

struct shot {
    struct sac_detection det[PEOPLE];
    float                rows[PEOPLE][DIM];
    int32_t              row[PEOPLE]; /* which of them each detection has, turned about; -1: none */
    int                  count, row_count;
    sac_frame           *frame; /* on the host; NULL: none */
};

static inline void unit(float *row, int like)
{
    double square = 0;
    for (int i = 0; i < DIM; i++) {
        row[i] = (float)((like * 37 + i * 11) % 17 - 8) + (float)test_between(-100, 100) * 0.03f;
        square += (double)row[i] * row[i];
    }
    for (int i = 0; i < DIM; i++)
        row[i] /= (float)sqrt(square);
}

static inline void make_shot(struct shot *s, int stream, int number, sac_device *cpu)
{
    const double                sway = 9 * sin(number * 0.7 + stream);
    const struct sac_similarity look = {1, 0, sway, sway / 3};
    s->count = 0;
    for (int i = 0; i < PEOPLE; i++) {
        double t = number * 0.04, x = 60 + 50 * i + (i % 2 ? 40 : -40) * sin(t * 2 + i) + sway,
               y = 60 + 13 * i;
        if (test_between(0, 9) == 0)
            continue;
        s->det[s->count] = (struct sac_detection){(float)x,
                                                  (float)(y + sway / 3),
                                                  (float)(x + 30),
                                                  (float)(y + 80 + sway / 3),
                                                  test_between(0, 7) ? 0.9f : 0.4f,
                                                  0};
        unit(s->rows[s->count++], i);
    }
    for (int i = 0; i < s->count; i++)
        s->row[i] = s->count - 1 - i;
    if (s->count > 2) {
        s->row[1] = -1;
        memset(s->rows[s->row[2]], 0, sizeof s->rows[0]); /* a row that is none */
    }
    s->row_count = s->count;
    s->frame = NULL;
    if (stream % 2 == 0) {
        s->frame = test_frame(cpu, stream ? SAC_PIXEL_P010 : SAC_PIXEL_NV12, WIDTH, HEIGHT);
        picture_take(s->frame, &look);
    }
}

#endif
