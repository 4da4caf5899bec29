/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: networks from an ONNX file to results on a device. The layers above include this
 * header; each folder's own header tells its story.
 *
 * A network's way:
 * - onnx/ reads the file into a graph/ of values and nodes;
 * - ops/ infers shapes and folds constants, passes/ rewrite the graph into fewer, larger nodes;
 * - plan/ selects a kernel for each node, places memory and runs the steps. kernel/ is the contract
 *   with the kernels, which cpu/, onednn/ and cuda/ have;
 * - model/ keeps a plan for each set of input shapes.
 *
 * Arrows point down: graph < ops < onnx, kernel, passes; kernel < cpu, onednn, cuda; all of them <
 * plan < model. Read first: graph/graph.h, ops/op.h, kernel/kernel.h, plan/plan.h, model/model.h.
 */
#ifndef SAC_ENGINE_ENGINE_H
#define SAC_ENGINE_ENGINE_H

#include "engine/kernel/layout.h"
#include "engine/model/model.h"

#endif
