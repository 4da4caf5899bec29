/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of saccade: video in, tracks out.
 *
 * Begin with context.h (messages and errors) and pipeline.h: sac_pipeline does the main job in one
 * call, sac_session takes frames from the program. Their parts can be used alone: source.h gives
 * frames, head.h finds boxes and computes embeddings, track.h follows objects, image.h draws,
 * sink.h writes a video, eval.h scores tracks and masks. A network of your own: device.h, tensor.h
 * and model.h, with frame.h and image.h for its pixels, and dlpack.h for tensors of others;
 * server.h runs it for many threads, in batches. About a run: stats.h, timer.h, monitor.h,
 * doctor.h. What can fail returns a result (result.h).
 *
 * A program that was built with these headers runs with later libraries of the same soname. Structs
 * that a program allocates end in `reserved`, and later fields take their place there, so sizes and
 * offsets stay. `reserved` is 0, as every ..._params_default() returns it, and 0 in a later field
 * means what the library did before it had that field. A library that is older than the program's
 * headers refuses parameters with a field that it does not have: SAC_ERR_ARG. Structs without
 * `reserved` (a box, a track, a colour) stay as they are. */
#ifndef SACCADE_SACCADE_H
#define SACCADE_SACCADE_H

#include <saccade/cache.h>
#include <saccade/calibration.h>
#include <saccade/context.h>
#include <saccade/device.h>
#include <saccade/dlpack.h>
#include <saccade/doctor.h>
#include <saccade/eval.h>
#include <saccade/files.h>
#include <saccade/frame.h>
#include <saccade/head.h>
#include <saccade/image.h>
#include <saccade/model.h>
#include <saccade/models.h>
#include <saccade/monitor.h>
#include <saccade/pipeline.h>
#include <saccade/result.h>
#include <saccade/segment.h>
#include <saccade/server.h>
#include <saccade/sink.h>
#include <saccade/source.h>
#include <saccade/stacks.h>
#include <saccade/stats.h>
#include <saccade/tensor.h>
#include <saccade/timer.h>
#include <saccade/track.h>

#endif
