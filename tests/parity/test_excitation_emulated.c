/* SPDX-License-Identifier: Apache-2.0 */
/* Excitation with the GPU's threads emulated, on all of its parity cases, shared between blocks as
 * planned and in other ways: with samples that share weights, with pixels in more parts or fewer,
 * with several turns through the rows. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/parity/bodies.h"
#include "tests/parity/emulated/excitation.h"
#include "tests/parity/trial.h"
#include "tests/test.h"

enum { WAYS = 4, EACH = 5 /* launch is emulated: that is slow */ };
static int launches, met[2][2][2]; /* by layer, eights at once, samples together */

static int launch(const void *params, const struct ops_ports *ports, void *stream)
{
    struct ops_excitation p = *(const struct ops_excitation *)params;
    struct ops_ports      own = *ports;
    const int             way = launches / EACH % WAYS;
    if (launches++ % EACH)
        return ops_launch_excitation(params, ports, stream);
    for (int i = 0; i < 2 && way > 0; i++)
        p.layer[i].together = (way + i) % 2 && p.vector[i] ? OPS_EXCITATION_TOGETHER : 1;
    if (way > 0) {
        p.splits = way;
        p.turns = 1 + way % 3;
    }
    for (int i = 0; i < 2; i++)
        met[i][p.vector[i] != 0][p.layer[i].together > 1]++;
    /* none of the numbers is there before */
    const size_t count = (size_t)(p.n * p.chunks * p.splits * p.layer[0].rows);
    float       *scratch = malloc((count + 1) * sizeof *scratch);
    assert_non_null(scratch);
    for (size_t i = 0; i < count; i++)
        scratch[i] = (float)1e9;
    own.scratch = scratch;
    const int res = emulated_excitation(&p, &own, stream);
    free(scratch);
    return res;
}

static int missed(void)
{
    int count = 0;
    for (int i = 0; i < 2; i++)
        count += !met[i][0][0] + !met[i][1][0] + !met[i][1][1];
    if (count)
        printf("FAIL %d of the ways have no case\n", count);
    return count;
}

int main(void)
{
    struct trial t = {.provider = &bodies, .only = "Excitation", .small = true};
    if (sac_device_open(test_context(), "cpu", NULL, &t.dev) != SAC_OK)
        return 1;
    bodies_instead = launch;
    trial_all(&t);
    sac_device_unref(&t.dev);
    return t.failed || missed() ? 1 : 0;
}
