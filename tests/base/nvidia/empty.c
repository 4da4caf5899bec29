/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is none of NVIDIA's. */
int nothing_of_nvidia(void);
int nothing_of_nvidia(void)
{
    return 0;
}
