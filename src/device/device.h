/* SPDX-License-Identifier: Apache-2.0 */
/* The device contract: one constant struct of function pointers per device, for its memory,
 * streams, events, copies and graphs. The CPU device is the plain reference for all the others.
 *
 * Memory comes from a pool (pool.c, with live.c for who holds what) and returns there once the
 * streams that it was used on are done (uses.c). Tensors and frames are such memory with a shape
 * (tensor.c, desc.c; frame.c, planes.c). Every copy goes through the ledger (ledger.c). These check
 * arguments once, so each device may trust its input. */
#ifndef SAC_DEVICE_DEVICE_H
#define SAC_DEVICE_DEVICE_H

#include <saccade/device.h>
#include <saccade/frame.h>
#include <saccade/model.h>
#include <saccade/tensor.h>

#include "base/base.h"
#include "base/thread.h"

struct sac_device_graph;
struct sac_event; /* a point in a stream's work */
struct sac_kernel_provider;
struct sac_kernels;
struct sac_operand;
struct sac_device_stream; /* an ordered queue of work on a device; the CPU's runs at once */
struct sac_vision_ops;

enum sac_copy_kind { SAC_COPY_HOST_TO_DEVICE, SAC_COPY_DEVICE_TO_HOST, SAC_COPY_ON_DEVICE };

/* A rectangle of bytes. */
struct sac_copy_rows {
    void       *dst;
    const void *src;
    size_t      dst_pitch, src_pitch, row_bytes;
    int         rows;
};

enum sac_device_service {
    SAC_SERVICE_NONE,   /* there is no such device */
    SAC_SERVICE_PARTLY, /* there is one, and something that it needs is missing */
    SAC_SERVICE_WHOLE
};

struct sac_device_ops {
    const char *name;        /* "cpu", "cuda" */
    const char *build;       /* "CUDA 13.0, for compute 9.0"; NULL: no details */
    bool        host_memory; /* the host may use its addresses, so nothing has to be transferred */
    bool        async; /* its work goes on after the call that queued it: batches queued ahead keep
                          it busy, and it has times of its own */
    /* How networks run. */
    int batch_best;       /* best number of frames in a run of a detector; 0: one */
    int batch_step;       /* from one size of batch that has a plan to the next smaller one; 0: 2 */
    int run_cost;         /* of a run beside its images, in images: launches, idle cores */
    int detect_cells_max; /* of a detector's head; 0: any number */
    int warm_runs;        /* of a size until it is as fast as it gets; 0: its first run is */
    int tensor_align;     /* of what networks read and write, in bytes; 0: any */
    /* DLPack's number for its memory, and a bit for each number whose memory it uses as its own
     * (dlpack.h); 0: none. */
    int      dlpack_type;
    uint32_t dlpack_types;
    int pictures_lent; /* of its decoder's pictures this many may be in the stages, as the decoder
                          predicts from the others; 0: any number */
    bool               measures_kernels; /* which are then kept in plan files */
    enum sac_precision precision;        /* of networks: the default, and the lowest that it has */
    /* Whether `auto` may choose it: is everything present that a run needs? missing: what is not.
     * NULL: always. */
    enum sac_device_service (*service)(char *missing, size_t size);
    /* NULL stream, here and below: the device's own. Work on one stream runs in order; entries
     * queue it and return. Buffers go back to the pool without waiting. So work on another stream
     * than the device's own is recorded in its buffers (sac_buffer_used), and that stream waits for
     * the device's own (stream_after) before it uses a new buffer: work queued there may still use
     * its memory. */

    sac_result (*open)(struct sac_device *dev, int index);
    void (*close)(struct sac_device *dev);

    /* Raw memory; only the pool calls these. */
    sac_result (*memory_alloc)(struct sac_device *dev, size_t bytes, void **out);
    void (*memory_free)(struct sac_device *dev, void *p);
    /* What the whole device has, and has left for all programs. NULL: it is the host's. */
    sac_result (*memory_info)(struct sac_device *dev, uint64_t *free_bytes, uint64_t *total_bytes);

