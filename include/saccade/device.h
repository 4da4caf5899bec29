/* SPDX-License-Identifier: Apache-2.0 */
/* A device: where pixels and tensors live and where the work on them runs.
 *
 *     sac_device *dev = NULL;
 *     sac_result  res = sac_device_open(ctx, "cpu", NULL, &dev);
 *     ...
 *     sac_device_unref(&dev);
 *
 * There is no silent fallback: "auto" logs which device it chose and why. A device that was asked
 * for by name and is not available is an error that names what is missing.
 */
#ifndef SACCADE_DEVICE_H
#define SACCADE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <saccade/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sac_device sac_device;

struct sac_device_params {
    /* CPU threads for image operations and networks; 0: half of the machine's. With more than one,
     * start the program with GOMP_SPINCOUNT=1000 in its environment: otherwise oneDNN's threads
     * spin between frames. */
    int      threads;
    uint64_t memory_limit_bytes; /* budget of the buffer pool; 0: none */
    uint64_t vram_limit_bytes;   /* the same on a GPU, decoders' surfaces included; 0: as
                                    memory_limit_bytes */
    uint64_t host_limit_bytes;   /* budget of page-locked host memory for a GPU's transfers; 0: 512
                                    MiB */
    /* Where ever more buffers of one owner and size are held for longer than this, they are named
     * in the log, after five such times at the earliest; 0 (default): off. */
    int leak_age_s;
    int zero_copy_strict; /* 1: a copy of frame or tensor data fails: SAC_ERR_COPY. Default 0 */
    /* The pool checks for idle buffers every trim_frames frames of a run. It frees those that were
     * idle for 16 such intervals, or for 1024 when they had been reused before. Default 300; 0:
     * only when memory is short. */
    int      trim_frames;
    uint64_t plan_cache_bytes; /* bound of the plans and kernels in the user's cache folder, kept
                                  whenever a plan is; the least recently used goes; 0: 4 GiB */
    uint64_t buffers_max;      /* the pool's buffers, in use and idle: at this number an idle one
                                  makes way for a new one, and where none is idle there is no
                                  memory; 0: any number */
    double memory_share_max; /* of a GPU, where no limit above is given: the budget of the pool, as
                                a share of the memory that the GPU has; default 0.9, 0: none */
    /* 1: networks give the same bits from process to process on the same machine: a GPU's kernels
     * are chosen by rules and never by measurement, whatever sac_model_params or a plan file says,
     * and detectors, segmenters, embedders and servers fill batches up to batch_max, whatever their
     * padding; without memory for that they fail. Slower. Default 0 */
    int      deterministic;
    uint64_t reserved[4]; /* 0 */
};

SAC_API struct sac_device_params sac_device_params_default(void);

/* name     "auto", "cpu", "cuda" or "cuda:N".
 * params   NULL: the defaults.
 * out      one reference, released by sac_device_unref.
 * Errors   SAC_ERR_ARG for an unknown name, SAC_ERR_DEVICE when the device is not available. */
SAC_API sac_result sac_device_open(sac_context *ctx, const char *name,
                                   const struct sac_device_params *params, sac_device **out);
/* Release everything that was created on a device before its last reference: buffers that are still
 * held then stay valid, but count as leaks and are named in the log. Any thread. */
SAC_API sac_device *sac_device_ref(sac_device *dev);
SAC_API void        sac_device_unref(sac_device **dev);

SAC_API const char *sac_device_name(const sac_device *dev);        /* "cpu", "cuda:0" */
SAC_API const char *sac_device_description(const sac_device *dev); /* "AMD EPYC, AVX-512, 2 threads"
                                                                    */
/* CPU threads that it works with. */
SAC_API int          sac_device_threads(const sac_device *dev);
SAC_API sac_context *sac_device_context(const sac_device *dev);

/* Wait until all work that the library has queued on the device so far is done; the thread sleeps.
 *
 * A GPU runs queued work later, in order. Calls on frames and tensors return immediately unless
 * they say that they wait, and later calls see the results of earlier ones. Call this function
 * before your own code (a kernel on another stream) touches the memory of a tensor or frame, even
 * of a new one, and release the tensor or frame only when your code has finished with it; or let
 * your stream wait and not your thread (sac_tensor_ready_on). On the
 * CPU every call finishes its work before it returns. Any thread.
 * Errors   SAC_ERR_DEVICE for a fault of the queued work; SAC_ERR_MEMORY. */
SAC_API sac_result sac_device_wait(sac_device *dev);

/* Statistics of the buffer pool, counted since the device was opened. */
struct sac_pool_stats {
    uint64_t allocations;   /* buffers taken from the system */
    uint64_t reuses;        /* buffers served from the pool */
    uint64_t returns;       /* buffers given back to the pool */
    uint64_t leaks;         /* buffers still held when the device closed, or that piled up past
                               leak_age_s */
    uint64_t fragmentation; /* requests that failed although enough bytes were free in pieces */
    uint64_t bytes_live;    /* in use */
    uint64_t bytes_idle;    /* waiting in the pool */
    uint64_t bytes_peak;    /* largest bytes_live so far */
    /* After the first SAC_POOL_WARM_FRAMES frames of a run, when no new buffers should be
     * needed: */
    uint64_t requests_warm;    /* buffers asked for */
    uint64_t allocations_warm; /* how many of these were taken from the system */
    /* Before the first frame of a run was done, while it prepares what it needs: */
    uint64_t requests_start;    /* buffers asked for */
    uint64_t allocations_start; /* how many of these were taken from the system */
    uint64_t trims;             /* times that idle buffers were given back to the system */
    uint64_t bytes_trimmed;     /* and how many bytes that were */
    uint64_t reserved[4];       /* 0 */
};
enum { SAC_POOL_WARM_FRAMES = 300 };
/* Any thread. */
SAC_API void sac_device_pool_stats(const sac_device *dev, struct sac_pool_stats *out);
/* The same for page-locked host memory; all 0 on a device that needs none. */
SAC_API void sac_device_host_pool_stats(const sac_device *dev, struct sac_pool_stats *out);

