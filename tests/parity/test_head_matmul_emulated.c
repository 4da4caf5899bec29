/* SPDX-License-Identifier: Apache-2.0 */
/* Products of heads' matrices by tiles with the GPU's threads emulated, on all of HeadMatMul's
 * parity cases: in tiles of each kind, one launch after the other, whatever suits the case; and
 * some of them in smaller pieces than could be. */
#include <stdio.h>

#include "tests/parity/bodies.h"
#include "tests/parity/emulated/head_matmul.h"
#include "tests/parity/trial.h"
#include "tests/test.h"

#include "base/base.h"

enum { TILES = 10 /* deep, rows, columns; of four warps together, columns */, NARROW = 3 };
static const int pieces[] = {1, 4, 8};
static int       launches, plain, met[TILES];
static int       met_piece[2][2][SAC_COUNT(pieces)]; /* of a or b, as it lies or turned */

static void meet(bool b, bool turned, int piece)
{
    for (size_t i = 0; i < SAC_COUNT(pieces); i++)
        met_piece[b][turned][i] += pieces[i] == piece;
}

/* Smaller pieces than there could be. */
static int smaller(int piece)
{
    return piece == 8 ? 4 : 1;
}

static int launch(const void *params, const struct ops_ports *ports, void *stream)
{
    struct ops_head_matmul p = *(const struct ops_head_matmul *)params;
    const int              tile = launches % TILES;
    (void)stream;
    if (!p.tile_rows) {
        plain++;
        return emulated_product_plain(&p, ports);
    }
    p.deep = tile / 4 == 1;
    p.tile_rows = tile / 2 % 2 ? OPS_HEAD_TILE : OPS_HEAD_SMALL_TILE;
    p.tile_columns = tile % 2 ? OPS_HEAD_TILE : OPS_HEAD_SMALL_TILE;
    p.unit_columns = tile % 2 ? 2 * OPS_HEAD_TILE : OPS_HEAD_TILE;
    if (launches % NARROW == 1) {
        p.a_piece = smaller(p.a_piece);
        p.b_piece = p.y_piece = 1;
    } else if (launches % NARROW == 2) {
        p.b_piece = smaller(p.b_piece);
        p.y_piece = smaller(p.y_piece);
    }
    launches++;
    met[tile]++;
    meet(false, p.a_turned, p.a_piece);
    meet(true, p.b_turned, p.b_piece);
    return emulated_product_tiles(&p, ports, tile >= 8);
}

static int missed(void)
{
    int count = 0;
    for (int i = 0; i < TILES; i++)
        count += met[i] == 0;
    if (count || !plain)
        printf("FAIL no case met %d of %d tiles%s\n", count, TILES, plain ? "" : ", nor float32");
    for (int of = 0; of < 4; of++)
        for (size_t i = 0; i < SAC_COUNT(pieces); i++)
            if (!met_piece[of / 2][of % 2][i]) {
                printf("FAIL no case met %s, %s, in pieces of %d\n", of / 2 ? "b" : "a",
                       of % 2 ? "turned" : "as it lies", pieces[i]);
                count++;
            }
    return count + !plain;
}

int main(void)
{
    struct trial t = {.provider = &bodies, .only = "HeadMatMul", .small = true};
    if (sac_device_open(test_context(), "cpu", NULL, &t.dev) != SAC_OK)
        return 1;
    bodies_instead = launch;
    trial_all(&t);
    sac_device_unref(&t.dev);
    return t.failed || missed() ? 1 : 0;
}
