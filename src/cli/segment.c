/* SPDX-License-Identifier: Apache-2.0 */
/* saccade segment: the options that it alone has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <saccade/pipeline.h>
#include <saccade/source.h>

#include "run.h"
#include "verbs.h"

/* Of the choices of --as; the others are kinds of the library. */
static const int AS_NONE = SAC_SEGMENT_AS_COUNT;
/* Pixels; of a picture of 1080 rows people behind it are shapes, no faces. */
static const float BLUR_DEFAULT = 24;

/* Of --feather: one step of a matte's values. */
static const float EDGE_MIN = 1.0f / 255;

/* ---- --background ---- */

static bool read_colour(const char *text, struct sac_colour *out)
{
    if (text[0] != '#' || strlen(text) != 7 || strspn(text + 1, "0123456789abcdefABCDEF") != 6)
        return false;
    const unsigned long value = strtoul(text + 1, NULL, 16);
    *out = (struct sac_colour){(uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};
    return true;
}

static bool read_blur(const char *text, float *out)
{
    char *end;
    *out = BLUR_DEFAULT;
    if (strcmp(text, "blur") == 0)
        return true;
    if (strncmp(text, "blur:", 5) != 0)
        return false;
    *out = strtof(text + 5, &end);
    return end != text + 5 && !*end && *out > 0 && *out <= 1024;
}

static int read_background(struct settings *s, struct fault *fault)
{
    struct sac_segment_params *p = &s->segment;
    if (!s->background || read_colour(s->background, &p->colour) ||
        read_blur(s->background, &p->blur))
        return STATUS_OK;
    p->blur = 0;
    if (access(s->background, F_OK) != 0)
        return fault_usage(
            fault,
            "--background '%s': %s; it takes a colour such as #00b140, the file of a "
            "picture, or blur, or blur:N with N in pixels up to 1024",
            s->background, strerror(errno));
    p->background = s->background;
    return STATUS_OK;
}

/* ---- --scales ---- */

/* "0.5,1,2"; the library says which numbers it takes. */
static int read_scales(struct settings *s, struct fault *fault)
{
    float       *scale = s->segment.segmenter.scales;
    const size_t most = sizeof s->segment.segmenter.scales / sizeof *scale;
    const char  *at = s->scales;
    char        *end;
    for (size_t n = 0; at; at = *end ? end + 1 : NULL, n++) {
        const float v = strtof(at, &end);
        if (end == at || (*end && (*end != ',' || !end[1])) || n == most || !(v > 0))
            return fault_usage(fault,
                               "--scales '%s': it takes up to %d numbers, such as 0.5,1,2: 1 is "
                               "the frame as the network sees it without",
                               s->scales, (int)most);
        scale[n] = v;
    }
    return STATUS_OK;
}

/* ---- the verb ---- */

/* Of --output none: a picture is composed where there is one to look at. */
static void look_away(void *user, const sac_frame *frame, const sac_frame *composite)
{
    (void)user;
    (void)frame;
    (void)composite;
}

static bool is_video(const char *output)
{
    return sac_sink_check_path(NULL, output) == SAC_OK;
}

static int check_output(const struct settings *s, struct fault *fault)
{
    const char *output = s->run.video_out;
    const bool  none = output && strcmp(output, "none") == 0;
    if ((int)s->segment.as == AS_NONE && output && !none)
        return fault_usage(fault, "--as none writes nothing, but --output names '%s'", output);
    if ((int)s->segment.as != AS_NONE && !output)
        return fault_usage(fault, "segment needs --output FILE; to measure, --as none, or --output "
                                  "none, which composes the picture and encodes nothing");
    if (output && strcmp(output, "-") == 0)
        return fault_usage(fault, "segment does not write to standard output; name a file");
    if (output && s->segment.as == SAC_SEGMENT_COCO && is_video(output))
        return fault_usage(fault, "--as coco writes JSON, but '%s' is a video's name", output);
    const bool picture = output && sac_name_is_picture(output);
    if (output && s->segment.as == SAC_SEGMENT_PNG && (picture || is_video(output)))
        return fault_usage(fault, "--as png writes a folder, but '%s' is a %s's name", output,
                           picture ? "picture" : "video");
    if (s->background && s->segment.as != SAC_SEGMENT_CUTOUT)
        return fault_usage(fault, "--background is what a cutout is laid over; add --as cutout");
    if (s->segment.projection && s->segment.segmenter.facets == SAC_FACETS_NONE &&
        s->segment.as != SAC_SEGMENT_ALPHA_PACKED)
        return fault_usage(fault, "without facets --projection says how a matte is packed; add "
                                  "--as alpha-packed, or take --facets front or all");
    if (!s->segment.projection && s->segment.segmenter.facets == SAC_FACETS_ALL)
        return fault_usage(fault, "--facets are pictures of a wide eye; add --projection fisheye "
                                  "or equirect180");
    return STATUS_OK;
}

int verb_segment(struct settings *s, struct fault *fault)
{
    struct sac_segment_params *p = &s->segment;
    const float                edge = s->feather > EDGE_MIN ? s->feather : EDGE_MIN;
    int                        status = check_output(s, fault);
    if (status == STATUS_OK)
        status = read_background(s, fault);
    if (status == STATUS_OK)
        status = read_scales(s, fault);
    if (status != STATUS_OK)
        return status;
    if ((int)p->as == AS_NONE) {
        p->as = SAC_SEGMENT_MASK;
        s->run.video_out = NULL;
    } else if (strcmp(s->run.video_out, "none") == 0) {
        p->on_composite = look_away;
        s->run.video_out = NULL;
    }
    p->segmenter.precision = s->run.job.detector_params.precision;
    p->segmenter.feather_low = 0.5f - edge / 2;
    p->segmenter.feather_high = 0.5f + edge / 2;
    s->run.job.segment = p;
    return run_videos(s, fault);
}
