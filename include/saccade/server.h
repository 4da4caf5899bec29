/* SPDX-License-Identifier: Apache-2.0 */
/* A model served in the process: any thread submits requests, they run in batches, and each is
 * answered.
 *
 *     sac_server  *server = NULL;
 *     sac_request *request = NULL;
 *     sac_result   res = sac_server_create(model, NULL, &server);
 *     struct sac_request_params params = sac_request_params_default();
 *     params.priority = 1;
 *     params.deadline_us = 50000;
 *     res = sac_server_submit(server, &input, &params, &request);     // returns at once
 *     struct sac_answer answer;
 *     res = sac_request_wait(request, -1, &answer);                   // the request's own result
 *     ... answer.outputs[0], answer.latency_ns, answer.batch ...
 *     sac_request_unref(&request);
 *     sac_server_destroy(&server);
 *
 * A request is one item, or a few, for the network: a tensor for each input, in the memory of the
 * model's device or of the host, or a frame, which the model's contract makes an input of. Requests
 * wait in a queue of limited length: those of higher priority go first, those of one priority in
 * the order in which they came. A batch of them begins when it is full, when its first item has
 * waited for the time-out, or as soon as there are enough for a device that has nothing to do
 * (batch_min). Two batches are under way on a device of its own: what one brings is copied there
 * while the network runs for the other.
 *
 * No request is lost: each is answered once, with its outputs or with the fault that it met. Where
 * a batch fails, its requests are tried again one by one, so that an unusable one fails alone;
 * where it has no memory, in halves, and later batches stay smaller for a while.
 *
 * Several models on one device have a server each, over the device's one pool of memory; several
 * servers of one model share its weights and take turns.
 */
#ifndef SACCADE_SERVER_H
#define SACCADE_SERVER_H

#include <saccade/frame.h>
#include <saccade/head.h>
#include <saccade/timer.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_server  sac_server;
typedef struct sac_request sac_request;

enum { SAC_SERVER_BATCH_MAX = 256, SAC_SERVER_STREAMS_MAX = 4 };

/* What becomes of a request whose deadline passes before its batch begins. */
enum sac_late {
    SAC_LATE_RUN = 0, /* it runs all the same, and its answer is late */
    SAC_LATE_REFUSE   /* it is answered with SAC_ERR_LIMIT, when the next batch is collected */
};

/* What the largest batch is chosen for, by measuring runs of each power of two, up to one that
 * takes a quarter of a second and gains nothing over smaller ones. */
enum sac_server_goal {
    SAC_GOAL_NONE = 0,  /* it is batch_max */
    SAC_GOAL_LATENCY,   /* the largest whose run takes no longer than goal_ms; a request waits for
                           two runs at most before its own, if it goes first */
    SAC_GOAL_THROUGHPUT /* the smallest with 95 % of the most items a second that any has */
};

struct sac_server_params {
    int batch_min; /* items from which on a batch begins as soon as the device has nothing to do;
                      default 1: none waits for another then; 0: a full batch */
    int batch_preferred; /* items from which on a batch waits for no more, also while another is
                            under way; 0 (default): a full batch */
    int batch_max; /* items; to SAC_SERVER_BATCH_MAX; 0 (default): the device's best. 1 of a model
                      whose inputs can't be stacked, which is logged */
    int                    timeout_us; /* an item waits no longer for others; default 2000 */
    enum sac_batch_padding padding;    /* of batches that are not full */
    /* Batches that a GPU computes at the same time, for small ones, which leave it idle in part:
     * each has memory for activations of its own, and all share the weights. To
     * SAC_SERVER_STREAMS_MAX; default 1, as on the CPU always */
    int streams;
    int batches_ahead; /* batches under way; 1 to 8; 0 (default): one more than streams on a GPU,
                          so that its copies are beside their runs; else 1 */
    int           queue_max; /* requests that wait; default 1024 */
    int           block;     /* submit waits for room; 0 (default): it returns SAC_AGAIN */
    enum sac_late late;      /* default SAC_LATE_RUN */
    /* A step of priority goes before what came this much earlier, so nothing waits for ever: of two
     * requests a step apart the lower goes first if it waited that much longer. Default 1000; 0:
     * the higher always goes first, and enough of them starve the others. */
    int                  step_ms;
    enum sac_server_goal goal;
    double               goal_ms;
    /* Outputs in host memory, copied while the next batch runs; 0 (default): in the model's
     * device's. The same where that is the host's. */
    int         host_outputs;
    int         width, height; /* of images, where the model leaves them open; 0: as it has them */
    const char *preprocess;    /* NULL, or overrides of the contract, as of a detector */
    uint64_t    reserved[8];   /* 0 */
};
SAC_API struct sac_server_params sac_server_params_default(void);

/* Serve a model, which is referenced: prepare it for the sizes of batch that it will run in (slow
 * on a GPU, if nothing is known of them yet), choose the largest, and begin.
 *
 * params   NULL: the defaults.
 * out      owned by the caller, destroyed with sac_server_destroy.
 * Errors   SAC_ERR_ARG (a bad parameter; a size that the model leaves open and width and height do
 *          not say), SAC_ERR_UNSUPPORTED (inputs or outputs that have no first dimension to stack,
 *          where batch_max is above 1), those of sac_model_run. */
