/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies of the CUDA kernels, compiled for the host, on all parity cases: indexing, layouts and
 * arithmetic are proven where no GPU is. */
#include "tests/parity/bodies.h"
#include "tests/parity/trial.h"
#include "tests/test.h"

int main(int argc, char **argv)
{
    struct trial t = {.provider = &bodies, .only = argc > 1 ? argv[1] : NULL};
    if (sac_device_open(test_context(), "cpu", NULL, &t.dev) != SAC_OK)
        return 1;
    trial_all(&t);
    sac_device_unref(&t.dev);
    return t.failed ? 1 : 0;
}
