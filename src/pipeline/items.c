/* SPDX-License-Identifier: Apache-2.0 */
/* The items of a job, and the faults that its threads meet. */
#include "device/device.h"
#include "pipeline/job.h"
#include "pipeline/task.h"

struct sac_item *sac_job_item(struct sac_job *job)
{
    pthread_mutex_lock(&job->free_lock);
    struct sac_item *item = job->free_items;
    if (item)
        job->free_items = item->next;
    pthread_mutex_unlock(&job->free_lock);
    if (!item && !(item = sac_new(struct sac_item)))
        SAC_FAIL(job->ctx, SAC_ERR_MEMORY, "no memory for a frame's results");
    return item;
}

void sac_job_recycle(struct sac_job *job, struct sac_item *item)
{
    /* Keep the memory that a later frame can use; reset the rest. */
    sac_frame_unref(&item->frame);
    sac_frame_unref(&item->submitted);
    if (item->own && job->run->task->own_clear)
        job->run->task->own_clear(item->own);
    *item = (struct sac_item){
        .found = {.items = item->found.items, .capacity = item->found.capacity},
        .own = item->own,
        .tracks = item->tracks,
        .track_capacity = item->track_capacity,
    };
    pthread_mutex_lock(&job->free_lock);
    item->next = job->free_items;
    job->free_items = item;
    pthread_mutex_unlock(&job->free_lock);
}

void sac_job_free_items(struct sac_job *job)
{
    for (struct sac_item *item = job->free_items, *next; item; item = next) {
        next = item->next;
        sac_free(item->found.items);
        if (item->own && job->run->task->own_free)
            job->run->task->own_free(item->own);
        sac_free(item->tracks);
        sac_free(item);
    }
}

/* ---- faults ---- */

void sac_job_fail_item(struct sac_job *job, struct sac_item *item, sac_result res)
{
    item->status = res;
    sac_error_take(job->ctx, item->why, sizeof item->why);
}

bool sac_job_make_way(struct sac_job *job, sac_result res)
{
    if (!sac_is_out_of_memory(res) || !job->give_way || !job->give_way(job->give_way_user, job))
        return false;
    sac_device_pool_trim(job->dev);
    sac_error_clear(job->ctx);
    return true;
}
