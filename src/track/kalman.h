/* SPDX-License-Identifier: Apache-2.0 */
/* Where a box is and how fast it changes, estimated from noisy boxes at any times.
 *
 * Centre, width and height each follow a constant velocity that drifts (white noise on
 * velocity and on position). The axes are independent, so the textbook's 8x8 matrices fall apart
 * into four 2x2 ones that are written out here. Time is real: noise grows with the seconds passed,
 * and one step of 2 dt is two steps of dt.
 * Source   R. E. Kalman, "A New Approach to Linear Filtering and Prediction Problems", 1960;
 *          Y. Bar-Shalom et al., "Estimation with Applications to Tracking and Navigation",
 *          6.2.2. */
#ifndef SAC_TRACK_KALMAN_H
#define SAC_TRACK_KALMAN_H

struct sac_box {
    float x0, y0, x1, y1;
};

/* Position in pixels, velocity in pixels per second, and their covariance. */
struct sac_axis {
    double x, v;
    double xx, xv, vv;
};

enum sac_axis_name { SAC_AXIS_X = 0, SAC_AXIS_Y, SAC_AXIS_WIDTH, SAC_AXIS_HEIGHT, SAC_AXES };

/* Standard deviations relative to the box's height, so that near and far objects are treated alike.
 * A walk "per root second" has gone s * sqrt(t) after t seconds. */
struct sac_axis_noise {
    double measure;        /* of one detection, heights */
    double position_walk;  /* heights per root second */
    double velocity_walk;  /* heights per second, per root second */
    double velocity_start; /* of a new object, heights per second */
};
struct sac_motion {
    struct sac_axis_noise place; /* both axes of the centre */
    struct sac_axis_noise size;  /* width and height */
};

struct sac_kalman {
    struct sac_axis axis[SAC_AXES];
};

/* x' = a x - b y + tx, y' = b x + a y + ty: a turn, a zoom and a shift of the picture, pixels. */
struct sac_similarity {
    double a, b, tx, ty;
};

void sac_kalman_start(struct sac_kalman *f, const struct sac_motion *m, const struct sac_box *box);
void sac_kalman_predict(struct sac_kalman *f, const struct sac_motion *m, double dt_s);
/* trust    1: the box has its usual noise; 0.5: twice that. Over 0. */
void sac_kalman_update(struct sac_kalman *f, const struct sac_motion *m, const struct sac_box *box,
                       double trust);
/* The picture moved: the same object in the pixels of the moved one. */
void           sac_kalman_move(struct sac_kalman *f, const struct sac_similarity *s);
struct sac_box sac_kalman_box(const struct sac_kalman *f);

#endif
