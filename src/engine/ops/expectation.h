/* SPDX-License-Identifier: Apache-2.0 */
/* Expectation(X, W, M?, R?), of the domain "saccade": the mean of W [K] by the shares of a softmax
 * over each K neighbouring channels of X [N,G K,spatial...]: [N,G,spatial...].
 *
 * With M [C,G + 1,pixels], G up to SAC_EXPECTATION_MEANS, channel c of a pixel is M[c,G] and the
 * sum of the means g times M[c,g] instead: so the distances to a box's sides become the box.
 * R [N,D,spatial...] follows as D more channels, activated: the classes of the same cells.
 * Attributes activation, alpha, beta are R's. */
#ifndef SAC_ENGINE_OPS_EXPECTATION_H
#define SAC_ENGINE_OPS_EXPECTATION_H

enum { SAC_EXPECTATION_MEANS = 4 };

#endif
