/* SPDX-License-Identifier: Apache-2.0 */
/* A trace in Chrome's format, which Perfetto opens: what each thread did and when, with one event
 * per stage and frame.
 *
 * Events are put into a ring of fixed size and written by a thread of the trace's own, so recording
 * never waits for the disk. When the ring is full, events are dropped and counted. The file is a
 * JSON array, readable even without its end; it gets its final name when it is complete. */
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
    int         batch; /* number of frames that shared the work */
};

/* Errors   SAC_ERR_IO, SAC_ERR_MEMORY. */
sac_result sac_trace_create(sac_context *ctx, const char *path, struct sac_trace **out);
/* Add a track for something other than a thread, such as a device's stream. name is copied. Returns
 * -1 when there are too many tracks. Any thread. */
int sac_trace_track(struct sac_trace *trace, const char *name);
/* The track of the calling thread, named after it; created on first use. */
int sac_trace_thread(struct sac_trace *trace);
/* Any thread; a NULL trace and track -1 are ignored. */
void sac_trace_add(struct sac_trace *trace, const struct sac_trace_event *event);
/* Write the remaining events and give the file its final name. Later events are ignored.
 * Errors   SAC_ERR_IO. */
sac_result sac_trace_finish(struct sac_trace *trace);
/* Deletes the file if it was not finished. */
void sac_trace_destroy(struct sac_trace **trace);

#endif