    /* Host memory that copies need not be staged for; only its pool calls these. NULL: that is any
     * memory. */
    sac_result (*host_alloc)(struct sac_device *dev, size_t bytes, void **out);
    void (*host_free)(struct sac_device *dev, void *p);

    sac_result (*stream_create)(struct sac_device *dev, struct sac_device_stream **out);
    /* The same for long work whose result is not needed soon: other streams have priority. */
    sac_result (*stream_create_patient)(struct sac_device *dev, struct sac_device_stream **out);
    void (*stream_destroy)(struct sac_device_stream **stream);
    sac_result (*stream_wait)(struct sac_device_stream *stream); /* until all its work is done */
    /* What is queued on the stream from now on begins after what is queued on the other by now. */
    sac_result (*stream_after)(struct sac_device *dev, struct sac_device_stream *stream,
                               struct sac_device_stream *other);

    /* Events. timed: elapsed may be asked for. One that was never recorded is behind everything. */
    sac_result (*event_create)(struct sac_device *dev, bool timed, struct sac_event **out);
    void (*event_destroy)(struct sac_event **event);
    /* Record it after the work queued on the stream so far. On a stream that is captured, it is
     * recorded after that work in each launch of the graph; to wait for it, wait for the launch. */
    sac_result (*event_record)(struct sac_event *event, struct sac_device_stream *stream);
    /* The calling thread sleeps (it does not spin) until the stream has reached it. */
    sac_result (*event_wait)(struct sac_event *event);
    /* What is queued on the stream from now on begins after it. */
    sac_result (*stream_wait_event)(struct sac_device *dev, struct sac_device_stream *stream,
                                    struct sac_event *event);
    /* Between two that have been waited for. */
    sac_result (*event_elapsed)(struct sac_event *begin, struct sac_event *end, int64_t *ns);
    /* Before memory that waits for it is anybody's: what the calling thread has gathered is queued,
     * if the event is behind that (gather_begin). NULL: nothing is gathered. */
    void (*event_settle)(struct sac_event *event);
    /* Does not wait. True after a fault, as no work is in progress any more. */
    bool (*event_reached)(struct sac_event *event);

    /* Streams and events of the program that calls us, as the device's own programming interface
     * has them: a cudaStream_t (NULL: its default stream) and a cudaEvent_t. A borrowed stream is
     * one for the entries above; stream_destroy forgets it, and leaves the handle alone. NULL,
     * both: the caller's work is done when it calls us. */
    sac_result (*stream_borrow)(struct sac_device *dev, void *handle,
                                struct sac_device_stream **out);
    sac_result (*stream_wait_handle)(struct sac_device *dev, struct sac_device_stream *stream,
                                     void *event);

    /* Before close: release the device's own buffers, as the pool is destroyed next. NULL: it has
     * none. */
    void (*rest)(struct sac_device *dev);
    /* Decoders of libavcodec that work in this device's memory: fill its struct
     * AVCUDADeviceContext, which hwctx is; *stream is where they queue what completes a picture.
     * NULL: none does. */
    sac_result (*video_context)(struct sac_device *dev, void *hwctx,
                                struct sac_device_stream **stream);

    /* Only sac_device_copy and sac_device_copy_rows call these: they are the ledger's entry. NULL
     * stream: the default one, and the copy is done on return when the host is part of it. */
    sac_result (*copy)(struct sac_device *dev, struct sac_device_stream *stream, void *dst,
                       const void *src, size_t bytes, enum sac_copy_kind kind);
    /* NULL: row by row */
    sac_result (*copy_rows)(struct sac_device *dev, struct sac_device_stream *stream,
                            const struct sac_copy_rows *rows, enum sac_copy_kind kind);

    /* Queues zeros into `bytes` of device memory. NULL only where that is the host's. */
    sac_result (*clear)(struct sac_device *dev, struct sac_device_stream *stream, void *at,
                        size_t bytes);

    /* What it computes on pictures and boxes. */
    const struct sac_vision_ops *vision; /* vision/vision.h */

    /* ---- networks; all NULL on the CPU, which engine/plan/providers.c knows ---- */

