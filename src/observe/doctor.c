/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor: examines the machine with the same calls that the library uses. */
#include <stdio.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <saccade/doctor.h>

#include "base/thread.h"
#include "device/cpu/cpu.h"
#include "engine/engine.h"
#include "media/capture.h"
#include "observe/doctor.h"

void sac_doctor_find(const struct sac_doctor *doc, const char *area, enum sac_finding_level level,
                     const char *mend, const char *fmt, ...)
{
    char    text[1280];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct sac_finding finding = {area, level, text, mend};
    doc->fn(doc->user, &finding);
}

static void append(char *buf, size_t size, const char *separator, const char *word)
{
    size_t used = strlen(buf);
    snprintf(buf + used, size - used, "%s%s", used ? separator : "", word);
}

bool sac_first_line(const char *path, const char *key, char *buf, size_t size)
{
    FILE *file = fopen(path, "r");
    bool  found = false;
    if (!file)
        return false;
    while (!found && fgets(buf, (int)size, file)) {
        buf[strcspn(buf, "\n")] = '\0';
        found = !key || strncmp(buf, key, strlen(key)) == 0;
    }
    fclose(file);
    return found;
}

/* ---- CPU ---- */

static void cpu_features(char *buf, size_t size)
{
    *buf = '\0';
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        append(buf, size, " ", "avx2");
    if (__builtin_cpu_supports("fma"))
        append(buf, size, " ", "fma");
    if (__builtin_cpu_supports("avx512f"))
        append(buf, size, " ", "avx512f");
    if (__builtin_cpu_supports("avx512bw"))
        append(buf, size, " ", "avx512bw");
    if (__builtin_cpu_supports("avx512vl"))
        append(buf, size, " ", "avx512vl");
    if (__builtin_cpu_supports("avx512vnni"))
        append(buf, size, " ", "avx512vnni");
#endif
}

static void look_at_cpu(struct sac_doctor *doc)
{
    static const char *const level_names[] = {"plain C", "AVX2", "AVX-512", "AVX-512 with VNNI"};
    char                     line[256], features[128], *model = NULL;
    if (sac_first_line("/proc/cpuinfo", "model name", line, sizeof line))
        model = strchr(line, ':');
    cpu_features(features, sizeof features);
    sac_doctor_find(
        doc, "cpu", SAC_FINDING_OK, NULL, "%s, %d CPUs for this process, %d used by default",
        model ? model + 2 : "unknown processor", sac_cpu_count(), sac_threads_default());
    enum sac_cpu_level level = sac_cpu_level();
    sac_doctor_find(doc, "cpu", level == SAC_CPU_REF ? SAC_FINDING_MISSING : SAC_FINDING_OK, NULL,
                    "features: %s; image and tensor code runs as %s",
                    *features ? features : "none known", level_names[level]);
}

/* ---- FFmpeg ---- */

struct codec_row {
    const char            *names[4]; /* one of them will do */
    const char            *what;
    enum sac_finding_level without;
};

static void version(char *buf, size_t size, const char *name, unsigned number)
{
    snprintf(buf, size, "%s %u.%u.%u", name, AV_VERSION_MAJOR(number), AV_VERSION_MINOR(number),
             AV_VERSION_MICRO(number));
}

static void look_for_codecs(struct sac_doctor *doc, const char *kind, const struct codec_row *rows,
                            size_t n, const AVCodec *(*by_name)(const char *name))
{
    char        have[256] = "";
    const char *mend = doc->has_apt ? "apt-get install libavcodec-extra" : NULL;
    for (size_t i = 0; i < n; i++) {
        const char *found = NULL;
        for (size_t j = 0; j < SAC_COUNT(rows[i].names) && rows[i].names[j] && !found; j++)
            found = by_name(rows[i].names[j]) ? rows[i].names[j] : NULL;
        if (found)
            append(have, sizeof have, ", ", found);
    }
    sac_doctor_find(doc, "ffmpeg", *have ? SAC_FINDING_OK : SAC_FINDING_FAULT, *have ? NULL : mend,
                    "%s: %s", kind, *have ? have : "none");
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t j = 0; j < SAC_COUNT(rows[i].names) && rows[i].names[j]; j++)
            found |= by_name(rows[i].names[j]) != NULL;
        if (!found)
            sac_doctor_find(doc, "ffmpeg", rows[i].without, mend, "no %s: %s", rows[i].names[0],
                            rows[i].what);
    }
}

static const AVCodec *decoder_by_name(const char *name)
{
    return avcodec_find_decoder_by_name(name);
}

static const AVCodec *encoder_by_name(const char *name)
{
    return avcodec_find_encoder_by_name(name);
}

