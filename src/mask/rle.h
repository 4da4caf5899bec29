/* SPDX-License-Identifier: Apache-2.0 */
/* A mask as COCO writes it: lengths of runs, down the columns one after the other, beginning with
 * those outside (0 where the first pixel is inside). The text form is COCO's own: each length as a
 * difference to the one two before it, in 6-bit characters (Dollar and Lin's maskApi).
 *
 *     struct sac_rle rle = {0};                      // used again for each frame
 *     res = sac_rle_encode(ctx, pixels, pitch_bytes, width, height, 128, &rle);
 *     sac_rle_json(&rle, &json, "segmentation");
 *     sac_rle_finish(&rle);
 */
#ifndef SAC_MASK_RLE_H
#define SAC_MASK_RLE_H

#include "base/base.h"
#include "base/json.h"

enum { SAC_RLE_SIDE_MAX = 32768 }; /* pixels, as of a frame */

struct sac_rle {
    int             width, height;
    uint32_t       *runs; /* [count] */
    size_t          count, capacity;
    uint64_t        total;   /* the runs' sum; width * height when it is whole */
    uint8_t        *columns; /* some columns, while it is encoded */
    size_t          columns_bytes;
    struct sac_text text;
};
void sac_rle_finish(struct sac_rle *rle);

/* Pixels of at least this value are inside: 128 for a matte, 1 for a map of zeros and others.
 * Errors   SAC_ERR_LIMIT for a size outside 1..SAC_RLE_SIDE_MAX; SAC_ERR_MEMORY. */
sac_result sac_rle_encode(sac_context *ctx, const uint8_t *pixels, size_t pitch_bytes, int width,
                          int height, uint8_t inside_min, struct sac_rle *rle);
/* Of a mask that has nothing inside but in the part from x, y on, whose pixels these are; it lies
 * within width x height. */
struct sac_rle_part {
    const uint8_t *pixels;
    size_t         pitch_bytes;
    int            x, y, width, height;
};
sac_result sac_rle_encode_part(sac_context *ctx, const struct sac_rle_part *part, int width,
                               int height, uint8_t inside_min, struct sac_rle *rle);
/* Writes {"size":[height,width],"counts":"..."}. No memory: json->text->failed. */
void sac_rle_json(struct sac_rle *rle, struct sac_json *json, const char *key);

/* Reading: begin, then every run, or the text with all of them; then check. Bytes from outside:
 * what does not fit the size is refused, and no sum overflows. Errors   SAC_ERR_FORMAT, the
 * sentence begins "RLE"; SAC_ERR_LIMIT, SAC_ERR_MEMORY. */
sac_result sac_rle_begin(sac_context *ctx, double width, double height, struct sac_rle *rle);
sac_result sac_rle_add_run(sac_context *ctx, struct sac_rle *rle, double length);
sac_result sac_rle_add_text(sac_context *ctx, struct sac_rle *rle, const char *text, size_t length);
sac_result sac_rle_check(sac_context *ctx, const struct sac_rle *rle); /* does it cover the mask? */

/* Write value to the pixels inside; the others stay. rle is whole. */
void sac_rle_draw(const struct sac_rle *rle, uint8_t value, uint8_t *pixels, size_t pitch_bytes);
uint64_t sac_rle_area(const struct sac_rle *rle); /* pixels inside */

#endif
