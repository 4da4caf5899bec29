/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include <saccade/source.h>

#include "inspect.h"
#include "json.h"

static const char *matrix_name(enum sac_colour_matrix matrix)
{
    static const char *const names[] = {"bt601", "bt709", "bt2020"};
    return names[matrix];
}

static const char *range_name(enum sac_colour_range range)
{
    return range == SAC_RANGE_FULL ? "full" : "limited";
}

static void print_stream(const struct sac_stream_info *stream)
{
    printf("  %-9s %s", stream->kind, stream->codec);
    if (stream->profile[0])
        printf(" (%s)", stream->profile);
    if (stream->format[0])
        printf(", %s", stream->format);
    if (stream->width)
        printf(", %dx%d", stream->width, stream->height);
    if (stream->fps > 0)
        printf(", %.5g frames/s", stream->fps);
    if (stream->colour[0])
        printf(", %s", stream->colour);
    if (stream->sample_rate)
        printf(", %d Hz, %d channel%s", stream->sample_rate, stream->channels,
               stream->channels == 1 ? "" : "s");
    if (stream->bit_rate)
        printf(", %.4g kbit/s", (double)stream->bit_rate / 1e3);
    if (stream->language[0])
        printf(", %s", stream->language);
    puts(stream->chosen ? "  (read)" : "");
}

static void print_text(const char *path, const struct sac_source_info *info,
                       const struct sac_stream_info *streams, int count)
{
    printf("%s: %s\n", path, info->container);
    if (info->duration_us > 0)
        printf("duration    %.3f s\n", (double)info->duration_us / 1e6);
    else
        printf("duration    unknown%s\n", info->live ? " (live)" : "");
    if (info->frames > 0)
        printf("frames      about %" PRId64 "\n", info->frames);
    if (info->fps > 0)
        printf("rate        %.5g frames/s (%d/%d)\n", info->fps, info->fps_num, info->fps_den);
    printf("frames are  %dx%d, %s, %s, %s range, decoder %s\n", info->width, info->height,
           sac_pixel_format_name(info->format), matrix_name(info->matrix), range_name(info->range),
           info->decoder);
    if (info->rotation > 0 || info->mirrored)
        printf("rotation    %s%.4g degrees clockwise; frames are %s\n",
               info->mirrored ? "mirrored, then " : "", info->rotation,
               info->orientation ? "turned upright"
                                 : "left as they are stored: only quarter turns are made");
    puts("streams");
    for (int i = 0; i < count; i++)
        print_stream(&streams[i]);
}

static void json_stream(struct json *json, const struct sac_stream_info *stream)
{
    json_open(json, NULL, '{');
    json_text(json, "kind", stream->kind);
    json_text(json, "codec", stream->codec);
    json_text(json, "profile", stream->profile);
    json_text(json, "format", stream->format);
    json_text(json, "language", stream->language);
    json_int(json, "width", stream->width);
    json_int(json, "height", stream->height);
    json_real(json, "fps", stream->fps);
    json_text(json, "colour", stream->colour);
    json_int(json, "sample_rate", stream->sample_rate);
    json_int(json, "channels", stream->channels);
    json_int(json, "bit_rate", stream->bit_rate);
    json_bool(json, "read", stream->chosen);
    json_close(json, '}');
}

static void print_json(const char *path, const struct sac_source_info *info,
                       const struct sac_stream_info *streams, int count)
{
    struct json json = {.out = stdout};
    json_open(&json, NULL, '{');
    json_text(&json, "file", path);
    json_text(&json, "kind", "video");
    json_text(&json, "container", info->container);
    json_text(&json, "codec", info->codec);
    json_text(&json, "decoder", info->decoder);
    json_int(&json, "width", info->width);
    json_int(&json, "height", info->height);
    json_real(&json, "fps", info->fps);
    json_int(&json, "fps_num", info->fps_num);
    json_int(&json, "fps_den", info->fps_den);
    json_real(&json, "duration_s", (double)info->duration_us / 1e6);
    json_int(&json, "frames", info->frames);
    json_text(&json, "format", sac_pixel_format_name(info->format));
    json_text(&json, "matrix", matrix_name(info->matrix));
    json_text(&json, "range", range_name(info->range));
    json_real(&json, "rotation", info->rotation);
    json_bool(&json, "mirrored", info->mirrored);
    json_bool(&json, "turned", info->orientation != SAC_UPRIGHT);
    json_bool(&json, "live", info->live);
    json_open(&json, "streams", '[');
    for (int i = 0; i < count; i++)
        json_stream(&json, &streams[i]);
    json_close(&json, ']');
    json_close(&json, '}');
    putchar('\n');
}

enum { STREAMS_MAX = 64 };

int inspect_video(const struct settings *s, sac_context *ctx, sac_device *device, const char *path,
                  struct fault *fault)
{
    struct sac_source_params params = sac_source_params_default();
    struct sac_source_info   info;
    struct sac_stream_info   streams[STREAMS_MAX];
    sac_source              *source = NULL;
    params.prefetch = 0;
    sac_result res = sac_source_open(device, path, &params, &source);
    if (res != SAC_OK)
        return fault_library(fault, ctx, res);
    sac_source_describe(source, &info);
    int count = sac_source_streams(source, streams, STREAMS_MAX);
    if (count > STREAMS_MAX)
        count = STREAMS_MAX;
    char shown[4096];
    sac_hide_secrets(path, shown, sizeof shown);
    s->json ? print_json(shown, &info, streams, count) : print_text(shown, &info, streams, count);
    sac_source_close(&source);
    return STATUS_OK;
}
