/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of bytes as they come, 128 bits, at some gigabytes a second: two of XXH64's four lanes with
 * seeds of their own (Collet, xxHash specification 0.1.1). It tells contents apart and finds
 * damage; against somebody who wants two files to look alike it is no help.
 *
 *     struct sac_sum sum;
 *     sac_sum_init(&sum);
 *     sac_sum_add(&sum, bytes, size);      // in pieces of any size
 *     sac_sum_end(&sum, out);
 */
#ifndef SAC_BASE_SUM_H
#define SAC_BASE_SUM_H

#include "base/base.h"

enum { SAC_SUM_BLOCK = 32, SAC_SUM_TEXT = 33 };
struct sac_sum {
    uint64_t lane[2][4];
    uint8_t  held[SAC_SUM_BLOCK]; /* of a block that is not whole yet */
    size_t   held_bytes;
    uint64_t bytes;
};
void sac_sum_init(struct sac_sum *sum);
void sac_sum_add(struct sac_sum *sum, const void *bytes, size_t size);
void sac_sum_end(struct sac_sum *sum, uint64_t out[2]); /* once */
void sac_sum_text(const uint64_t sum[2], char out[SAC_SUM_TEXT]);
/* Of a whole file, read in pieces.
 * give_up  asked before each: non-zero ends the call. NULL: nobody is asked.
 * Errors   SAC_ERR_IO; SAC_ERR_FORMAT for what is no regular file; SAC_ERR_MEMORY;
 *          SAC_ERR_CANCELLED. */
sac_result sac_sum_file(sac_context *ctx, const char *path, int (*give_up)(void *user), void *user,
                        uint64_t out[2], uint64_t *bytes);

#endif
