/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "verbs.h"

/* Pictures may be given one by one. */
enum { ARGUMENTS_MAX = 10000000 };

const struct verb verbs[] = {
    {"track", VERB_TRACK, "[INPUT...]", "find objects in a video and follow them",
     "INPUT is a video file, a folder of images or of videos, pictures, a pattern (img%05d.jpg, 'imgs/*.jpg'), a URL "
     "such as rtsp://camera/1, a webcam (/dev/video0), or - for standard input. Several pictures are one sequence, in their order. Each frame goes through the detector, boxes are "
     "joined over time by the tracker, with or without an appearance network, and every object "
     "keeps its number. Models that come with saccade find persons; --detector and --reid take "
     "others. Several INPUTs are tracked at once, in batches over all of them: --output, --jsonl, "
     "--mot and the other outputs then name folders, in which files take the inputs' names, with the folder's before where two have one, "
     "or paths with {name}, {folder}, {index} (from 1) or {stream} (from 0) in them (--detections names a folder that "
     "holds NAME.txt for each); an input that fails does not stop the "
     "others. 'track' is what happens without a verb too. Output files are written under "
     "a temporary name and renamed when they are whole; Ctrl-C ends a run early with whole files "
     "and status 130, a second Ctrl-C at once, and "
     "without the files that are not whole. Without any output NAME.tracks.jsonl is written in the current folder, "
     "unless it is there.",
     "saccade in.mp4 -o out.mp4\n"
     "saccade track in.mp4 --jsonl - | jq -c .tracks\n"
     "saccade track in.mp4 --detector person_det_fast --reid none --jsonl tracks.jsonl\n"
     "saccade track in.mp4 -o out.mp4 --detector yolox.onnx --classes car,bus\n"
     "saccade track a.mp4 b.mp4 c.mp4 --output out --jsonl out\n"
     "saccade track in.mp4 --csv tracks.csv --save-crops crops\n"
     "saccade track cam1/a.mp4 cam2/a.mp4 -o 'out/{folder}_{name}.mp4'\n"
     "saccade track --detections det.txt --fps 25 --tracker bytetrack --mot tracks.txt\n",
     0, ARGUMENTS_MAX, verb_track},
    {"infer", VERB_INFER, "MODEL", "run a model on NumPy files",
     "Reads one .npy file for each input of an ONNX model, runs it, writes each output as "
     "DIR/NAME.npy and prints the least, median and 99th percentile time in milliseconds: the way to check a model "
     "against another runtime.",
     "saccade infer net.onnx --input x.npy --output out\n"
     "saccade infer net.onnx --input image=x.npy scale=s.npy --repeat 100 --threads 2\n",
     1, 1, verb_infer},
    {"inspect", VERB_INSPECT, "FILE", "say what a video or a model is",
     "Of a video: container, codec, size, colour, frame rate, duration. Of an ONNX model: inputs, "
     "outputs, operators with the kernel that runs each, parameters, arithmetic, the head it was "
     "recognised as, and how pixels enter it, each value with its source. A model that comes with "
     "saccade is known by its name.",
     "saccade inspect in.mp4\n"
     "saccade inspect person_det\n"
     "saccade inspect yolox.onnx --json\n",
     1, 1, verb_inspect},
    {"build", VERB_BUILD, "MODEL", "plan a model for a GPU ahead of its first run",
     "Plans an ONNX model, or one that comes with saccade, for a GPU and a range of batches: its kernels are "
     "tried on that GPU and the best are taken, the results are checked against the CPU's on random input, "
     "and plan and model are written to one file, which goes wherever a model does. Without it the same "
     "happens at the first run of each shape and is kept in the user's cache (SACCADE_CACHE, else "
     "~/.cache/saccade). A plan that does not fit any more, after an update of the driver, say, is made "
     "anew, and it is said.",
     "saccade build yolox.onnx -o yolox.plan --precision fp16 --batch 1:8:16\n"
     "saccade build person_det --device cuda:1 --batch 1:16:32\n",
     1, 1, verb_build},
    {"eval", VERB_EVAL, "", "score tracks against ground truth",
     "Prints HOTA, CLEAR MOT and Identity scores for each sequence and combined, as TrackEval "
     "computes them. Ground truth is a MOTChallenge file, a sequence's folder (gt.txt or gt/gt.txt, "
     "seqinfo.ini) or a folder of such folders; tracks are one file for each, in the same order, or "
     "a folder that holds SEQUENCE.txt.",
     "saccade eval --gt MOT/PETS09-S2L1 --tracks tracks.txt\n"
     "saccade eval --gt MOT --tracks results --no-preprocess --json\n",
     0, 0, verb_eval},
    {"doctor", VERB_DOCTOR, "", "say what this machine has and what is missing",
     "Looks for what saccade can use on this machine: CPU features, FFmpeg and its codecs, the "
     "fast kernels, its models, a GPU. What is missing comes with the command that mends it.",
     "saccade doctor\n", 0, 0, verb_doctor},
    {"config", VERB_TOOLS, "", "print the commented configuration with every key",
     "The template of the file for --config, with the defaults of this build.",
     "saccade config > saccade.yaml\n", 0, 0, verb_config},
    {"completion", VERB_TOOLS, "bash|zsh", "print a shell's completion script",
     "Load it from the shell's start-up file.",
     "source <(saccade completion bash)\n"
     "saccade completion zsh > \"${fpath[1]}/_saccade\"\n", 1, 1, verb_completion},
    {"man", VERB_TOOLS, "", "print the manual page as troff",
     "The installed page is made by this verb.", "saccade man | man -l -\n", 0, 0, verb_man},
    {"help", VERB_TOOLS, "[VERB]", "print help for the program or a verb",
     "The same as --help.", "saccade help track\n", 0, 1, verb_help},
};
const size_t verb_count = sizeof verbs / sizeof verbs[0];

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < verb_count; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}
