/* SPDX-License-Identifier: Apache-2.0 */
/* A trace in Chrome's format, which Perfetto opens: what each thread did when, one event per stage and
 * frame.
 *
 * Written as it goes: events wait in a ring of fixed size for a thread that writes them, so recording
 * never waits for the disk. When the ring is full an event is dropped and counted. The file is a JSON
 * array, to be read even without its end; it appears under its name when it is whole. */
#ifndef SAC_OBSERVE_TRACE_H
#define SAC_OBSERVE_TRACE_H

#include "base/base.h"

struct sac_trace;

struct sac_trace_event {
    const char *name; /* lives longer than the trace */
    int         track;
    int64_t     begun_ns, ended_ns; /* sac_time_ns */
    int64_t     frame, pts_us;
    int         stream_id;
    int         batch; /* frames that shared the work; 1: this one alone */
};

/* Errors   SAC_ERR_IO, SAC_ERR_MEMORY. */
sac_result sac_trace_create(sac_context *ctx, const char *path, struct sac_trace **out);
/* A row of the picture that is no thread: a stream of a device. name is copied; -1: there are too many.
 * Any thread. */
int        sac_trace_track(struct sac_trace *trace, const char *name);
/* The row of the calling thread, named after it; made at its first use. */
int        sac_trace_thread(struct sac_trace *trace);
/* Any thread; a NULL trace and track -1 are passed over. */
void       sac_trace_add(struct sac_trace *trace, const struct sac_trace_event *event);
/* Write what waits and give the file its name. What is added later is passed over.
 * Errors   SAC_ERR_IO. */
sac_result sac_trace_finish(struct sac_trace *trace);
/* Without a finish before, the file goes away. */
void       sac_trace_destroy(struct sac_trace **trace);

#endif
