/* SPDX-License-Identifier: Apache-2.0 */
/* Webcams and other capture devices: FFmpeg's libavdevice, opened at run time. Linked, it would
 * bring a hundred libraries (sound servers, OpenGL, X11) into every start of every program. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/thread.h"
#include "media/capture.h"

/* As FFmpeg calls them; a webcam is v4l2. */
static const char *const devices[] = {"v4l2",  "video4linux2", "x11grab", "lavfi",
                                      "fbdev", "kmsgrab",      "decklink"};

/* Both have had one number since FFmpeg 4. */
#define LIBRARY "libavdevice.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR)

/* "v4l2:/dev/video0" is on the device that has this name, which "/dev/video0" is without it; NULL:
 * neither. */
static const char *device_of(const char *url, const char **address)
{
    struct stat about;
    for (size_t i = 0; i < SAC_COUNT(devices); i++) {
        const size_t length = strlen(devices[i]);
        if (strncmp(url, devices[i], length) == 0 && url[length] == ':' && stat(url, &about) != 0) {
            *address = url + length + 1;
            return devices[i];
        }
    }
    *address = url;
    return strncmp(url, "/dev/video", 10) == 0 ? "v4l2" : NULL;
}

bool sac_capture_is(const char *url)
{
    const char *address;
    return device_of(url, &address) != NULL;
}

static char missing[256]; /* why there is no library; set once */

/* An FFmpeg that is linked statically does not see what the system's libavdevice registers. */
static void load(void)
{
#ifdef SAC_BUNDLE
    snprintf(missing, sizeof missing, "this build has no capture devices");
#else
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void (*register_all)(void) = NULL;
    if (library)
        *(void **)&register_all = dlsym(library, "avdevice_register_all");
    if (register_all)
        register_all();
    else
        snprintf(missing, sizeof missing, "%s is not there", LIBRARY);
#endif
}

const char *sac_capture_missing(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return missing[0] ? missing : NULL;
}

sac_result sac_capture_find(struct sac_input *in, const AVInputFormat **format,
                            const char **address)
{
    const char *name = device_of(in->url, address), *why = sac_capture_missing();
    if (why)
        return SAC_FAIL(in->ctx, SAC_ERR_UNSUPPORTED, "%s: webcams need FFmpeg's libavdevice: %s",
                        in->name, why);
    *format = av_find_input_format(name);
    return *format ? SAC_OK
                   : SAC_FAIL(in->ctx, SAC_ERR_UNSUPPORTED, "%s: this FFmpeg has no device '%s'",
                              in->name, name);
}
