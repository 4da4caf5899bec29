/* SPDX-License-Identifier: Apache-2.0 */
/* The main job: a video goes in, an annotated video and its tracks as JSON lines come out.
 *
 *     track in.mp4 person_det out.mp4 tracks.jsonl
 */
#include <stdio.h>

#include <saccade/saccade.h>

int main(int argc, char **argv)
{
    struct sac_pipeline_params params = sac_pipeline_params_default();
    struct sac_pipeline_stats  stats;
    sac_context               *ctx = NULL;
    sac_pipeline              *pipe = NULL;
    char                       why[512];
    if (argc != 5)
        return fprintf(stderr, "usage: track VIDEO DETECTOR OUT.mp4 OUT.jsonl\n"), 2;
    if (sac_context_create(NULL, &ctx) != SAC_OK)
        return 1;
    params.input = argv[1];
    params.job.detector = argv[2];
    params.job.detector_params.classes = "person";
    params.video_out = argv[3];
    params.jsonl_out = argv[4];
    sac_result res = sac_pipeline_create(ctx, &params, &pipe);
    if (res == SAC_OK)
        res = sac_pipeline_run(pipe);
    if (res == SAC_OK) {
        sac_pipeline_get_stats(pipe, &stats);
        printf("%lld frames, %.1f frames/s, %lld tracks\n", (long long)stats.frames, stats.fps,
               (long long)stats.tracks);
    } else if (sac_context_last_error(ctx, why, sizeof why)) {
        fprintf(stderr, "track: %s\n", why);
    }
    sac_pipeline_destroy(&pipe);
    sac_context_destroy(&ctx);
    return res == SAC_OK ? 0 : 1;
}
