/* SPDX-License-Identifier: Apache-2.0 */
/* An NVIDIA GPU as a device. Each entry works in the GPU's primary context (context.c), queues on a
 * stream and returns; src/plugin/cuda.c puts the entries into a table with those of vision/cuda and
 * engine/cuda, whose host code shares what is here. Host code only: kernels see
 * vision/cuda/launch.h. */
#ifndef SAC_DEVICE_CUDA_COMMON_H
#define SAC_DEVICE_CUDA_COMMON_H

#include <stdatomic.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "device/cuda/serves.h"
#include "device/device.h"

struct sac_device_stream {
    struct sac_device  *dev;
    cudaStream_t        handle;
    bool                borrowed; /* the caller's */
    cudaEvent_t         reached;  /* recorded when another stream is to wait for this one */
    struct cuda_parts  *parts;    /* of the capture under way; NULL: it has none */
    struct cuda_gather *gather;   /* what is to be one launch; NULL: nothing was so far */
    pthread_mutex_t     lock;     /* guards the rest */
    struct sac_buffer  *scratch;  /* between the kernels of one operation; NULL: none yet */
};

struct sac_event {
    struct sac_device *dev;
    cudaEvent_t        handle;
    bool               timed;
    /* It is recorded when what is gathered there is launched; NULL: it is not waiting for that. */
    _Atomic(struct sac_device_stream *) gathered;
};

/* Work captured, or gathered, and launched as one. */
struct sac_device_graph {
    uint64_t                 id; /* no two have the same */
    cudaGraph_t              graph;
    cudaGraphExec_t          exec;
    struct cuda_pieces      *pieces; /* that it was gathered from */
    struct sac_device_graph *next;   /* for other pieces */
};

/* A list for a kernel that is too long for its parameters: written in pinned memory, copied behind
 * what is queued, read by the kernel on the device. The two sides and the event that tells when
 * they are free. */
struct cuda_command_block {
    void              *host, *device; /* in the buffers behind them */
    struct sac_buffer *host_buffer, *device_buffer;
    size_t             bytes;
    cudaEvent_t        read;
    bool               taken, queued;
};
enum { CUDA_COMMAND_BLOCKS = 8, CUDA_COMMAND_BYTES_MAX = 8 << 20 };

struct cuda_state {
    CUcontext                 context; /* the GPU's primary one, which libavcodec shares */
    struct sac_device_stream  stream;  /* the device's own */
    pthread_mutex_t           lock;    /* guards commands and the making of video */
    pthread_cond_t            given;   /* a thread has returned a block of commands */
    struct sac_device_stream *video;   /* the decoders'; NULL: none has come yet */
    struct cuda_command_block commands[CUDA_COMMAND_BLOCKS];
    bool                      commands_open;  /* they have their first memory */
    bool                      launches_early; /* card, driver and code do */
};

/* context.c */
enum { CUDA_GPUS_MAX = 64 };
/* The primary context of a GPU, which the process keeps. */
cudaError_t cuda_context_retain(int index, CUcontext *out);
/* Every entry works between these two, so that a thread's own context stays what it was. */
sac_result cuda_enter(struct sac_device *dev);
void       cuda_leave(void);

/* early.c: what cuda_enter and cuda_leave tell it. */
void cuda_early_enter(bool early);
void cuda_early_leave(void);

/* SAC_OK, or the sentence "cuda:0: DOING: what CUDA says". */
sac_result cuda_check(struct sac_device *dev, cudaError_t res, const char *doing);

/* One call between them, as a result; entering fails with SAC_ERR_DEVICE alone. */
static inline sac_result cuda_left(sac_result res)
{
    cuda_leave();
    return res;
}
#define CUDA_CALL(dev, call, doing) \
    (cuda_enter(dev) == SAC_OK ? cuda_left(cuda_check(dev, call, doing)) : SAC_ERR_DEVICE)

static inline struct sac_device_stream *cuda_own_stream(struct sac_device        *dev,
                                                        struct sac_device_stream *stream)
{
    struct cuda_state *state = dev->state;
    return stream ? stream : &state->stream;
}

/* gather.c. What this thread has gathered on the stream, if so, is queued one by one, and so is
 * what follows. */
void cuda_gather_part(struct sac_device_stream *stream);
void cuda_gather_part_all(void);
/* false: nothing is gathered on the stream; queue it there. */
bool cuda_gather_graph(const struct sac_device_stream *stream, struct sac_device_graph *graph);
bool cuda_gather_event(const struct sac_device_stream *stream, struct sac_event *event);
/* Whether this thread gathers on the stream and the event is recorded behind that. */
bool cuda_gather_has(const struct sac_device_stream *stream, const struct sac_event *event);
/* Before it is waited for: it has been recorded then. release: if this thread has gathered it. */
void       cuda_gather_settle(struct sac_event *event);
void       cuda_gather_release(struct sac_event *event);
void       cuda_gather_finish(struct sac_device_stream *stream);
void       cuda_pieces_free(struct cuda_pieces **pieces);
void       cuda_gather_begin(struct sac_device *dev, struct sac_device_stream *stream);
sac_result cuda_gather_end(struct sac_device *dev, struct sac_device_stream *stream,
                           struct sac_device_graph **graph, bool *one);

/* For what CUDA_LAUNCH queues alone. */
static inline cudaStream_t cuda_gathering_of(struct sac_device        *dev,
                                             struct sac_device_stream *stream)
{
    return cuda_own_stream(dev, stream)->handle;
}

