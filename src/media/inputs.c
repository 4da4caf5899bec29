/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "media/media.h"

/* The first that claims the address reads it. */
static const struct sac_input_ops *const inputs[] = {
    &sac_input_images,    /* a folder, a printf pattern, one image */
    &sac_input_array,     /* a .npy file */
    &sac_input_container, /* all that libavformat opens, and standard input */
};

const char *sac_input_path(const char *url)
{
    return strncmp(url, "file:", 5) == 0 ? url + 5 : url;
}

sac_result sac_input_open(struct sac_input *in)
{
    in->video = avcodec_parameters_alloc();
    if (!in->video)
        return SAC_FAIL(in->ctx, SAC_ERR_MEMORY, "%s: no memory", in->name);
    for (size_t i = 0; i < SAC_COUNT(inputs) && !in->ops; i++)
        if (inputs[i]->claims(in->url))
            in->ops = inputs[i];
    if (in->params->picture_count > 0)
        in->ops = &sac_input_images;
    return in->ops->open(in);
}

void sac_input_close(struct sac_input *in)
{
    if (in->ops)
        in->ops->close(in);
    avcodec_parameters_free(&in->video);
    *in = (struct sac_input){0};
}