    /* Providers of kernels for operators (engine/kernel/kernel.h), in order of preference; opened
     * on first use. */
    const struct sac_kernel_provider *const *providers;
    int                                      provider_count;
    /* An operand's numbers from one layout into another, or plainly copied; device memory. */
    sac_result (*relayout)(struct sac_device *dev, struct sac_device_stream *stream,
                           const struct sac_operand *o, void *dst, int to, const void *src,
                           int from);
    /* Sets *odd, of host_alloc, to 1 if one of `count` numbers is NaN or, but for nan_alone,
     * infinite: float32, with `half` float16. Queued. NULL: they are not checked. */
    sac_result (*find_odd)(struct sac_device *dev, struct sac_device_stream *stream,
                           const void *numbers, int64_t count, bool half, bool nan_alone,
                           uint32_t *odd);
    /* Between begin and end nothing that is queued on the stream runs: it becomes a graph, which is
     * then launched as one. Only what is queued: no allocation, no wait, no copy from or to the
     * host. */
    sac_result (*capture_begin)(struct sac_device *dev, struct sac_device_stream *stream);
    /* What is queued from here on is the next part of the graph, the first is number 0: it waits
     * for the parts after[0] to after[count - 1] alone, and may run while others do. Without parts
     * all runs in the order in which it was queued. NULL: the device has none. */
    sac_result (*capture_part)(struct sac_device *dev, struct sac_device_stream *stream,
                               const int *after, int count);
    sac_result (*capture_end)(struct sac_device *dev, struct sac_device_stream *stream,
                              struct sac_device_graph **out); /* also after a fault: out may be NULL
                                                               */
    sac_result (*graph_launch)(struct sac_device *dev, struct sac_device_stream *stream,
                               struct sac_device_graph *graph);
    void (*graph_destroy)(struct sac_device *dev, struct sac_device_graph **graph);
    /* Between begin and end what the calling thread queues on the stream is gathered, and end
     * launches it as one: *graph, NULL at first, is made of it, and launched with other parameters
     * where the same comes again. What the stream has to wait for it waits for before all of it.
     * Events are recorded behind all of it, timed ones where they stand; who waits for one waits
     * for the end too. Work that cannot be gathered (a copy, some kernels) comes in its order, but
     * then all is queued one by one, as it is with `graph` NULL; *one: it was one launch. One
     * stream at a time. NULL: the device cannot. */
    void (*gather_begin)(struct sac_device *dev, struct sac_device_stream *stream);
    sac_result (*gather_end)(struct sac_device *dev, struct sac_device_stream *stream,
                             struct sac_device_graph **graph, bool *one);
};

/* What a plug-in exports as sac_device_plugin_v1(). Sizes and number tell builds apart that would
 * misread each other's structs. */
enum { SAC_DEVICE_ABI = 8 };
struct sac_device_plugin {
    uint32_t                     abi;
    uint32_t                     struct_size, device_size, ops_size, vision_size, frame_size;
    const struct sac_device_ops *ops;
};
/* vision_bytes: of struct sac_vision_ops, which stands above this folder. */
#define SAC_DEVICE_PLUGIN(table, vision_bytes)                                               \
    {                                                                                        \
        .abi = SAC_DEVICE_ABI, .struct_size = sizeof(struct sac_device_plugin),              \
        .device_size = sizeof(struct sac_device), .ops_size = sizeof(struct sac_device_ops), \
        .vision_size = (vision_bytes), .frame_size = sizeof(sac_frame), .ops = &(table)      \
    }
/* Is it of this build? NULL is not. */
bool sac_device_plugin_is_ours(const struct sac_device_plugin *plugin);

/* sac_device_open in two parts, for what can be done beside the second, which waits for a driver.
 * After begin ops, ctx and params are known, and nothing else may be asked of the device; end, by
 * the thread that began, makes it one like any other, or fails. */
sac_result sac_device_open_begin(sac_context *ctx, const char *name,
                                 const struct sac_device_params *params, sac_device **out);
sac_result sac_device_open_end(sac_device *dev);
/* On other threads: waits for the end. SAC_ERR_CANCELLED where that failed or never comes; whoever
 * opens it reports why. */
