/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "verbs.h"

/* A sequence's pictures may be given one by one. */
enum { ARGUMENTS_MAX = 10000000 };

const struct verb verbs[] = {
    {"track", VERB_TRACK, "[INPUT...]", "find objects in a video and follow them",
     "INPUT is a video file, a folder of images or of videos, a list of images, a pattern "
     "(img%05d.jpg, 'imgs/*.jpg'), a NumPy array of frames (.npy: uint8, [N,H,W,3] in R, G, B or "
     "[N,H,W]), a URL such as rtsp://camera/1, a webcam (/dev/video0), or - for "
     "standard input. Several images are one sequence, in the given order. The detector finds "
     "objects in each frame; the tracker links them over time, with or without an appearance "
     "network, so that each object keeps its number. The models that come with saccade find "
     "persons; --detector and --reid take others. Several INPUTs are tracked at once and share "
     "the detector's batches. Each output option then names a folder, where files are named "
     "after the inputs (and after their folders too if two inputs have the same name), or a path "
     "with {name}, {folder}, {index} (from 1) or {stream} (from 0) in it; --detections names a "
     "folder with a NAME.txt for each input. An input that fails does not stop the others. "
     "'track' is also what runs if no verb is given. Output files are written under a temporary "
     "name and renamed when they are complete. Ctrl-C ends a run early, with complete files and "
     "status 130; a second Ctrl-C ends it at once and removes the incomplete files. If no output "
     "is given, NAME.tracks.jsonl is written in the current folder; the run fails if that file "
     "exists.",
     "saccade in.mp4 -o out.mp4\n"
     "saccade track in.mp4 --jsonl - | jq -c .tracks\n"
     "saccade track in.mp4 --detector person_det_fast --reid none --jsonl tracks.jsonl\n"
     "saccade track in.mp4 -o out.mp4 --detector yolox.onnx --classes car,bus\n"
     "saccade track a.mp4 b.mp4 c.mp4 --output out --jsonl out\n"
     "saccade track in.mp4 --csv tracks.csv --save-crops crops\n"
     "saccade track cam1/a.mp4 cam2/a.mp4 -o 'out/{folder}_{name}.mp4'\n"
     "saccade track --detections det.txt --fps 25 --tracker bytetrack --mot tracks.txt\n",
     0, ARGUMENTS_MAX, verb_track},
    {"segment", VERB_SEGMENT, "INPUT...", "cut people out of a video",
     "A matte of the people is made for each frame: 0 where nobody is, 255 inside a body, between "
     "them at edges such as hair. It follows the edges of the picture, and from frame to frame its "
     "motion. --as says what is written. The model that comes with saccade, person_seg, knows "
     "persons; --model takes other networks: class maps (DeepLabV3, SegFormer, LR-ASPP, BiSeNet), "
     "mattes (MODNet), recurrent ones, and instance networks (YOLO11-seg). INPUT is that of track; "
     "audio and times are kept.",
     "saccade segment in.mp4 -o out.mp4\n"
     "saccade segment in.mp4 -o mask.mkv --as mask --encoder ffv1\n"
     "saccade segment in.mp4 -o out.mp4 --as cutout --background beach.jpg\n"
     "saccade segment in.mp4 -o out.mp4 --as cutout --background blur\n"
     "saccade segment in.mp4 -o out.mov --as alpha\n"
     "saccade segment in.mp4 -o out.mp4 --as classes --model deeplabv3.onnx\n"
     "saccade segment in.mp4 -o out.mp4 --as alpha-packed --stereo sbs\n"
     "saccade segment in.mp4 --as none --verbose\n",
     1, ARGUMENTS_MAX, verb_segment},
    {"infer", VERB_INFER, "MODEL", "run a model on NumPy files",
     "Reads one .npy file for each input of an ONNX model, runs it, writes each output as "
     "DIR/NAME.npy and prints the minimum, median and 99th percentile time in milliseconds. Use it "
     "to compare a model with another runtime.",
     "saccade infer net.onnx --input x.npy --output out\n"
     "saccade infer net.onnx --input image=x.npy scale=s.npy --repeat 100 --threads 2\n",
     1, 1, verb_infer},
    {"bench", VERB_BENCH, "MODEL", "time a model, and each of its layers",
     "Runs an ONNX model, or one that comes with saccade, on random numbers and prints for each "
     "batch size the milliseconds of a run (median and best of up to nine rounds, by the device's "
     "own "
     "clock) and items a second. --layers adds a table of layers, the costliest first: time, bytes "
     "read and written as they are stored (weights too), arithmetic (2 a multiply-add; 1 an "
     "element "
     "where an operator does not multiply matrices), both as rates and as shares of what the "
     "device "
     "was measured to do at the start: the bandwidth of a copy of 256 MiB, and the rate of a large "
     "product by the engine's own kernel in the same precision. A layer is bound by launch, memory "
     "or matrix, whichever takes it longest at those rates. More than 100 % of the bandwidth means "
     "that the numbers lay in a cache. The first run plans; on a GPU it tries kernels and keeps "
     "the "
     "choice.",
     "saccade bench yolox.onnx --batch 1,8,32 --precision fp16 --layers\n"
     "saccade bench person_det --device cpu --threads 2 --json\n"
     "saccade bench net.onnx --shape image=1,3,640,640\n",
     1, 1, verb_bench},
    {"serve-bench", VERB_SERVE, "MODEL", "serve a model to many threads, and time the answers",
     "Serves an ONNX model, or one that comes with saccade, inside the program, as the library's "
     "sac_server does for others. First as many requests as it takes, one by one and in batches: "
     "the items a second of both. Then --clients threads submit requests at random times, "
     "--load of that rate together, with priorities in turn and a deadline, and for each priority "
     "the latency from submit to answer is printed (median, 95th and 99th percentile, longest), "
     "with the deadlines missed and how large the batches were. A request that is lost makes it "
     "fail.",
     "saccade serve-bench resnet50.onnx --clients 8 --load 0.9 --deadline 50\n"
     "saccade serve-bench person_det --device cpu --max-batch 4 --seconds 2 --json\n"
     "saccade serve-bench net.onnx --goal latency --goal-ms 5 --host-tensors\n",
     1, 1, verb_serve_bench},
    {"inspect", VERB_INSPECT, "FILE", "describe a video or a model",
     "For a video: container, codec, size, colour, frame rate, duration. For an ONNX model: "
     "inputs, outputs, operators and the kernel that runs each, parameters, arithmetic, the "
     "recognised head, and the preprocessing, each value with its source. A model that comes with "
     "saccade may be given by its name.",
     "saccade inspect in.mp4\n"
     "saccade inspect person_det\n"
     "saccade inspect yolox.onnx --json\n",
     1, 1, verb_inspect},
    {"build", VERB_BUILD, "MODEL", "quantise a model, or plan it for a GPU before its first run",
     "Plans an ONNX model, or one that comes with saccade, for a GPU and a range of batch sizes "
     "and "
     "sizes of images. The "
     "kernels are timed on that GPU and the fastest are chosen; the results are compared with the "
     "CPU's on random input; plan and model are written to one file, which can be used wherever a "
     "model can. Without a plan file the same happens at the first run of each shape, and the plan "
     "is kept in the user's cache (SACCADE_CACHE, else ~/.cache/saccade). A plan that no longer "
     "fits, for example after a driver update, is built again, and a log line says so. With "
     "--precision int8 (also on the CPU) or fp8 the model is quantised first, by the pictures of "
     "--calibrate; what it loses is printed, and beyond --max-loss nothing is written.",
     "saccade build yolox.onnx -o yolox.plan --precision fp16 --batch 1:8:16\n"
     "saccade build person_det --device cuda:1 --batch 1:16:32\n"
     "saccade build yolov8s.onnx --size 320x320:640x640:1280x1280\n"
     "saccade build person_det --device cpu --precision int8 --calibrate pictures/\n",
     1, 1, verb_build},
    {"eval", VERB_EVAL, "", "score tracks, or masks, against ground truth",
     "Prints HOTA, CLEAR MOT and Identity scores for each sequence and combined, as TrackEval "
     "computes them. Ground truth is a MOTChallenge file, a sequence's folder (gt.txt or "
     "gt/gt.txt, "
     "seqinfo.ini) or a folder of such folders; tracks are one file per sequence, in the same "
     "order, "
     "or a folder with a SEQUENCE.txt for each. With --masks it scores masks: IoU, boundary F "
     "(DAVIS'), for mattes the errors of alpha (SAD, MSE, gradient), with --video their flicker. "
     "Pictures belong together by name or by number; those on one side only are counted.",
     "saccade eval --gt MOT/PETS09-S2L1 --tracks tracks.txt\n"
     "saccade eval --gt MOT --tracks results --no-preprocess --json\n"
     "saccade eval --gt DAVIS/Annotations/480p --masks mattes --video DAVIS/JPEGImages/480p\n"
     "saccade eval --gt instances_val2017.json --masks results.json --json\n"
     "saccade eval --masks mattes.mkv --video in.mp4\n",
     0, 0, verb_eval},
    {"tune", VERB_TUNE, "", "search the tracker's parameters against ground truth",
     "Searches the parameters of --tracker for the best HOTA over the sequences of --gt, which are "
     "found as eval finds them. Boxes are read from each sequence's detections, or found once by "
     "the detector; then only the tracker runs, thousands of times. What is said about the gain is "
     "of sequences that the search did not see: each in turn is left out, searched without, and "
     "scored with what the others chose. A gain within noise leaves the parameters as they are, "
     "and says so. The YAML has the evidence in comments. Parameters that are given are where the "
     "search begins, and what it is compared with. Ctrl-C ends it with the best so far.",
     "saccade tune --gt MOT17/train -o tuned.yaml\n"
     "saccade track in.mp4 --config tuned.yaml\n"
     "saccade tune --gt MOT --tracker bytetrack --budget 600 --no-preprocess -o tuned.yaml\n",
     0, 0, verb_tune},
    {"profile", VERB_VIDEO | VERB_PROFILE, "INPUT...|MODEL",
     "run, and write a page of where the time goes",
     "Tracks, or with --task segment cuts people out, without writing the result, and writes a "
     "page "
     "that needs nothing else: what the run waited for and what would help, times of the stages, "
     "frames a second, latency, queues, batches, load and memory by owner over time, what each "
     "thread did in a part of the run, copies by reason, and the network's costliest steps. Beside "
     "it are the statistics (REPORT.json) and a trace for Perfetto (REPORT.trace.json). --against "
     "takes the JSON of an earlier one and compares. --stack samples the call stacks of all "
     "threads. "
     "Other options are those of track and segment; "
     "--head, --preprocess and --classes are "
     "track's. "
     "A MODEL in place of the input (or --model without one) runs by itself on random numbers, as "
     "bench runs it: a classifier, an embedding network, one with several inputs. The page has the "
     "time of a run at each --batch, and of the first of them the costliest steps; what bounds "
     "them and what would help; memory by owner. A detector or a segmenter is profiled on a video, "
     "or by itself with --task model.",
     "saccade profile in.mp4 -o report.html\n"
     "saccade profile in.mp4 -o new.html --against report.json\n"
     "saccade profile in.mp4 -o report.html --stack --sort memory\n"
     "saccade profile in.mp4 -o report.html --task segment --device cuda\n"
     "saccade profile resnet18.onnx -o report.html --batch 1,8 --shapes\n",
     0, ARGUMENTS_MAX, verb_profile},
    {"optimize", VERB_VIDEO | VERB_OPTIMIZE, "INPUT...",
     "search the settings that run an input best on this machine",
     "Runs track, or with --task segment that, over and over on a part of INPUT, each time as a "
     "process of its own with other settings: batch, threads, precision and frames that the "
     "network "
     "does not see where these are allowed, prefetch, queues, waits. What is better is measured "
     "again in turns with what was best; at the end default and best run in five turns, and the "
     "best is written as YAML only where it is better beyond noise, else the settings as they "
     "were. "
     "The YAML has the evidence in comments. Settings that are given are where the search begins, "
     "and what it is compared with. Ctrl-C ends it with the best so far; what was measured is kept "
     "in OUTPUT.runs then, for --resume. An --output that is not of an earlier search is not "
     "replaced. Other options are those of track and segment; "
     "--head, --preprocess and --classes are track's.",
     "saccade optimize in.mp4 -o tuned.yaml\n"
     "saccade track in.mp4 --config tuned.yaml\n"
     "saccade optimize cam1.mp4 cam2.mp4 -o tuned.yaml --goal latency --budget 600\n"
     "saccade optimize in.mp4 -o tuned.yaml --task segment --encode --detect-bottlenecks\n"
     "saccade optimize in.mp4 -o tuned.yaml --precisions fp32,fp16 --max-streams 64\n"
     "saccade optimize in.mp4 --dry-run\n",
     1, ARGUMENTS_MAX, verb_optimize},
    {"monitor", VERB_MONITOR, "", "watch the machine, its GPUs and runs of saccade",
     "Draws what they do now, on average over one and five minutes, and at least and most: load "
     "and "
     "memory of the machine; of each GPU, through NVML, also temperature, power, clocks, what "
     "slows "
     "it down, decoder, encoder, bytes over the bus and processes; of each run of this user frames "
     "a second, latency, time and memory of each stage, load of each kind of thread, and what its "
     "own monitor found: limits that were passed, growth like that of a leak, and figures that "
     "left their usual range, with the cause. Runs are seen while they are watched (--monitor, the "
     "default of track and segment). Ctrl-C ends it. docs/monitor.md has the figures.",
     "saccade monitor\n"
     "saccade monitor --once\n"
     "saccade monitor --json | jq -c '.runs[] | {pid, title}'\n",
     0, 0, verb_monitor},
    {"cache", VERB_CACHE, "[list|clear]", "list or clear what is kept on disk",
     "Lists the files in the cache's folder: boxes, embeddings, camera motion and prepared frames "
     "of clips (--disk-cache of track), and the plans and kernels that networks keep for a GPU; "
     "each with "
     "its size, and when it was last used. clear removes them, or with --older those that were not "
     "used for so many days. "
     "What saccade did not write is neither listed nor removed, and runs that use an entry go on. "
     "The folder is that of --disk-cache, else SACCADE_CACHE, else the user's cache folder. "
     "docs/cache.md has more.",
     "saccade cache\n"
     "saccade cache list --json | jq -c '.entries[]'\n"
     "saccade cache clear --older 30\n",
     0, 1, verb_cache},
    {"doctor", VERB_DOCTOR, "", "check what this machine has and what is missing",
     "Looks for what saccade can use on this machine: CPU features, FFmpeg and its codecs, the "
     "fast kernels, its models, a GPU. For what is missing it prints the command that installs it.",
     "saccade doctor\n", 0, 0, verb_doctor},
    {"config", VERB_TOOLS, "", "print a commented configuration with every key",
     "The output is a template for the file of --config, with the defaults of this build.",
     "saccade config > saccade.yaml\n", 0, 0, verb_config},
    {"completion", VERB_TOOLS, "bash|zsh", "print a shell's completion script",
     "Load it from the shell's start-up file.",
     "source <(saccade completion bash)\n"
     "saccade completion zsh > \"${fpath[1]}/_saccade\"\n",
     1, 1, verb_completion},
    {"man", VERB_TOOLS, "", "print the manual page as troff",
     "The installed manual page is the output of this verb.", "saccade man | man -l -\n", 0, 0,
     verb_man},
    {"help", VERB_TOOLS, "[VERB]", "print help for the program or a verb", "The same as --help.",
     "saccade help track\n", 0, 1, verb_help},
};
const size_t verb_count = sizeof verbs / sizeof verbs[0];

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < verb_count; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}