SAC_API sac_result sac_server_create(sac_model *model, const struct sac_server_params *params,
                                     sac_server **out);
/* Wait until all that was submitted is answered; nothing is submitted from now on. From a callback
 * it does not wait, which is logged: what was submitted is answered all the same. */
SAC_API void sac_server_end(sac_server *server);
/* What is in a batch is answered, what waits is answered with SAC_ERR_CANCELLED; call
 * sac_server_end before it to have that done too. No other thread may use the server any more;
 * requests that are referenced stay. From a callback it does nothing, *server stays, and that is
 * logged as an error. */
SAC_API void sac_server_destroy(sac_server **server);
/* Of one item, by the number of an input: the first dim is the batch, and is 1. NULL: there is no
 * such input. Any thread; it belongs to the server. */
SAC_API const struct sac_tensor_desc *sac_server_input(const sac_server *server, int i);

/* What a request was answered with. */
struct sac_answer {
    int64_t            id; /* as submitted */
    int                priority;
    sac_result         status;
    const char        *why;     /* the fault's sentence, else "" */
    sac_tensor *const *outputs; /* [output_count], as of sac_model_run; NULL after a fault */
    int                output_count;
    int                batch; /* items in the batch that it ran in; 0: it did not run */
    int                late;  /* 1: the deadline had passed */
    /* From submit until its batch began, until the device was done with it, and in all. */
    int64_t  queue_ns, run_ns, latency_ns;
    uint64_t reserved[4]; /* 0 */
};

struct sac_request_params {
    int64_t id;          /* comes back with the answer */
    int     priority;    /* -1000..1000, higher ones first; default 0 */
    int64_t deadline_us; /* from submit on; 0 (default): none */
    /* Called with the answer, on the server's thread, which meanwhile does nothing else: be short;
     * for what sac_server_destroy cancels on the thread that calls that, perhaps at the same time.
     * The answer and what it points to are borrowed for the call (take references to outputs). It
     * may submit, and never waits for room then. NULL: nobody is called. */
    void (*done)(void *user, const struct sac_answer *answer);
    void    *user;
    uint64_t reserved[4]; /* 0 */
};
SAC_API struct sac_request_params sac_request_params_default(void);

/* Submit a request of one or more items, and return.
 *
 * in       one tensor per input, in order, referenced until the answer; all of one first dim, up to
 *          the server's largest batch, else as sac_server_input has it. On the model's device, or
 *          in host memory (on any device of the CPU), from where the server copies it (tensor-user
 *          in the ledger). Complete, and not written to before the answer.
 * params   NULL: the defaults.
 * out      a reference for sac_request_wait, released by sac_request_unref; NULL: only the callback
 *          is told.
 * Threads  any.
 * Errors   SAC_AGAIN when the queue is full (no sentence), unless params.block waits; SAC_ERR_ARG
 *          for tensors that do not fit; SAC_ERR_CANCELLED after sac_server_end; SAC_ERR_MEMORY. The
 *          request was not taken then: no answer comes. */
SAC_API sac_result sac_server_submit(sac_server *server, sac_tensor *const *in,
                                     const struct sac_request_params *params, sac_request **out);
/* The same with a frame on the model's device, referenced until the answer: it becomes one item by
 * the model's contract (sac_model_contract_read; where the file says nothing, by what the family of
 * its head was trained with).
 * Errors   SAC_ERR_UNSUPPORTED, too, for a model that takes no pictures or takes more than one
 *          input. */
SAC_API sac_result sac_server_submit_frame(sac_server *server, sac_frame *frame,
                                           const struct sac_request_params *params,
                                           sac_request                    **out);

/* Wait for the answer: the request's own result, with its sentence, and *answer, which may be NULL;
 * what it points to belongs to the request. timeout_ns < 0 waits for ever; SAC_AGAIN: it has not
 * come yet. Any thread, several at once, again and again. */
SAC_API sac_result   sac_request_wait(sac_request *request, int64_t timeout_ns,
                                      struct sac_answer *answer);
SAC_API sac_request *sac_request_ref(sac_request *request);
/* The request runs all the same. */
SAC_API void sac_request_unref(sac_request **request);

/* What a server did since it was created. */
struct sac_server_stats {
    int64_t submitted, answered; /* requests taken; those of them that have their answer */
    int64_t failed;              /* answered with a fault, those refused and cancelled too */
    int64_t refused;             /* their deadline passed before they ran (SAC_LATE_REFUSE) */
    int64_t cancelled;           /* by sac_server_destroy */
    int64_t late;                /* deadlines missed, those refused too */
    int64_t full;                /* SAC_AGAIN was returned */
    int64_t batches, items; /* that ran; parts of one that failed as a whole count as batches */
    int64_t padded;         /* items that runs were filled up with */
    int     queue_length, queue_length_max; /* requests that wait */
    int     batch_max, batch_preferred;     /* as chosen */
    /* Of requests that ran: from submit to answer, and in the queue. */
    struct sac_timer_summary latency, queue;
    int64_t                  batch[SAC_SERVER_BATCH_MAX + 1]; /* batches of so many items */
    uint64_t                 reserved[8];                     /* 0 */
};
/* Any thread. */
SAC_API void sac_server_get_stats(sac_server *server, struct sac_server_stats *out);

#ifdef __cplusplus
}
#endif
#endif