sac_result sac_device_await(sac_device *dev);
/* It will not be opened: nobody waits for it any more. */
void sac_device_open_cancel(sac_device *dev);

/* sac_device_open once the name is understood; for devices of tests too. */
sac_result sac_device_open_ops(sac_context *ctx, const struct sac_device_ops *ops, int index,
                               const struct sac_device_params *params, sac_device **out);

/* The rows of devices.c. */
struct sac_device_row {
    const char *name;
    /* NULL: this machine or build has no such device, and `missing` says why. Any thread. */
    const struct sac_device_ops *(*ops)(char *missing, size_t size);
};
extern const struct sac_device_row sac_device_rows[];
extern const size_t                sac_device_row_count;

/* What memory is held for: what the thread that takes it says at the time. */
enum sac_memory_use {
    SAC_MEMORY_OTHER = 0,
    SAC_MEMORY_DECODE,
    SAC_MEMORY_PREPROCESS,
    SAC_MEMORY_INFERENCE,
    SAC_MEMORY_HEAD,
    SAC_MEMORY_REID,
    SAC_MEMORY_TRACKING,
    SAC_MEMORY_DRAW,
    SAC_MEMORY_ENCODE,
    SAC_MEMORY_USE_COUNT
};

/* What a device can do without, to measure what it is worth (without.c). */
enum sac_device_without {
    SAC_WITHOUT_POOL = 1, /* no buffer is kept: what came back is freed before one is taken */
    SAC_WITHOUT_PAGE_LOCKED = 2,  /* what crosses to the device and back lies in any host memory */
    SAC_WITHOUT_GATHERING = 4,    /* what could be one launch is queued one by one */
    SAC_WITHOUT_EARLY_LAUNCH = 8, /* a kernel is launched when the one before it is done */
    SAC_WITHOUT_MMAP = 16         /* arrays of frames are read into memory, not mapped */
};

struct sac_device {
    const struct sac_device_ops *ops;
    sac_context                 *ctx;
    sac_refcount                 refs; /* handles: sac_device_ref */
    sac_refcount holds; /* handles, buffers and frames: releasing the last one closes the device */
    int          index;
    char         name[16];
    char         description[128];
    char         pci_bus_id[32]; /* of a GPU, as NVML takes it; empty: it is none */
    struct sac_device_params params;
    uint32_t                 without;      /* of enum sac_device_without */
    struct sac_worker_pool  *workers;      /* behind sac_device_parallel */
    pthread_mutex_t          workers_lock; /* held by the one job that workers run */
    struct sac_buffer_pool  *pool;
    struct sac_buffer_pool  *host_pool;      /* NULL: the device's memory is the host's */
    void                    *state;          /* the device's own */
    bool                     opened;         /* ops->open succeeded, so close is due */
    struct sac_opening      *opening;        /* open.c's: whether sac_device_open_end is done */
    void (*destroy)(struct sac_device *dev); /* open.c's, for the last hold */
    /* sac_memory_use of who opened it: a plug-in has its own copy, which knows nothing of what the
     * library's threads said. */
    enum sac_memory_use (*memory_use)(void);
    bool (*given_up)(void); /* sac_start_given_up, for the same reason */
    struct {
        atomic_uint_fast64_t calls, bytes;
    } ledger[SAC_COPY_REASON_COUNT];
    atomic_uint_fast64_t       crossed;      /* bytes between host and device, without weights */
    atomic_int                 strict;       /* zero-copy strict: frame and tensor copies fail */
    atomic_uint_fast64_t       frames;       /* processed so far: sac_device_count_frames */
    pthread_mutex_t            callers_lock; /* guards callers */
    struct sac_callers_stream *callers;      /* callers.c */
    /* Kernels for networks, once one asked for them (engine/plan/providers.c, which guards both),
     * and how they end; NULL on the CPU, whose are the process's. */
    struct sac_kernels *kernels;
    void (*kernels_close)(struct sac_device *dev);
};

/* Before its pools: sets `without` as SACCADE_WITHOUT says, whose other names are the engine's
 * (engine/model/without.c), and warns of it. */
