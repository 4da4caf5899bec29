/* SPDX-License-Identifier: Apache-2.0 */
/* Lists on their way to kernels: a few blocks of pinned and device memory, used in turn. */
#include "device/cuda/common.h"

enum { BYTES_MIN = 256 << 10 }; /* what 64 streams with dozens of people send at once */

static void block_finish(struct cuda_command_block *b)
{
    if (b->read)
        cudaEventDestroy(b->read);
    sac_buffer_unref(&b->host_buffer);
    sac_buffer_unref(&b->device_buffer);
    *b = (struct cuda_command_block){0};
}

void cuda_commands_finish(struct cuda_state *state)
{
    for (int i = 0; i < CUDA_COMMAND_BLOCKS; i++) {
        struct cuda_command_block *b = &state->commands[i];
        if (b->queued)
            cudaEventSynchronize(b->read);
        if (b->bytes)
            block_finish(b);
    }
}

/* A block of a power of two: few lists are longer than the first one. On failure it stays as it
 * was. */
static sac_result block_grow(struct sac_device *dev, struct cuda_command_block *b, size_t bytes)
{
    struct cuda_command_block grown = {.bytes = BYTES_MIN};
    while (grown.bytes < bytes)
        grown.bytes *= 2;
    sac_result res =
        cuda_check(dev, cudaEventCreateWithFlags(&grown.read, cudaEventDisableTiming), "an event");
    if (res == SAC_OK)
        res =
            sac_buffer_create_own(dev, grown.bytes, "lists for kernels", true, &grown.host_buffer);
    if (res == SAC_OK)
        res = sac_buffer_create_own(dev, grown.bytes, "lists for kernels", false,
                                    &grown.device_buffer);
    if (res == SAC_OK) /* work queued there may still use the memory */
        res = cuda_check(dev, cudaStreamSynchronize(cuda_stream_of(dev, NULL)), "queued work");
    if (res != SAC_OK) {
        block_finish(&grown);
        return res;
    }
    grown.host = sac_buffer_data(grown.host_buffer);
    grown.device = sac_buffer_data(grown.device_buffer);
    block_finish(b);
    *b = grown;
    return SAC_OK;
}

/* All blocks at once, so that none is made later; one will do. One for which there is no memory is
 * tried again when it is needed. Under the lock. */
static sac_result open_blocks(struct sac_device *dev, struct cuda_state *state)
{
    sac_result res = SAC_OK;
    for (int i = 0; i < CUDA_COMMAND_BLOCKS && res == SAC_OK; i++)
        if (!state->commands[i].bytes)
            res = block_grow(dev, &state->commands[i], BYTES_MIN);
    state->commands_open = true;
    if (!state->commands[0].bytes)
        return res;
    if (res != SAC_OK)
        sac_error_clear(dev->ctx);
    return SAC_OK;
}

sac_result cuda_commands_reserve(struct sac_device *dev)
{
    struct cuda_state *state = dev->state;
    pthread_mutex_lock(&state->lock);
    sac_result res = open_blocks(dev, state);
    pthread_mutex_unlock(&state->lock);
    return res;
}

static bool is_free(struct cuda_command_block *b)
{
    if (b->taken || (b->queued && cudaEventQuery(b->read) == cudaErrorNotReady))
        return false;
    b->queued = false;
    return true;
}

/* A free block, best one that is large enough; under the lock. */
static struct cuda_command_block *find_block(struct cuda_state *state, size_t bytes)
{
    struct cuda_command_block *found = NULL;
    for (int i = 0; i < CUDA_COMMAND_BLOCKS; i++) {
        struct cuda_command_block *b = &state->commands[i];
        if (is_free(b) && (!found || (found->bytes < bytes && b->bytes > found->bytes)))
            found = b;
    }
    cudaGetLastError(); /* "not ready" is an answer and must not fail the next launch */
    return found;
}

