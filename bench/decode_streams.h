/* SPDX-License-Identifier: Apache-2.0 */
/* bench_decode's other form: many decoders at once, their frames dropped. */
#ifndef SAC_BENCH_DECODE_STREAMS_H
#define SAC_BENCH_DECODE_STREAMS_H

/* The program's arguments from "--device" on; its exit code. */
int bench_streams(int argc, char **argv);

#endif
