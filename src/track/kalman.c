/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/base.h"
#include "track/kalman.h"

/* ---- one axis ---- */

static void axis_start(struct sac_axis *a, double x, const struct sac_axis_noise *n, double scale)
{
    double position = n->measure * scale, velocity = n->velocity_start * scale;
    *a = (struct sac_axis){.x = x, .xx = position * position, .vv = velocity * velocity};
}

/* The integral of the noise over dt in closed form: what makes two half steps equal one. */
static void axis_predict(struct sac_axis *a, const struct sac_axis_noise *n, double scale,
                         double dt)
{
    double position = n->position_walk * scale, velocity = n->velocity_walk * scale;
    double qx = position * position * dt, qv = velocity * velocity * dt;
    a->x += a->v * dt;
    a->xx += dt * (2 * a->xv + dt * a->vv) + qx + qv * dt * dt / 3;
    a->xv += dt * a->vv + qv * dt / 2;
    a->vv += qv;
}

static void axis_update(struct sac_axis *a, double x, double noise)
{
    double sum = a->xx + noise * noise;
    if (sum <= 0)
        return;
    double gain_x = a->xx / sum, gain_v = a->xv / sum, off = x - a->x;
    a->x += gain_x * off;
    a->v += gain_v * off;
    a->vv -= gain_v * a->xv;
    a->xv -= gain_x * a->xv;
    a->xx -= gain_x * a->xx;
}

/* ---- the box ---- */

static const struct sac_axis_noise *noise_of(const struct sac_motion *m, int axis)
{
    return axis == SAC_AXIS_X || axis == SAC_AXIS_Y ? &m->place : &m->size;
}

struct measured {
    double x[SAC_AXES];
};

static struct measured measure(const struct sac_box *b)
{
    double w = (double)b->x1 - b->x0, h = (double)b->y1 - b->y0;
    return (struct measured){{b->x0 + w / 2, b->y0 + h / 2, w, h}};
}

/* Heights to pixels. The height is at least one pixel, even for a box whose prediction has shrunk
 * to nothing. */
static double scale_of(const struct sac_kalman *f)
{
    return SAC_MAX(f->axis[SAC_AXIS_HEIGHT].x, 1);
}

void sac_kalman_start(struct sac_kalman *f, const struct sac_motion *m, const struct sac_box *box)
{
    struct measured z = measure(box);
    for (int i = 0; i < SAC_AXES; i++)
        axis_start(&f->axis[i], z.x[i], noise_of(m, i), SAC_MAX(z.x[SAC_AXIS_HEIGHT], 1));
}

void sac_kalman_predict(struct sac_kalman *f, const struct sac_motion *m, double dt_s)
{
    double scale = scale_of(f);
    for (int i = 0; i < SAC_AXES; i++)
        axis_predict(&f->axis[i], noise_of(m, i), scale, dt_s);
}

void sac_kalman_update(struct sac_kalman *f, const struct sac_motion *m, const struct sac_box *box,
                       double trust)
{
    struct measured z = measure(box);
    double          scale = scale_of(f) / trust;
    for (int i = 0; i < SAC_AXES; i++)
        axis_update(&f->axis[i], z.x[i], noise_of(m, i)->measure * scale);
}

static void turn(double *x, double *y, const struct sac_similarity *s)
{
    double moved = s->a * *x - s->b * *y;
    *y = s->b * *x + s->a * *y;
    *x = moved;
}

/* Both axes of the centre have the same noise, so a turn leaves their covariance as it is; only the
 * zoom changes it. */
void sac_kalman_move(struct sac_kalman *f, const struct sac_similarity *s)
{
    double zoom = sqrt(s->a * s->a + s->b * s->b), square = zoom * zoom;
    turn(&f->axis[SAC_AXIS_X].x, &f->axis[SAC_AXIS_Y].x, s);
    turn(&f->axis[SAC_AXIS_X].v, &f->axis[SAC_AXIS_Y].v, s);
    f->axis[SAC_AXIS_X].x += s->tx;
    f->axis[SAC_AXIS_Y].x += s->ty;
    for (int i = 0; i < SAC_AXES; i++) {
        struct sac_axis *a = &f->axis[i];
        a->xx *= square;
        a->xv *= square;
        a->vv *= square;
        if (i == SAC_AXIS_WIDTH || i == SAC_AXIS_HEIGHT) {
            a->x *= zoom;
            a->v *= zoom;
        }
    }
}

/* A long prediction can make a size negative; it is at least one pixel. */
struct sac_box sac_kalman_box(const struct sac_kalman *f)
{
    double w = SAC_MAX(f->axis[SAC_AXIS_WIDTH].x, 1), h = SAC_MAX(f->axis[SAC_AXIS_HEIGHT].x, 1);
    double x = f->axis[SAC_AXIS_X].x, y = f->axis[SAC_AXIS_Y].x;
    return (struct sac_box){(float)(x - w / 2), (float)(y - h / 2), (float)(x + w / 2),
                            (float)(y + h / 2)};
}
