/* SPDX-License-Identifier: Apache-2.0 */
/* Masks in files, and their scores. Who does what:
 *
 *   set       one side of a comparison: a list of pictures and how to read each; folder.c (with
 *             picture.c), coco.c (with rle.c, polygon.c) and video.c (with frames.c) know one kind
 *             of file each, open.c lists them
 *   pair      which picture of one set belongs to which of the other
 *   scores    of two masks: overlap and sums; contour.c, alpha.c
 *   flicker   motion.c follows the video, flicker.c moves the mattes along
 *   evaluate  goes over the pairs and makes the report
 */
#ifndef SAC_MASK_MASK_H
#define SAC_MASK_MASK_H

#include <saccade/eval.h>

#include "base/base.h"

enum { SAC_MASK_NUMBERS = 256 }; /* that a map can have */
enum { SAC_MASK_IGNORED = 255 }; /* of numbers */
/* Pixels of one mask; a file of some bytes can claim any number. */
enum { SAC_MASK_PIXELS_MAX = 1 << 28 };

/* A picture of a set. */
struct sac_mask_entry {
    const char *name;     /* path in the set, without ending; NULL: it has none */
    const char *base;     /* the last part of name */
    const char *sequence; /* the part before; "" */
    int64_t     number;   /* -1: it has none */
    size_t      at;       /* the set's own */
};

/* The picture that was loaded last. */
struct sac_mask_picture {
    int      width, height;
    uint8_t *pixels; /* [height, width] alpha or numbers; of COCO unused */
    size_t   capacity;
    bool     palette;     /* of the file */
    bool     transparent; /* pixels are the alpha of a colour picture */
    bool     bits;        /* of the file: one a pixel; pixels are 0 and 255 */
    bool     wide;        /* of the file: more than 8 bits a number */
};

struct sac_mask_set {
    const struct sac_mask_set_ops *ops;
    sac_context                   *ctx;
    const char                    *path;   /* borrowed */
    enum sac_mask_values           values; /* AUTO until the first picture is loaded */
    double                         score_min;
    struct sac_mask_entry         *entries; /* [count] */
    size_t                         count, capacity;
    struct sac_arena               arena;
    struct sac_mask_picture        picture;
    size_t                         loaded;                 /* the entry of picture */
    bool                           nothing;                /* picture is an empty mask */
    bool                           seen[SAC_MASK_NUMBERS]; /* of all pictures so far */
    bool                           results; /* pictures without an entry are empty masks */
    void                          *state;   /* of ops */
};

struct sac_mask_set_ops {
    bool (*claims)(const char *path);
    sac_result (*open)(struct sac_mask_set *set); /* fill entries */
    /* Fill picture: at least its size, which is the one given where the file has none (0: no size
     * is known). */
    sac_result (*load)(struct sac_mask_set *set, size_t entry, int width, int height);
    void (*close)(struct sac_mask_set *set); /* half-built too */
    /* COCO: its classes; NULL: they are numbers of the pixels. */
    bool (*has)(const struct sac_mask_set *set, int64_t class_id); /* the loaded picture */
    sac_result (*draw)(struct sac_mask_set *set, int64_t class_id, uint8_t *mask, uint8_t *ignored);
    size_t (*classes)(const struct sac_mask_set *set, const int64_t **ids);
    const char *(*class_name)(const struct sac_mask_set *set, int64_t class_id); /* NULL: none */
    int64_t (*class_of_name)(const struct sac_mask_set *set, const char *name);  /* -1: none */
};
extern const struct sac_mask_set_ops sac_mask_folder, sac_mask_coco, sac_mask_video;

/* Set ctx, path, values and score_min first. */
sac_result sac_mask_set_open(struct sac_mask_set *set);
void       sac_mask_set_close(struct sac_mask_set *set); /* half-built too */
/* entry == set->count: an empty mask of this size. */
sac_result sac_mask_set_load(struct sac_mask_set *set, size_t entry, int width, int height);
/* Can its classes be told apart? Known once a picture is loaded. */
bool sac_mask_set_has_classes(const struct sac_mask_set *set);
/* Is the class somewhere in the picture? SAC_MASK_EVERY: any. */
enum { SAC_MASK_EVERY = -1 };
bool sac_mask_set_has(const struct sac_mask_set *set, int64_t class_id);
/* The loaded picture's matte of a class, or of all of SAC_MASK_EVERY: 0..255; ignored becomes 1
 * where the pixel is not scored. Both [height, width] of the picture. */
