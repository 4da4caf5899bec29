/* SPDX-License-Identifier: Apache-2.0 */
/* COCO's JSON with its masks: data sets and results. What is accepted can be drawn, and RLE that is
 * written again is the same mask. */
#include <stdlib.h>
#include <string.h>

#include "mask/mask.h"
#include "mask/rle.h"

enum { PIXELS_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(struct sac_mask_set *set)
{
    static uint8_t mask[PIXELS_MAX], ignored[PIXELS_MAX], again[PIXELS_MAX];
    int            width = set->picture.width, height = set->picture.height;
    size_t         count = (size_t)width * (size_t)height;
    struct sac_rle rle = {0};
    if (count > PIXELS_MAX)
        return;
    memset(ignored, 0, count);
    if (sac_mask_set_draw(set, SAC_MASK_EVERY, mask, ignored) != SAC_OK)
        return;
    if (sac_rle_encode(set->ctx, mask, (size_t)width, width, height, 1, &rle) != SAC_OK ||
        sac_rle_check(set->ctx, &rle) != SAC_OK)
        abort();
    memset(again, 0, count);
    sac_rle_draw(&rle, 255, again, (size_t)width);
    if (memcmp(mask, again, count) != 0)
        abort();
    sac_rle_finish(&rle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static sac_context *ctx;
    if (!ctx && sac_context_create(NULL, &ctx) != SAC_OK)
        abort();
    struct sac_mask_set set = {.ctx = ctx, .path = "fuzz.json", .score_min = 0.5};
    if (sac_mask_coco_take(&set, (const char *)data, size) == SAC_OK)
        for (size_t i = 0; i < set.count && i < 16; i++)
            if (sac_mask_set_load(&set, i, 64, 48) == SAC_OK)
                draw(&set);
    sac_mask_set_close(&set);
    return 0;
}
