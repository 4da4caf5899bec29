/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "heads/heads.h"

/* The 80 detection classes of COCO (Lin et al., 2014), in the order that detectors use. */
static const char *const coco_names[80] = {
    "person",        "bicycle",      "car",
    "motorcycle",    "airplane",     "bus",
    "train",         "truck",        "boat",
    "traffic light", "fire hydrant", "stop sign",
    "parking meter", "bench",        "bird",
    "cat",           "dog",          "horse",
    "sheep",         "cow",          "elephant",
    "bear",          "zebra",        "giraffe",
    "backpack",      "umbrella",     "handbag",
    "tie",           "suitcase",     "frisbee",
    "skis",          "snowboard",    "sports ball",
    "kite",          "baseball bat", "baseball glove",
    "skateboard",    "surfboard",    "tennis racket",
    "bottle",        "wine glass",   "cup",
    "fork",          "knife",        "spoon",
    "bowl",          "banana",       "apple",
    "sandwich",      "orange",       "broccoli",
    "carrot",        "hot dog",      "pizza",
    "donut",         "cake",         "chair",
    "couch",         "potted plant", "bed",
    "dining table",  "toilet",       "tv",
    "laptop",        "mouse",        "remote",
    "keyboard",      "cell phone",   "microwave",
    "oven",          "toaster",      "sink",
    "refrigerator",  "book",         "clock",
    "vase",          "scissors",     "teddy bear",
    "hair drier",    "toothbrush",
};

/* COCO's own numbers go from 1 to 90 and leave these out: networks that keep them have 91 classes.
 */
static const int coco_gaps[] = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83};

static int coco_number_of(int index)
{
    int number = index + 1;
    for (size_t i = 0; i < SAC_COUNT(coco_gaps); i++)
        number += number >= coco_gaps[i];
    return number;
}

int sac_coco_number(const char *name)
{
    for (int i = 0; i < (int)SAC_COUNT(coco_names); i++)
        if (!strcmp(name, coco_names[i]))
            return coco_number_of(i);
    return 0;
}

/* By COCO's own number; what the gaps are called is what published lists call them. */
static const char *coco_name_of_number(int number)
{
    for (int i = 0; i < (int)SAC_COUNT(coco_names); i++)
        if (coco_number_of(i) == number)
            return coco_names[i];
    return number ? "N/A" : "background";
}

/* Of networks that give a class for each pixel: the classes of Pascal VOC (Everingham et al.,
 * 2010), which torchvision's have too, Cityscapes (Cordts et al., 2016) and ADE20K (Zhou et al.,
 * 2017), in the order of their usual training. */
/* clang-format off: many names a row */
static const char *const voc_names[21] = {
    "background", "aeroplane", "bicycle",      "bird",  "boat",         "bottle", "bus",
    "car",        "cat",       "chair",        "cow",   "dining table", "dog",    "horse",
    "motorbike",  "person",    "potted plant", "sheep", "sofa",         "train",  "tv monitor",
};
static const char *const cityscapes_names[19] = {
    "road",         "sidewalk",   "building", "wall",       "fence",   "pole",  "traffic light",
    "traffic sign", "vegetation", "terrain",  "sky",        "person",  "rider", "car",
    "truck",        "bus",        "train",    "motorcycle", "bicycle",
};
static const char *const ade20k_names[150] = {
    "wall",
    "building",
    "sky",
    "floor",
    "tree",
    "ceiling",
    "road",
    "bed",
    "windowpane",
    "grass",
    "cabinet",
    "sidewalk",
    "person",
    "earth",
    "door",
    "table",
    "mountain",
    "plant",
    "curtain",
    "chair",
    "car",
    "water",
    "painting",
    "sofa",
    "shelf",
    "house",
    "sea",
    "mirror",
    "rug",
    "field",
    "armchair",
    "seat",
    "fence",
    "desk",
    "rock",
    "wardrobe",
    "lamp",
    "bathtub",
    "railing",
    "cushion",
    "base",
    "box",
    "column",
    "signboard",
    "chest of drawers",
    "counter",
    "sand",
    "sink",
    "skyscraper",
    "fireplace",
    "refrigerator",
    "grandstand",
    "path",
    "stairs",
    "runway",
    "case",
    "pool table",
    "pillow",
    "screen door",
    "stairway",
    "river",
    "bridge",
    "bookcase",
    "blind",
    "coffee table",
    "toilet",
    "flower",
    "book",
    "hill",
    "bench",
    "countertop",
    "stove",
    "palm",
    "kitchen island",
    "computer",
    "swivel chair",
    "boat",
    "bar",
    "arcade machine",
    "hovel",
    "bus",
    "towel",
    "light",
    "truck",
    "tower",
    "chandelier",
    "awning",
    "streetlight",
    "booth",
    "television receiver",
    "airplane",
    "dirt track",
    "apparel",
    "pole",
    "land",
    "bannister",
    "escalator",
    "ottoman",
    "bottle",
    "buffet",
    "poster",
    "stage",
    "van",
    "ship",
    "fountain",
    "conveyer belt",
    "canopy",
    "washer",
    "plaything",
    "swimming pool",
    "stool",
    "barrel",
    "basket",
    "waterfall",
    "tent",
    "bag",
    "minibike",
    "cradle",
    "oven",
    "ball",
    "food",
    "step",
    "tank",
    "trade name",
    "microwave",
    "pot",
    "animal",
    "bicycle",
    "lake",
    "dishwasher",
    "screen",
    "blanket",
    "sculpture",
    "hood",
    "sconce",
    "vase",
    "traffic light",
    "tray",
    "ashcan",
    "fan",
    "pier",
    "crt screen",
    "plate",
    "monitor",
    "bulletin board",
    "shower",
    "radiator",
    "glass",
    "clock",
    "flag",
};
/* clang-format on */

sac_result sac_contract_add_background(sac_context *ctx, struct sac_model_contract *contract)
{
    const size_t count = (size_t)contract->class_count;
    if (!count)
        return SAC_OK;
    char **names = sac_calloc(count + 1, sizeof *names);
    char  *background = sac_strdup("background");
    if (!names || !background) {
        sac_free(names);
        sac_free(background);
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for %zu class names", count + 1);
    }
    names[0] = background;
    memcpy(names + 1, contract->classes, count * sizeof *names);
    sac_free(contract->classes);
    contract->classes = names;
    contract->class_count++;
    return SAC_OK;
}

static char *default_matte_name(int class_id, int count)
{
    switch (count) {
    case 19: return sac_strdup(cityscapes_names[class_id]);
    case 21: return sac_strdup(voc_names[class_id]);
    case 150: return sac_strdup(ade20k_names[class_id]);
    default: return sac_asprintf("class %d", class_id);
    }
}

static char *default_name(int class_id, int count)
{
    if (count == 80)
        return sac_strdup(coco_names[class_id]);
    return count == 91 ? sac_strdup(coco_name_of_number(class_id))
                       : sac_asprintf("class %d", class_id);
}

sac_result sac_contract_default_classes(sac_context *ctx, struct sac_model_contract *contract,
                                        int count, bool mattes)
{
    if (contract->class_count || count < 1)
        return SAC_OK;
    contract->classes = sac_calloc((size_t)count, sizeof *contract->classes);
    if (!contract->classes)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for %d class names", count);
    contract->class_count = count;
    contract->classes_from = SAC_FROM_HEAD;
    for (int i = 0; i < count; i++) {
        contract->classes[i] = mattes ? default_matte_name(i, count) : default_name(i, count);
        if (!contract->classes[i])
            return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for %d class names", count);
    }
    return SAC_OK;
}
