/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "track/eval_data.h"

struct sac_eval_params sac_eval_params_default(void)
{
    return (struct sac_eval_params){.preprocess = 1};
}

static sac_result score(const struct sac_eval_data *data, const char *name,
                        struct sac_eval_result *out)
{
    *out = (struct sac_eval_result){
        .dets = data->track_dets,
        .gt_dets = data->gt_dets,
        .ids = data->track_ids,
        .gt_ids = data->gt_ids,
        .frames = data->frame_count,
    };
    snprintf(out->name, sizeof out->name, "%s", name);
    if (data->gt_dets == 0 || data->track_dets == 0) {
        /* Nothing to divide by: the counts are kept for the combined row, the ratios are 0. */
        sac_eval_hota_empty(data, out);
        out->fn = out->idfn = data->gt_dets;
        out->fp = out->idfp = data->track_dets;
        out->ml = data->track_dets == 0 ? data->gt_ids : 0;
        return SAC_OK;
    }
    sac_result res = sac_eval_hota_score(data, out);
    if (res == SAC_OK)
        res = sac_eval_clear_score(data, out);
    if (res == SAC_OK)
        res = sac_eval_identity_score(data, out);
    return res;
}

sac_result sac_eval_sequence(sac_context *ctx, const char *name, const struct sac_mot_file *gt,
                             const struct sac_mot_file    *tracks,
                             const struct sac_eval_params *params, struct sac_eval_result *out)
{
    SAC_NEEDS(ctx, name);
    SAC_NEEDS(ctx, gt);
    SAC_NEEDS(ctx, tracks);
    SAC_NEEDS(ctx, out);
    SAC_NEEDS_ARRAY(ctx, gt->rows, gt->count);
    SAC_NEEDS_ARRAY(ctx, tracks->rows, tracks->count);
    SAC_NEEDS_NO_LATER_FIELD(ctx, params, "evaluation parameters");
    struct sac_eval_params defaults = sac_eval_params_default();
    struct sac_eval_data   data = {.ctx = ctx};
    struct sac_eval_result result;
    sac_result res = sac_eval_prepare(&data, name, gt, tracks, params ? params : &defaults);
    if (res == SAC_OK)
        res = score(&data, name, &result);
    sac_eval_data_finish(&data);
    if (res == SAC_OK)
        *out = result;
    return res;
}

void sac_eval_combine(const struct sac_eval_result *parts, size_t n, struct sac_eval_result *out)
{
    struct sac_eval_result sum = {.name = "combined"};
    if (!out)
        return;
    n = parts ? n : 0;
    for (size_t i = 0; i < n; i++) {
        const struct sac_eval_result *p = &parts[i];
        sum.tp += p->tp;
        sum.fp += p->fp;
        sum.fn += p->fn;
        sum.idsw += p->idsw;
        sum.frag += p->frag;
        sum.mt += p->mt;
        sum.pt += p->pt;
        sum.ml += p->ml;
        sum.motp_sum += p->motp_sum;
        sum.idtp += p->idtp;
        sum.idfp += p->idfp;
        sum.idfn += p->idfn;
        sum.dets += p->dets;
        sum.gt_dets += p->gt_dets;
        sum.ids += p->ids;
        sum.gt_ids += p->gt_ids;
        sum.frames += p->frames;
    }
    sac_eval_hota_combine(parts, n, &sum);
    sac_eval_clear_close(&sum);
    sac_eval_identity_close(&sum);
    *out = sum;
}