/* Wait for the first block that is queued; NULL: threads hold all of them. Under the lock. */
static struct cuda_command_block *wait_for_queued(struct cuda_state *state)
{
    for (int i = 0; i < CUDA_COMMAND_BLOCKS; i++) {
        struct cuda_command_block *b = &state->commands[i];
        if (b->taken)
            continue;
        cudaEventSynchronize(b->read);
        b->queued = false;
        return b;
    }
    return NULL;
}

/* Threads hold a block while they write and queue a list: microseconds. Under the lock. */
static struct cuda_command_block *wait_for_block(struct cuda_state *state, size_t bytes)
{
    struct cuda_command_block *b = find_block(state, bytes);
    while (!b && !(b = wait_for_queued(state))) {
        pthread_cond_wait(&state->given, &state->lock);
        b = find_block(state, bytes);
    }
    return b;
}

/* One that is large enough as it is, once it is free; NULL: there is none. Under the lock. */
static struct cuda_command_block *wait_for_large(struct cuda_state *state, size_t bytes)
{
    for (;;) {
        bool any = false;
        for (int i = 0; i < CUDA_COMMAND_BLOCKS; i++) {
            struct cuda_command_block *b = &state->commands[i];
            any |= b->bytes >= bytes;
            if (b->bytes < bytes || b->taken)
                continue;
            if (b->queued)
                cudaEventSynchronize(b->read);
            b->queued = false;
            return b;
        }
        if (!any)
            return NULL;
        pthread_cond_wait(&state->given, &state->lock);
    }
}

/* Without memory for one more block those that are there have to do. Under the lock. */
static sac_result make_large(struct sac_device *dev, struct cuda_command_block **b, size_t bytes)
{
    struct cuda_command_block *large = NULL;
    sac_result                 res = block_grow(dev, *b, bytes);
    if (sac_is_out_of_memory(res))
        large = wait_for_large(dev->state, bytes);
    if (!large)
        return res;
    sac_error_clear(dev->ctx);
    *b = large;
    return SAC_OK;
}

sac_result cuda_commands_take(struct sac_device *dev, size_t bytes, struct cuda_command_block **out)
{
    struct cuda_state *state = dev->state;
    sac_result         res = SAC_OK;
    if (bytes > CUDA_COMMAND_BYTES_MAX)
        return SAC_FAIL(dev->ctx, SAC_ERR_LIMIT,
                        "%s: a list of %zu bytes; up to %d can be sent at once", dev->name, bytes,
                        (int)CUDA_COMMAND_BYTES_MAX);
    pthread_mutex_lock(&state->lock);
    if (!state->commands_open && open_blocks(dev, state) != SAC_OK)
        sac_error_clear(dev->ctx); /* tried once more below */
    struct cuda_command_block *b = wait_for_block(state, bytes);
    if (b->bytes < bytes)
        res = make_large(dev, &b, bytes);
    b->taken = res == SAC_OK;
    pthread_mutex_unlock(&state->lock);
    if (res == SAC_OK)
        *out = b;
    return res;
}

sac_result cuda_commands_send(struct sac_device *dev, struct sac_device_stream *stream,
                              struct cuda_command_block *block, size_t bytes, const char *what)
{
    /* A NULL stream would wait for the copy; the device's own stream by name does not. */
    return sac_device_copy(dev, cuda_own_stream(dev, stream), block->device, block->host, bytes,
                           SAC_COPY_HOST_TO_DEVICE, SAC_COPY_COMMANDS, what);
}

void cuda_commands_done(struct sac_device *dev, struct sac_device_stream *stream,
                        struct cuda_command_block *block)
{
    struct cuda_state *state = dev->state;
    pthread_mutex_lock(&state->lock);
    block->queued = cudaEventRecord(block->read, cuda_stream_of(dev, stream)) == cudaSuccess;
    if (!block->queued) /* then the block is free when all is done */
        cudaStreamSynchronize(cuda_stream_of(dev, stream));
    block->taken = false;
    pthread_cond_broadcast(&state->given);
    pthread_mutex_unlock(&state->lock);
}
