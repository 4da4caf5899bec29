/* SPDX-License-Identifier: Apache-2.0 */
/* Producers, uses and readers of a graph's values. */
#ifndef SAC_ENGINE_GRAPH_LINKS_H
#define SAC_ENGINE_GRAPH_LINKS_H

#include "engine/graph/graph.h"

/* Sets them all. The nodes are those that the outputs need. */
sac_result sac_graph_link(struct sac_graph *g);

#endif