void sac_device_leave_out(sac_device *dev);
/* The i-th name; NULL: there are no more. */
const char *sac_device_without_name(int i);

/* The pipeline reports that this many more frames are done; every params.trim_frames of them the
 * pool frees idle buffers. Any thread. */
void sac_device_count_frames(sac_device *dev, int n);

/* Buffers, tensors and frames keep their device open without being handles to it: one that outlives
 * the last handle stays valid, but is a leak and is named in the log. */
void sac_device_hold(sac_device *dev);
void sac_device_release(sac_device *dev);

/* The caller's stream with that handle as one of the device's, borrowed until it closes: the same
 * one for the same handle, so that uses.c knows it again. NULL where the caller's work is done when
 * it calls us. Any thread. */
sac_result sac_device_callers_stream(sac_device *dev, void *handle, struct sac_device_stream **out);
/* When it closes. */
void sac_device_callers_forget(sac_device *dev);

/* Default number of CPU threads for decoders and encoders on the host: all with a GPU, when the
 * CPUs have little other work. */
int sac_video_threads(const sac_device *dev);

/* Run n independent pieces of host work on the device's threads and wait for them; fn as in
 * sac_worker_pool_run. Any thread: while another job uses the workers, the caller runs all pieces
 * itself instead of waiting. worker numbers the threads of this job, so scratch belongs to the job.
 */
void sac_device_parallel(sac_device *dev, int n, void (*fn)(void *arg, int piece, int worker),
                         void *arg);

/* Pooled device memory. Contents are not initialised; aligned to 64 bytes at least on the CPU, and
 * 64 bytes past the end may be read (not written) by vector code.
 * owner    what it is for, shown in the live list; copied, cut to 47 bytes.
 * Errors   SAC_ERR_LIMIT over the device's budget, SAC_ERR_MEMORY. */
struct sac_buffer;
sac_result sac_buffer_create(sac_device *dev, size_t bytes, const char *owner,
                             struct sac_buffer **out);
/* The same in host memory, for what crosses to the device and back: page-locked where there is a
 * device that this serves, so that copies on a stream do not wait; within
 * params.host_limit_bytes. */
sac_result sac_host_buffer_create(sac_device *dev, size_t bytes, const char *owner,
                                  struct sac_buffer **out);
/* Host memory beside `bytes` at `at` of the device's, for what is copied between the two: that
 * memory itself where the host uses it, so that the copy is none. close accepts a zeroed struct. */
struct sac_mirror {
    void              *data;
    struct sac_buffer *buf; /* NULL: data is `at` */
};
sac_result sac_mirror_open(sac_device *dev, void *at, size_t bytes, const char *owner,
                           struct sac_mirror *out);
void       sac_mirror_close(struct sac_mirror *mirror);
/* For the device itself: it does not keep the device open, and is released in ops->rest. */
sac_result sac_buffer_create_own(sac_device *dev, size_t bytes, const char *owner, bool host,
                                 struct sac_buffer **out);
/* Count memory that a library allocates on the device for us (a decoder's surfaces) against the
 * budget; the buffer itself has no bytes. Create it before the library allocates, unref it when it
 * has freed them.
 * Errors   SAC_ERR_LIMIT over the budget. */
sac_result         sac_buffer_reserve(sac_device *dev, uint64_t bytes, const char *owner,
                                      struct sac_buffer **out);
struct sac_buffer *sac_buffer_ref(struct sac_buffer *buf);
void               sac_buffer_unref(struct sac_buffer **buf);
/* Whether only the caller holds it and no stream works with it any more. wait: wait for the
 * streams. */
bool   sac_buffer_is_free(struct sac_buffer *buf, bool wait);
void  *sac_buffer_data(const struct sac_buffer *buf);
size_t sac_buffer_bytes(const struct sac_buffer *buf);
/* Record that the work queued on this stream so far uses the buffer: once released, it is reused
 * only when that work is done. Not needed on the device's own stream (NULL: no effect). The same
 * for a tensor's memory and for a frame's planes: those of a wrapped frame are returned to their
 * owner when the work is done, on any stream. A stream may only be destroyed when its work is
 * done. */