/* For all else. */
static inline cudaStream_t cuda_stream_of(struct sac_device *dev, struct sac_device_stream *stream)
{
    struct sac_device_stream *own = cuda_own_stream(dev, stream);
    cuda_gather_part(own);
    return own->handle;
}

/* Scratch of a stream, for the operation that is queued next. No other thread queues on the stream
 * until cuda_scratch_return, which is called when the work is queued. Between cuda_enter and
 * cuda_leave.
 * Errors   SAC_ERR_LIMIT, SAC_ERR_MEMORY; then don't return it. */
sac_result cuda_scratch_take(struct sac_device *dev, struct sac_device_stream *stream, size_t bytes,
                             void **out);
void       cuda_scratch_return(struct sac_device *dev, struct sac_device_stream *stream);

/* Memory for lists, so that the first one finds it. Between cuda_enter and cuda_leave.
 * Errors   SAC_ERR_LIMIT, SAC_ERR_MEMORY: there is none even for one list. */
sac_result cuda_commands_reserve(struct sac_device *dev);
/* Room for a list of `bytes` to write at (*out)->host, then queue: the copy, the kernel, and `done`
 * behind both. With all blocks under way, or with other threads, it waits for one. Between
 * cuda_enter and cuda_leave.
 * Errors   SAC_ERR_LIMIT for more than CUDA_COMMAND_BYTES_MAX; SAC_ERR_MEMORY. */
sac_result cuda_commands_take(struct sac_device *dev, size_t bytes,
                              struct cuda_command_block **out);
sac_result cuda_commands_send(struct sac_device *dev, struct sac_device_stream *stream,
                              struct cuda_command_block *block, size_t bytes, const char *what);
void       cuda_commands_done(struct sac_device *dev, struct sac_device_stream *stream,
                              struct cuda_command_block *block);
void       cuda_commands_finish(struct cuda_state *state);

/* device.c */
extern const struct cuda_build cuda_build;
sac_result                     cuda_open(struct sac_device *dev, int index);
void                           cuda_close(struct sac_device *dev);
void                           cuda_rest(struct sac_device *dev);

/* stream.c. patient: blocks of kernels on other streams are placed first. */
cudaError_t cuda_stream_init(struct sac_device_stream *stream, struct sac_device *dev,
                             bool patient);
void        cuda_stream_finish(struct sac_device_stream *stream);
sac_result  cuda_stream_create(struct sac_device *dev, struct sac_device_stream **out);
sac_result  cuda_stream_create_patient(struct sac_device *dev, struct sac_device_stream **out);
/* The caller's stream; NULL: the legacy default one. */
sac_result cuda_stream_borrow(struct sac_device *dev, void *handle, struct sac_device_stream **out);
void       cuda_stream_destroy(struct sac_device_stream **stream);
sac_result cuda_stream_wait(struct sac_device_stream *stream);
sac_result cuda_stream_after(struct sac_device *dev, struct sac_device_stream *stream,
                             struct sac_device_stream *other);
/* Until all work of a stream is done; the thread sleeps. */
cudaError_t cuda_wait(struct sac_device_stream *stream);

/* memory.c */
sac_result cuda_memory_alloc(struct sac_device *dev, size_t bytes, void **out);
void       cuda_memory_free(struct sac_device *dev, void *p);
sac_result cuda_memory_info(struct sac_device *dev, uint64_t *free_bytes, uint64_t *total_bytes);
sac_result cuda_host_alloc(struct sac_device *dev, size_t bytes, void **out);
void       cuda_host_free(struct sac_device *dev, void *p);
sac_result cuda_copy(struct sac_device *dev, struct sac_device_stream *stream, void *dst,
                     const void *src, size_t bytes, enum sac_copy_kind kind);
sac_result cuda_clear(struct sac_device *dev, struct sac_device_stream *stream, void *at,
                      size_t bytes);
sac_result cuda_copy_rows(struct sac_device *dev, struct sac_device_stream *stream,
                          const struct sac_copy_rows *r, enum sac_copy_kind kind);

/* event.c */
sac_result cuda_event_create(struct sac_device *dev, bool timed, struct sac_event **out);
void       cuda_event_destroy(struct sac_event **event);
sac_result cuda_event_record(struct sac_event *event, struct sac_device_stream *stream);
sac_result cuda_event_wait(struct sac_event *event);
sac_result cuda_stream_wait_event(struct sac_device *dev, struct sac_device_stream *stream,
                                  struct sac_event *event);
sac_result cuda_stream_wait_handle(struct sac_device *dev, struct sac_device_stream *stream,
                                   void *event);
sac_result cuda_event_elapsed(struct sac_event *begin, struct sac_event *end, int64_t *ns);
bool       cuda_event_reached(struct sac_event *event);

/* video.c */
sac_result cuda_video_context(struct sac_device *dev, void *hwctx,
                              struct sac_device_stream **stream);

/* graph.c */
sac_result cuda_capture_begin(struct sac_device *dev, struct sac_device_stream *stream);
sac_result cuda_capture_part(struct sac_device *dev, struct sac_device_stream *stream,
                             const int *after, int count);
sac_result cuda_capture_end(struct sac_device *dev, struct sac_device_stream *stream,
                            struct sac_device_graph **out);
sac_result cuda_graph_launch(struct sac_device *dev, struct sac_device_stream *stream,
                             struct sac_device_graph *graph);
void       cuda_graph_destroy(struct sac_device *dev, struct sac_device_graph **graph); /* a list */
struct sac_device_graph *cuda_graph_new(void);

#endif
