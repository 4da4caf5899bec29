/* SPDX-License-Identifier: Apache-2.0 */
/* FusedRecurrent on the tensor cores with the GPU's threads emulated, on all of its parity cases;
 * those that have no tiles run as the host's bodies do. */
#include <stdio.h>

#include "tests/parity/bodies.h"
#include "tests/parity/emulated/recurrent.h"
#include "tests/parity/trial.h"
#include "tests/test.h"

#include "base/base.h"

enum { KINDS = OPS_LSTM + 1 };
static const int tiles[] = {1, 2, 3, 4, 6, OPS_RECURRENT_TILES_MAX};
static int       met[KINDS][OPS_RECURRENT_TILES_MAX + 1], plain;

static int launch(const void *params, const struct ops_ports *ports, void *stream)
{
    const struct ops_recurrent *p = params;
    if (p->tiles == 0 || p->batch == 0) {
        plain++;
        return ops_launch_recurrent(params, ports, stream);
    }
    met[p->kind][p->tiles]++;
    return emulated_recurrent_tiles(p, ports);
}

static int missed(void)
{
    int count = !plain;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < SAC_COUNT(tiles); i++)
            if (!met[kind][tiles[i]]) {
                printf("FAIL no case met kind %d with %d tiles\n", kind, tiles[i]);
                count++;
            }
    return count;
}

int main(void)
{
    struct trial t = {.provider = &bodies, .only = "FusedRecurrent", .small = true};
    if (sac_device_open(test_context(), "cpu", NULL, &t.dev) != SAC_OK)
        return 1;
    bodies_instead = launch;
    trial_all(&t);
    sac_device_unref(&t.dev);
    return t.failed || missed() ? 1 : 0;
}
