/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t P1 = 0x9E3779B185EBCA87u, P2 = 0xC2B2AE3D27D4EB4Fu, P3 = 0x165667B19E3779F9u,
                      P4 = 0x85EBCA77C2B2AE63u;
static const uint64_t seeds[2] = {0, 0x27D4EB2F165667C5u};

static uint64_t turned(uint64_t v, int by)
{
    return v << by | v >> (64 - by);
}

static uint64_t rounded(uint64_t lane, uint64_t word)
{
    return turned(lane + word * P2, 31) * P1;
}

void sac_sum_init(struct sac_sum *sum)
{
    *sum = (struct sac_sum){.bytes = 0};
    for (int s = 0; s < 2; s++) {
        sum->lane[s][0] = seeds[s] + P1 + P2;
        sum->lane[s][1] = seeds[s] + P2;
        sum->lane[s][2] = seeds[s];
        sum->lane[s][3] = seeds[s] - P1;
    }
}

static void add_block(struct sac_sum *sum, const uint8_t *block)
{
    uint64_t word[4];
    memcpy(word, block, sizeof word);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < 4; i++)
            sum->lane[s][i] = rounded(sum->lane[s][i], word[i]);
}

void sac_sum_add(struct sac_sum *sum, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    if (size == 0)
        return; /* bytes may be NULL */
    sum->bytes += size;
    if (sum->held_bytes > 0) {
        const size_t n = SAC_MIN(size, SAC_SUM_BLOCK - sum->held_bytes);
        memcpy(sum->held + sum->held_bytes, at, n);
        sum->held_bytes += n;
        at += n;
        size -= n;
        if (sum->held_bytes < SAC_SUM_BLOCK)
            return;
        add_block(sum, sum->held);
        sum->held_bytes = 0;
    }
    for (; size >= SAC_SUM_BLOCK; at += SAC_SUM_BLOCK, size -= SAC_SUM_BLOCK)
        add_block(sum, at);
    if (size > 0)
        memcpy(sum->held, at, size);
    sum->held_bytes = size;
}

static uint64_t mixed(uint64_t h)
{
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}

/* The last block is filled up with zeros; the length tells such from zeros that were there. */
void sac_sum_end(struct sac_sum *sum, uint64_t out[2])
{
    if (sum->held_bytes > 0) {
        memset(sum->held + sum->held_bytes, 0, SAC_SUM_BLOCK - sum->held_bytes);
        add_block(sum, sum->held);
    }
    for (int s = 0; s < 2; s++) {
        const uint64_t *lane = sum->lane[s];
        uint64_t        h =
            turned(lane[0], 1) + turned(lane[1], 7) + turned(lane[2], 12) + turned(lane[3], 18);
        for (int i = 0; i < 4; i++)
            h = (h ^ rounded(0, lane[i])) * P1 + P4;
        out[s] = mixed(h + sum->bytes);
    }
}

void sac_sum_text(const uint64_t sum[2], char out[SAC_SUM_TEXT])
{
    snprintf(out, SAC_SUM_TEXT, "%016" PRIx64 "%016" PRIx64, sum[0], sum[1]);
}

static sac_result add_file(sac_context *ctx, const char *path, int fd, int (*give_up)(void *user),
                           void *user, struct sac_sum *sum)
{
    enum { PIECE = 1 << 20 };
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return SAC_FAIL(ctx, SAC_ERR_FORMAT, "'%s' is not a regular file", path);
    uint8_t *piece = sac_alloc(PIECE);
    if (!piece)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "'%s': no memory to read it", path);
    ssize_t n;
    bool    unwanted = false;
    while (!(unwanted = give_up && give_up(user)) &&
           ((n = read(fd, piece, PIECE)) > 0 || (n < 0 && errno == EINTR)))
        sac_sum_add(sum, piece, n > 0 ? (size_t)n : 0);
    const int why = errno;
    sac_free(piece);
    if (unwanted)
        return SAC_FAIL(ctx, SAC_ERR_CANCELLED, "'%s': reading was cancelled", path);
    return n == 0 ? SAC_OK : SAC_FAIL(ctx, SAC_ERR_IO, "cannot read '%s': %s", path, strerror(why));
}

sac_result sac_sum_file(sac_context *ctx, const char *path, int (*give_up)(void *user), void *user,
                        uint64_t out[2], uint64_t *bytes)
{
    struct sac_sum sum;
    /* O_NONBLOCK: opening a named pipe would wait for a writer. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return SAC_FAIL(ctx, SAC_ERR_IO, "cannot open '%s': %s", path, strerror(errno));
    sac_sum_init(&sum);
    sac_result res = add_file(ctx, path, fd, give_up, user, &sum);
    close(fd);
    if (res != SAC_OK)
        return res;
    *bytes = sum.bytes;
    sac_sum_end(&sum, out);
    return SAC_OK;
}