void sac_buffer_used(struct sac_buffer *buf, struct sac_device_stream *stream);
void sac_tensor_used(sac_tensor *t, struct sac_device_stream *stream);
void sac_frame_used(const sac_frame *frame, struct sac_device_stream *stream);
/* Describe the contents, for the live list. */
void sac_buffer_describe(struct sac_buffer *buf, const struct sac_tensor_desc *desc);
/* Held for long on purpose (weights, activations), as many as there may be: the watcher does not
 * count it. */
void sac_buffer_keep(struct sac_buffer *buf);
/* pool.c, for open.c: created with the device; destroyed when no buffer is left. */
sac_result sac_buffer_pool_create(sac_device *dev, struct sac_buffer_pool **out);
sac_result sac_host_pool_create(sac_device *dev, struct sac_buffer_pool **out);
void       sac_buffer_pool_destroy(struct sac_buffer_pool **pool);
/* When the last handle is released: count and log the buffers that are still held. */
void sac_buffer_pool_report_held(struct sac_buffer_pool *pool);
/* Free what waits in the pool. */
void sac_device_pool_trim(sac_device *dev);
/* How much of what the pool may hold is in use, or of what the device has by all programs, the
 * larger one; idle buffers do not count. 0..1 and more; 0: there is no limit. */
double sac_device_memory_used(sac_device *dev);

const char *sac_buffer_owner(const struct sac_buffer *buf);
/* For sentences: "float32 [1,3,4]"; "DOING 'OWNER', float32 [1,3,4]"; "DOING frame 7 of stream
 * 3". */
void sac_tensor_desc_print(const struct sac_tensor_desc *desc, char *out, size_t size);
/* Whether it may be written: the sentence "DOING: ...", where its memory is another's to write. */
sac_result sac_tensor_check_writable(const sac_tensor *t, const char *doing);
/* sac_tensor_wrap of a frame's plane: it holds the frame, and what uses it uses the frame. */
sac_result sac_tensor_of_frame(sac_frame *frame, const struct sac_tensor_desc *desc, void *data,
                               sac_tensor **out);
/* sac_tensor_wrap of memory that may only be read. */
sac_result sac_tensor_wrap_const(sac_device *dev, const struct sac_tensor_desc *desc, void *data,
                                 void (*release)(void *user), void *user, sac_tensor **out);
bool       sac_tensor_is_const(const sac_tensor *t);
/* Does it begin where the device's networks take it? */
bool sac_tensor_is_aligned(const sac_tensor *t);
/* Zeros, queued on the device's own stream. */
sac_result sac_tensor_clear(sac_tensor *t);
void       sac_tensor_name(const sac_tensor *t, const char *doing, char *out, size_t size);
void       sac_frame_name(const sac_frame *frame, const char *doing, char *out, size_t size);

/* What the calling thread takes memory for, from now on; returns what it was. */
enum sac_memory_use sac_memory_use_set(enum sac_memory_use use);
enum sac_memory_use sac_memory_use(void);
/* As sac_device_get_allocations, with what each kind is for beside it. */
int sac_device_list_kinds(const sac_device *dev, struct sac_allocation *out,
                          enum sac_memory_use *use, int max);
/* Live bytes of each, and the largest value so far; page-locked memory is not included. */
void sac_device_memory_by_use(const sac_device *dev, uint64_t live[SAC_MEMORY_USE_COUNT],
                              uint64_t peak[SAC_MEMORY_USE_COUNT]);

/* The device if the host cannot use its addresses, so that what lies there takes copies; else NULL,
 * as for no device. */
static inline sac_device *sac_device_apart(sac_device *dev)
{
    return dev && !dev->ops->host_memory ? dev : NULL;
}

/* Every transfer between host and device, and every copy of frame data on a device, goes through
 * here. A copy between the host and a device that uses its memory is not counted. what: operation
 * and tensor or frame, for the sentence that strict mode fails with. */
