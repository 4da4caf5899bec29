/* SPDX-License-Identifier: Apache-2.0 */
#include "counterparts.h"

static const char input_stands_alone[] = "the input needs no option: saccade in.mp4, "
                                         "rtsp://camera/1 or /dev/video0";
static const char no_window[] = "nothing is shown on screen; --output writes the annotated video";
static const char named_by_outputs[] =
    "each output option names its file or folder: -o out/ --jsonl out/";
static const char input_size[] =
    "only for a model with an open input size; other models have a fixed one";
static const char replaced[] =
    "outputs replace existing files without asking; only pictures of mattes need a folder that has "
    "none yet";
static const char written_at_once[] =
    "results are written frame by frame anyway; --jsonl - prints them";
static const char quantised_first[] =
    "saccade build MODEL --precision int8 --calibrate PICTURES makes a quantised plan";

const struct counterpart counterparts[] = {
    {"source", NULL, input_stands_alone},
    {"input", NULL, input_stands_alone},
    {"video", NULL, input_stands_alone},
    {"path", NULL, input_stands_alone},
    {"i", NULL, input_stands_alone},
    {"webcam", NULL, input_stands_alone},
    {"camera", NULL, input_stands_alone},
    {"show", NULL, no_window},
    {"view", NULL, no_window},
    {"view-img", NULL, no_window},
    {"show-vid", NULL, no_window},
    {"display", NULL, no_window},
    {"visualize", NULL, no_window},

    {"save", "output FILE", NULL},
    {"save-vid", "output FILE", NULL},
    {"save-video", "output FILE", NULL},
    {"save-img", "output FILE", NULL},
    {"save-result", "output FILE", NULL},
    {"out", "output FILE", NULL},
    {"output-dir", "output FOLDER/", NULL},
    {"out-dir", "output FOLDER/", NULL},
    {"outdir", "output FOLDER/", NULL},
    {"save-dir", "output FOLDER/", NULL},
    {"project", NULL, named_by_outputs},
    {"name", NULL, named_by_outputs},
    {"save-txt", "mot FILE", NULL},
    {"save-conf", "mot FILE", "it includes the scores"},
    {"txt", "mot FILE", NULL},
    {"save-json", "jsonl FILE", NULL},
    {"json", "jsonl FILE", NULL},
    {"exist-ok", NULL, replaced},
    {"overwrite", NULL, replaced},
    {"y", NULL, replaced},

    {"conf", "score-min SCORE", NULL},
    {"conf-thres", "score-min SCORE", NULL},
    {"conf-threshold", "score-min SCORE", NULL},
    {"confidence", "score-min SCORE", NULL},
    {"threshold", "score-min SCORE", NULL},
    {"score-thr", "score-min SCORE", NULL},
    {"score-threshold", "score-min SCORE", NULL},
    {"iou", "nms-iou IOU", NULL},
    {"iou-thres", "nms-iou IOU", NULL},
    {"nms", "nms-iou IOU", NULL},
    {"nms-thres", "nms-iou IOU", NULL},
    {"agnostic-nms", NULL,
     "boxes of different classes never suppress each other; --nms-iou applies within a class"},
    {"max-det", "boxes-max N", NULL},
    {"weights", "detector MODEL", NULL},
    {"weight", "detector MODEL", NULL},
    {"model", "detector MODEL", NULL},
    {"yolo-model", "detector MODEL", NULL},
    {"yolo-weights", "detector MODEL", NULL},
    {"onnx", "detector MODEL", NULL},
    {"ckpt", "detector MODEL", "as an ONNX file"},
    {"imgsz", "preprocess size=640x640", input_size},
    {"img-size", "preprocess size=640x640", input_size},
    {"img", "preprocess size=640x640", input_size},
    {"tsize", "preprocess size=640x640", input_size},
    {"reid-model", "reid MODEL", NULL},
    {"reid-weights", "reid MODEL", NULL},
    {"with-reid", "reid MODEL", NULL},

    {"tracking-method", "tracker NAME", NULL},
    {"track-thresh", "score-high SCORE", NULL},
    {"track-high-thresh", "score-high SCORE", NULL},
    {"track-low-thresh", "score-low SCORE", NULL},
    {"new-track-thresh", "score-new SCORE", NULL},
    {"track-buffer", "lost-max SECONDS", NULL},
    {"max-age", "lost-max SECONDS", NULL},
    {"min-hits", "confirm SECONDS", NULL},
    {"match-thresh", "match-iou IOU", NULL},
    {"appearance-thresh", "reid-distance DISTANCE", NULL},
    {"gmc-method", "no-camera-motion", "switches it off"},

    {"gpu", "device cuda", "or cuda:N; --gpus 0,1 for several"},
    {"cuda", "device cuda", NULL},
    {"cpu", "device cpu", NULL},
    {"half", "precision fp16", NULL},
    {"fp16", "precision fp16", NULL},
    {"fp32", "precision fp32", NULL},
    {"int8", NULL, quantised_first},
    {"batch", "max-batch N", NULL},
    {"batch-size", "max-batch N", NULL},
    {"workers", "threads N", NULL},
    {"num-workers", "threads N", NULL},
    {"jobs", "threads N", NULL},
    {"stream", NULL, written_at_once},
    {"stream-buffer", NULL, "every frame of a file is used; --realtime reads it like a camera"},
    {"vid-stride", "every N", NULL},
    {"frame-skip", "every N", NULL},
    {"skip-frames", "every N", NULL},
    {"stride", "every N", NULL},
    {"skip", "every N", "or --start TIME to begin later"},
    {"ss", "start TIME", NULL},
    {"seek", "start TIME", NULL},
    {"to", "duration TIME", "counted from --start"},
    {"end", "duration TIME", "counted from --start"},
    {"limit", "duration TIME", NULL},
    {"max-frames", "duration TIME", NULL},
    {"vframes", "duration TIME", NULL},
    {"c:v", "encoder NAME", NULL},
    {"codec", "encoder NAME", NULL},
    {"fourcc", "encoder NAME", NULL},
    {"an", "no-audio", NULL},
    {"silent", "quiet", NULL},
    {"log", "log-level LEVEL", NULL},
    {"debug", "verbose", NULL},
    {"benchmark", "stats FILE", NULL},
    {"profile", "trace FILE", NULL},
    {"cfg", "config FILE", NULL},
};
const size_t counterpart_count = sizeof counterparts / sizeof counterparts[0];

static int is_same(const char *typed, const char *word)
{
    while (*typed && (*typed == *word || (*typed == '_' && *word == '-'))) {
        typed++;
        word++;
    }
    return !*typed && !*word;
}

const struct counterpart *counterpart_find(const char *word)
{
    for (size_t i = 0; i < counterpart_count; i++)
        if (is_same(word, counterparts[i].word))
            return &counterparts[i];
    return NULL;
}