static void look_at_ffmpeg(struct sac_doctor *doc)
{
    static const struct codec_row decoders[] = {
        {{"h264"}, "most cameras and files can't be read", SAC_FINDING_FAULT},
        {{"hevc"}, "H.265 video can't be read", SAC_FINDING_MISSING},
        {{"libdav1d", "libaom-av1"}, "AV1 video can't be read", SAC_FINDING_MISSING},
        {{"vp9", "libvpx-vp9"}, "VP9 video can't be read", SAC_FINDING_MISSING},
        {{"mpeg4"}, "MPEG-4 part 2 video can't be read", SAC_FINDING_MISSING},
        {{"mjpeg"}, "JPEG pictures and motion JPEG can't be read", SAC_FINDING_MISSING},
        {{"png"}, "PNG pictures can't be read", SAC_FINDING_MISSING},
    };
    static const struct codec_row encoders[] = {
        {{"libx264", "libopenh264"},
         "annotated videos are MPEG-4 part 2, which browsers do not play",
         SAC_FINDING_MISSING},
        {{"mpeg4"}, "no encoder to fall back on", SAC_FINDING_NOTE},
    };
    char format[48], codec[48];
    version(format, sizeof format, "libavformat", avformat_version());
    version(codec, sizeof codec, "libavcodec", avcodec_version());
    sac_doctor_find(doc, "ffmpeg", SAC_FINDING_OK, NULL, "FFmpeg %s: %s, %s; %s", av_version_info(),
                    format, codec, avcodec_license());
    look_for_codecs(doc, "decoders", decoders, SAC_COUNT(decoders), decoder_by_name);
    look_for_codecs(doc, "encoders", encoders, SAC_COUNT(encoders), encoder_by_name);
    bool rtsp = av_find_input_format("rtsp") != NULL;
    sac_doctor_find(doc, "ffmpeg", rtsp ? SAC_FINDING_OK : SAC_FINDING_MISSING, NULL,
                    rtsp ? "RTSP cameras can be opened" : "this FFmpeg was built without RTSP");
}

static void look_for_capture(struct sac_doctor *doc)
{
    const char *why = sac_capture_missing();
    if (why)
        sac_doctor_find(doc, "ffmpeg", SAC_FINDING_NOTE,
                        doc->has_apt
                            ? "apt-get install libavdevice" AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR)
                            : NULL,
                        "no webcams: %s", why);
    else
        sac_doctor_find(doc, "ffmpeg", SAC_FINDING_OK, NULL,
                        "webcams can be opened, as /dev/video0");
}

/* ---- the engine's fast kernels ---- */

/* A device in a context that does not log: the doctor reports, not the engine. */
static void look_at_kernels(struct sac_doctor *doc)
{
    sac_context *quiet = NULL;
    sac_device  *dev = NULL;
    int          count = 0;
    sac_result   res = sac_context_create(NULL, &quiet);
    if (res == SAC_OK)
        res = sac_device_open(quiet, "cpu", NULL, &dev);
    const struct sac_kernel_provider *const *list =
        res == SAC_OK ? sac_kernel_providers(dev, &count) : NULL;
    const char *missing = dev ? sac_kernel_plugin_missing(dev) : NULL;
    if (list && !missing)
        sac_doctor_find(doc, "onednn", SAC_FINDING_OK, NULL,
                        "%s runs convolutions and matrix products", list[0]->name);
    else
        sac_doctor_find(
            doc, "onednn", SAC_FINDING_MISSING,
            doc->has_apt ? "apt-get install libdnnl-dev && meson setup --reconfigure build && "
                           "ninja -C build"
                         : NULL,
            "no plug-in (%s): networks run slower", missing ? missing : "no CPU device");
    sac_device_unref(&dev);
    sac_context_destroy(&quiet);
}

/* ---- saccade's own models ---- */

struct models {
    struct sac_doctor *doc;
    char               missing[256];
};

static void look_at_model(void *user, const struct sac_shipped_model *model)
{
    struct models *models = user;
    if (model->path)
        sac_doctor_find(models->doc, "models", SAC_FINDING_OK, NULL, "%s: %s (%s)", model->name,
                        model->what, model->path);
    else
        append(models->missing, sizeof models->missing, ", ", model->name);
}

static void look_at_models(struct sac_doctor *doc)
{
    struct models models = {.doc = doc};
    char          places[768];
    sac_models_list(look_at_model, &models);
    sac_models_places(places, sizeof places);
    if (models.missing[0])
        sac_doctor_find(
            doc, "models", SAC_FINDING_MISSING, NULL,
            "not there: %s; set SACCADE_MODELS to the folder that has them (looked in %s)",
            models.missing, places);
}

void sac_doctor_run(sac_context *ctx, void (*fn)(void *user, const struct sac_finding *finding),
                    void        *user)
{
    if (!fn)
        return;
    struct sac_doctor doc = {.ctx = ctx, .fn = fn, .user = user};
#ifndef SAC_BUNDLE /* a package can't replace what is linked in */
    char line[8];
    doc.has_apt = sac_first_line("/etc/debian_version", NULL, line, sizeof line);
#endif
    look_at_cpu(&doc);
    look_at_ffmpeg(&doc);
    look_for_capture(&doc);
    look_at_kernels(&doc);
    look_at_models(&doc);
    struct sac_gpu_facts facts;
    sac_gpu_facts_find(&facts);
    sac_doctor_say_gpu(&doc, &facts);
}
