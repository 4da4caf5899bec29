/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention with the GPU's threads emulated, on all of its parity cases: by tiles larger than
 * a case needs in one launch, in pieces smaller than it allows in another, and with its tokens
 * shared by one block to eight, whatever suits the case. */
#include <stdio.h>

#include "tests/parity/bodies.h"
#include "tests/parity/emulated/linear_attention.h"
#include "tests/parity/trial.h"
#include "tests/test.h"

#include "base/base.h"

static const int tiles[] = {16, 32, 48, 64, SAC_LINEAR_SIZE_MAX}, pieces[] = {8, 4, 2};
static int       launches, plain, met[SAC_COUNT(tiles)][SAC_LINEAR_COUNT],
    met_shift[OPS_LINEAR_SHIFT_MAX + 1], met_piece[3];

/* The index of its tile, or of the next: one tile in two is larger than it has to be. */
static size_t tile_index(int tile)
{
    size_t i = 0;
    while (tiles[i] < tile)
        i++;
    return launches % 2 && i + 1 < SAC_COUNT(tiles) ? i + 1 : i;
}

static int launch(const void *params, const struct ops_ports *ports, void *stream)
{
    struct ops_linear_attention p = *(const struct ops_linear_attention *)params;
    (void)stream;
    if (!p.tile) {
        plain++;
        return emulated_linear_plain(&p, ports);
    }
    const size_t tile = tile_index(p.tile);
    p.tile = tiles[tile];
    p.shift = launches % (OPS_LINEAR_SHIFT_MAX + 1);
    p.piece = SAC_MIN(p.piece, pieces[launches / 2 % 3]);
    launches++;
    met[tile][p.kind]++;
    met_shift[p.shift]++;
    met_piece[p.piece / 4]++; /* of 2, 4 and 8 */
    return emulated_linear_tiles(&p, ports);
}

static int missed(void)
{
    int count = 0;
    for (size_t i = 0; i < SAC_COUNT(tiles); i++)
        for (int kind = 0; kind < SAC_LINEAR_COUNT; kind++)
            if (!met[i][kind]) {
                printf("FAIL no case met tiles of %d with kind %d\n", tiles[i], kind);
                count++;
            }
    for (int i = 0; i <= OPS_LINEAR_SHIFT_MAX; i++)
        count += !met_shift[i];
    count += !met_piece[0] + !met_piece[1] + !met_piece[2] + !plain;
    if (count)
        printf("FAIL %d of the ways have no case\n", count);
    return count;
}

int main(void)
{
    struct trial t = {.provider = &bodies, .only = "LinearAttention", .small = true};
    if (sac_device_open(test_context(), "cpu", NULL, &t.dev) != SAC_OK)
        return 1;
    bodies_instead = launch;
    trial_all(&t);
    sac_device_unref(&t.dev);
    return t.failed || missed() ? 1 : 0;
}