sac_result sac_mask_set_draw(struct sac_mask_set *set, int64_t class_id, uint8_t *mask,
                             uint8_t *ignored);
/* coco.c, instead of sac_mask_set_open: the text of a file, which is copied. */
sac_result sac_mask_coco_take(struct sac_mask_set *set, const char *text, size_t size);
/* For the openers: path is copied without its ending, NULL: no name; number -1: of the name's
 * digits. */
sac_result sac_mask_set_add(struct sac_mask_set *set, const char *path, int64_t number, size_t at);
/* Room for a picture. */
sac_result sac_mask_picture_size(struct sac_mask_set *set, const char *file, double width,
                                 double height, bool pixels);
/* picture.c: a PNG or PGM file into set->picture. */
sac_result sac_mask_picture_read(struct sac_mask_set *set, const char *path);

/* pair.c: for each entry of a the entry of b; SAC_MASK_NONE: none. */
#define SAC_MASK_NONE SIZE_MAX
sac_result sac_mask_pair(const struct sac_mask_set *a, const struct sac_mask_set *b,
                         size_t *of_a); /* [a->count] */

/* ---- scores of two masks [height, width], 0..255, whose ignored pixels are 0 in both ---- */

struct sac_mask_two {
    const uint8_t *gt, *mask;
    int            width, height;
    int64_t        ignored; /* pixels */
};
/* contour.c. tolerance: share of the diagonal. Fills boundary_...
 * Errors   SAC_ERR_MEMORY. */
sac_result sac_mask_contours(sac_context *ctx, const struct sac_mask_two *two, double tolerance,
                             struct sac_mask_scores *out);
/* alpha.c. Fills sad, mse, gradient. */
sac_result sac_mask_alpha_errors(sac_context *ctx, const struct sac_mask_two *two,
                                 struct sac_mask_scores *out);
/* scores.c: are the numbers in their ranges? SAC_ERR_ARG. */
sac_result sac_mask_params_check(sac_context *ctx, const struct sac_mask_eval_params *p);
/* scores.c: all of one picture. */
sac_result sac_mask_score_two(sac_context *ctx, const struct sac_mask_two *two, bool alpha,
                              double tolerance, struct sac_mask_scores *out);
void       sac_mask_scores_clear(struct sac_mask_scores *scores, const char *name);
/* Combine sum with part; its name stays. */
void sac_mask_scores_add(struct sac_mask_scores *sum, const struct sac_mask_scores *part);

/* ---- flicker.c ---- */

/* What is scored of a set: some of its classes, or, with none, every. */
struct sac_mask_wanted {
    const int64_t *ids; /* [count] */
    size_t         count;
};
/* The loaded picture's matte of all of them, as sac_mask_set_draw. */
sac_result sac_mask_wanted_draw(struct sac_mask_set *set, const struct sac_mask_wanted *wanted,
                                uint8_t *mask, uint8_t *ignored);

/* Adds to the flicker of all, and of the sequence of each name. masks has been opened; what it has
 * loaded changes. video: see struct sac_mask_eval_params. */
sac_result sac_mask_flicker(struct sac_mask_set *masks, const struct sac_mask_wanted *wanted,
                            const char *video, struct sac_mask_scores *all,
                            struct sac_mask_scores *sequences, size_t sequence_count,
                            int64_t *no_frame);

/* ---- motion.c ---- */

enum { SAC_MOTION_BLOCK = 8 };
struct sac_motion_vector {
    int16_t x, y;  /* to where the block was in the frame before, whole pixels */
    bool    found; /* the picture there is the same */
};
/* Where each block of 8 x 8 pixels was: luma is compared, coarse to fine, up to 46 pixels away.
 * before, now: [height, width]. out: [blocks of the height, of the width], rounded up. */
sac_result sac_motion_find(sac_context *ctx, const uint8_t *before, const uint8_t *now, int width,
                           int height, struct sac_motion_vector *out);

#endif