sac_result sac_device_copy(sac_device *dev, struct sac_device_stream *stream, void *dst,
                           const void *src, size_t bytes, enum sac_copy_kind kind,
                           enum sac_copy_reason reason, const char *what);
/* The same for a rectangle of bytes. */
sac_result sac_device_copy_rows(sac_device *dev, struct sac_device_stream *stream,
                                const struct sac_copy_rows *rows, enum sac_copy_kind kind,
                                enum sac_copy_reason reason, const char *what);
/* For conversions that are not one plain copy (a scaler wrote the bytes): count, and obey
 * strict. */
sac_result sac_device_count_copy(sac_device *dev, size_t bytes, enum sac_copy_reason reason,
                                 const char *what);

/* Where the planes of a pooled frame lie: pitches from format and size, returning the bytes of all;
 * then the addresses from that of the first. */
size_t sac_frame_lay_out(sac_frame *frame);
/* sac_frame_create in an existing buffer that is large enough; takes the reference, even on
 * failure. */
sac_result sac_frame_create_in(sac_device *dev, const sac_frame *desc, struct sac_buffer *buf,
                               sac_frame **out);
void       sac_frame_place(sac_frame *frame, uint8_t *at);

/* sac_frame_wrap of upright planes in a tensor's memory: it holds the tensor, and what uses it uses
 * the tensor. */
sac_result sac_frame_of_tensor(sac_tensor *t, const sac_frame *desc, sac_frame **out);

/* The frame's planes are complete once the event's stream has reached it; it must be recorded. With
 * `own` the event belongs to the frame, else it must outlive the frame. The CPU's frames have
 * none. */
void sac_frame_set_ready(sac_frame *frame, struct sac_event *event, bool own);
/* Work that writes the planes has been queued on the stream. Only the device's own (NULL) is
 * remembered, where the public calls' work is: whoever queues on another sets an event. */
void sac_frame_written(const sac_frame *frame, const struct sac_device_stream *stream);
/* Make the stream wait until the planes are complete. Everything that queues work on a frame calls
 * this first. */
sac_result sac_frame_await(const sac_frame *frame, struct sac_device_stream *stream);

/* sac_frame_copy (vision/image.c, as it may have to turn the picture) in its parts: whether the
 * frames' format, size and devices allow it, and the copy between planes that lie alike. */
sac_result sac_frame_check_copy(const sac_frame *src, const sac_frame *dst);
sac_result sac_frame_copy_upright(const sac_frame *src, sac_frame *dst);

/* ---- planes.c ---- */

/* How many planes a format has, and the bytes in a row and the rows of each. */
struct sac_plane_layout {
    size_t row_bytes;
    int    rows;
};
int sac_frame_planes(enum sac_pixel_format format, int width, int height,
                     struct sac_plane_layout out[SAC_PLANES_MAX]);
/* The planes of one to the other, both in host memory, upright, of one format and size. Not
 * counted. */
void sac_frame_copy_planes(const sac_frame *src, const sac_frame *dst);
/* Of a frame's planes as they are stored. */
int sac_frame_stored_planes(const sac_frame *frame, struct sac_plane_layout out[SAC_PLANES_MAX]);

/* The frame over a rectangle of another one's pixels, which owns them; x and y are even where
 * chroma is halved. */
sac_frame sac_frame_part(const sac_frame *frame, int x, int y, int width, int height);
/* Whether the stored picture is as wide as the upright one is high. */
bool sac_orientation_swaps_sides(enum sac_orientation orientation);
/* The same planes, were they of that orientation; SAC_UPRIGHT: the picture as it is stored. */
sac_frame sac_frame_as_turned(const sac_frame *frame, enum sac_orientation orientation);
/* A plane as the upright picture has it: its first sample, and the way to the one on its right and
 * to the one below. */
struct sac_plane_walk {
    const uint8_t *first;
    size_t         sample_bytes;
    ptrdiff_t      across, down;
};
struct sac_plane_walk sac_plane_walk_of(const sac_frame *frame, int plane);
/* The planes of src turned into those of dst, which is upright and of its size and format; in host
 * memory. */
void sac_frame_turn(const sac_frame *src, const sac_frame *dst);

#endif
