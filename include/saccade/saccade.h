/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of saccade: video in, tracks and masks out. */
#ifndef SACCADE_SACCADE_H
#define SACCADE_SACCADE_H

#include <saccade/context.h>
#include <saccade/device.h>
#include <saccade/doctor.h>
#include <saccade/eval.h>
#include <saccade/files.h>
#include <saccade/frame.h>
#include <saccade/head.h>
#include <saccade/image.h>
#include <saccade/model.h>
#include <saccade/models.h>
#include <saccade/pipeline.h>
#include <saccade/result.h>
#include <saccade/sink.h>
#include <saccade/source.h>
#include <saccade/stats.h>
#include <saccade/tensor.h>
#include <saccade/timer.h>
#include <saccade/track.h>

#endif
