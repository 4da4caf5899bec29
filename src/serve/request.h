/* SPDX-License-Identifier: Apache-2.0 */
/* A request on its way: what it brings, its place in the queue, and its answer. */
#ifndef SAC_SERVE_REQUEST_H
#define SAC_SERVE_REQUEST_H

#include <saccade/server.h>

#include "base/thread.h"
#include "device/device.h"

struct sac_request {
    sac_refcount refs;
    sac_context *ctx;
    /* Constant once submitted. */
    struct sac_request_params params;
    int                       input_count, output_count;
    int                       size;  /* items */
    sac_tensor              **in;    /* [input_count]; NULL once answered */
    sac_frame                *frame; /* instead of tensors, or NULL; NULL once answered */
    int64_t                   submitted_ns, deadline_ns; /* deadline_ns 0: none */
    /* The queue's, under its lock. */
    int64_t             key_ns;
    uint64_t            number;
    struct sac_request *next; /* in a list of those taken out */
    /* Written by the one thread that answers it. */
    int          at;    /* its first item in the batch that runs it */
    int          batch; /* items in that; 0: it did not run */
    int64_t      begun_ns, done_ns, answered_ns;
    sac_tensor **out; /* [output_count], NULL where there is none (yet) */
    sac_result   status;
    char         why[256];

    pthread_mutex_t lock; /* guards answered, behind which the answer is constant */
    pthread_cond_t  changed;
    bool            answered;
};

/* Of one input frame, or of tensors [input_count]; references to them. Its first item is counted by
 * its owner. */
sac_result sac_request_create(sac_context *ctx, const struct sac_request_params *params,
                              int input_count, sac_tensor *const *in, sac_frame *frame,
                              int output_count, sac_request **out);
/* Keep res, and this thread's sentence. */
void sac_request_fail(sac_request *request, sac_result res);
void sac_request_drop_outputs(sac_request *request);
/* Tell everybody, once; the server's reference goes. */
void sac_request_settle(sac_request *request);
/* Once answered_ns is set, by whoever settles it or has waited: */
void sac_request_describe(const sac_request *request, struct sac_answer *out);

#endif