/* Buffers of one owner and one size (a quarter of a power of two), as one kind: what a network's
 * layers share, a batch's inputs, the frames of a stream. */
struct sac_allocation {
    char     owner[48];         /* what they are for: "outputs", or the end of a model's path */
    char     stage[16];         /* that asked for the first, where a run has stages; or empty */
    char     place[32];         /* "cpu", "cuda:0", "page-locked host memory" */
    char     shape[96];         /* "float32 [1,3,416,416]" of the last one; empty: no tensor */
    uint64_t bytes;             /* of one, the most that was asked for */
    uint64_t count, count_peak; /* in use; the most at once */
    uint64_t bytes_live, bytes_peak; /* what these take: their size is rounded up */
    uint64_t requests;               /* how often one was asked for */
    double   first_s, last_s; /* when, in seconds since the device was opened: for the first time,
                                 and for the last */
    uint64_t reserved[4];     /* 0 */
};
enum { SAC_ALLOCATIONS_MAX = 64 };
/* The kinds that had the most bytes at once (bytes_peak), the largest first, of the device's memory
 * and of page-locked memory; what a decoder holds is among them. Memory that does not come from the
 * pools, such as a network's weights on the CPU, is not. Of each pool 256 kinds are known: beyond
 * that a larger one takes the place of the smallest that is not in use.
 *
 * out      [max] of which so many are filled as are returned.
 * Threads  any. */
SAC_API int sac_device_get_allocations(const sac_device *dev, struct sac_allocation *out, int max);

/* What a device holds, and what there is. */
struct sac_device_memory {
    struct sac_pool_stats pool, host_pool;               /* as the two functions above give them */
    uint64_t              bytes_limit, host_bytes_limit; /* their budgets; 0: none */
    uint64_t bytes_free, bytes_total; /* of a GPU's memory, for all programs; 0 on the CPU */
    uint64_t reserved[8];             /* 0 */
};
/* Any thread.
 * Errors   SAC_ERR_DEVICE; *out is then untouched. */
SAC_API sac_result sac_device_get_memory(const sac_device *dev, struct sac_device_memory *out);
/* Give what waits in the pools back to the system, once the work with it is done: the thread waits
 * for that, and a GPU for all its work. Returns how many bytes that were. What is in use stays;
 * what a run needs again it takes from the system, which is slow. Any thread. */
SAC_API uint64_t sac_device_trim(sac_device *dev);

/* Why bytes were copied: a complete list, printed with every report. */
enum sac_copy_reason {
    SAC_COPY_WEIGHTS,        /* model weights to the device, once */
    SAC_COPY_BOXES,          /* boxes, scores, ids and small cost matrices */
    SAC_COPY_COMMANDS,       /* job lists, small parameters */
    SAC_COPY_FRAME_UPLOAD,   /* a frame in host memory, to the device */
    SAC_COPY_FRAME_DOWNLOAD, /* a frame, to the host */
    SAC_COPY_FRAME_CONVERT,  /* a frame converted from a format that no stage takes */
    SAC_COPY_OVERLAY,        /* overlay-download: an annotated or composed frame, or a matte, for an
                                encoder on the host */
    SAC_COPY_DRAW, /* overlay-copy: a frame to draw on, as its decoder still reads the original */
    SAC_COPY_CROP, /* crop-download: the part of a frame inside a box, for a picture file */
    SAC_COPY_TENSOR_USER,     /* tensors that the caller uploads or downloads */
    SAC_COPY_TENSOR_LAYOUT,   /* a tensor between stages that disagree on layout */
    SAC_COPY_TENSOR_DOWNLOAD, /* a network's whole outputs, for a head that runs on the host */
    SAC_COPY_MASK, /* mask-download: an instance's mask, in cells of the network's map, for a file
                    */
    SAC_COPY_REASON_COUNT
};
SAC_API const char *sac_copy_reason_name(enum sac_copy_reason reason); /* "frame-upload", ... */

/* Copies of one reason. */
struct sac_ledger_entry {
    uint64_t calls, bytes;
};
enum { SAC_COPY_REASON_MAX = 32 };
/* All copies since the device was opened. */
struct sac_ledger {
    struct sac_ledger_entry reason[SAC_COPY_REASON_MAX]; /* by enum sac_copy_reason */
    uint64_t crossed_bytes; /* between host and device, without weights; 0 on the CPU */
    uint64_t reserved[4];   /* 0 */
};
/* Any thread. */
SAC_API void sac_device_ledger(const sac_device *dev, struct sac_ledger *out);

/* Call fn with one line per live buffer (owner, bytes, age, shape). Any thread. */
SAC_API void sac_device_dump_live(const sac_device *dev, void (*fn)(void *user, const char *line),
                                  void             *user);

#ifdef __cplusplus
}
#endif
#endif
