/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of an earlier profile, read as the YAML that it is too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile.h"
#include "yaml_tree.h"

static void add(struct profile *p, const char *name, const char *what, const char *text)
{
    char *end;
    if (!text || p->old_count == PROFILE_OLD_MAX)
        return;
    struct profile_old *old = &p->old[p->old_count];
    old->value = strtod(text, &end);
    if (end == text)
        return;
    snprintf(old->name, sizeof old->name, "%.32s%s%.16s", name, *what ? " " : "", what);
    p->old_count++;
}

static void read_model(struct profile *p, yaml_document_t *doc)
{
    yaml_node_t *root = yaml_document_get_root_node(doc), *runs = yaml_member(doc, root, "runs");
    p->old_model = true;
    if (runs && runs->type == YAML_SEQUENCE_NODE)
        for (yaml_node_item_t *i = runs->data.sequence.items.start;
             i < runs->data.sequence.items.top; i++) {
            yaml_node_t *run = yaml_document_get_node(doc, *i);
            const char  *batch = yaml_text(doc, run, "batch");
            char         name[32];
            snprintf(name, sizeof name, "batch %.16s", batch ? batch : "");
            add(p, name, "p50", yaml_text(doc, run, "p50_ms"));
            add(p, name, "p99", yaml_text(doc, run, "p99_ms"));
        }
    add(p, "rss_peak", "", yaml_text(doc, root, "rss_peak_bytes"));
}

static void read_document(struct profile *p, yaml_document_t *doc)
{
    yaml_node_t *root = yaml_document_get_root_node(doc);
    yaml_node_t *stages = yaml_member(doc, root, "stages"),
                *latency = yaml_member(doc, root, "latency");
    const char *format = yaml_text(doc, root, "format");
    if (format && strcmp(format, PROFILE_MODEL_FORMAT) == 0)
        read_model(p, doc);
    if (!format || strcmp(format, "saccade-stats") != 0)
        return;
    const char *segmenter = yaml_text(doc, root, "segmenter"),
               *detector = yaml_text(doc, root, "detector");
    p->old_model = false;
    snprintf(p->old_network, sizeof p->old_network, "%s",
             segmenter && strcmp(segmenter, "null") != 0 ? segmenter
             : detector && strcmp(detector, "null") != 0 ? detector
                                                         : "");
    add(p, "fps", "", yaml_text(doc, root, "fps"));
    add(p, "latency", "p50", yaml_text(doc, latency, "p50_ms"));
    add(p, "latency", "p99", yaml_text(doc, latency, "p99_ms"));
    if (stages && stages->type == YAML_SEQUENCE_NODE)
        for (yaml_node_item_t *i = stages->data.sequence.items.start;
             i < stages->data.sequence.items.top; i++) {
            yaml_node_t *stage = yaml_document_get_node(doc, *i);
            const char  *name = yaml_text(doc, stage, "name");
            add(p, name ? name : "", "p50", yaml_text(doc, stage, "p50_ms"));
            add(p, name ? name : "", "p99", yaml_text(doc, stage, "p99_ms"));
        }
    add(p, "rss_peak", "", yaml_text(doc, root, "rss_peak_bytes"));
}

int profile_read_old(struct profile *p, struct fault *fault)
{
    yaml_document_t doc;
    p->old_count = 0;
    if (access(p->against, R_OK) != 0)
        return fault_failure(fault, "--against '%s': it can't be opened", p->against);
    if (yaml_tree_read(p->against, &doc)) {
        read_document(p, &doc);
        yaml_document_delete(&doc);
    }
    if (p->old_count && p->old_model != (p->model.path != NULL))
        return fault_failure(fault, "--against '%s': it is of %s, and this is of %s", p->against,
                             p->old_model ? "a model by itself" : "a run over inputs",
                             p->old_model ? "a run over inputs" : "a model by itself");
    return p->old_count ? STATUS_OK
                        : fault_failure(fault,
                                        "--against '%s': it is not the JSON of a profile, or of "
                                        "--stats",
                                        p->against);
}

double profile_figure(const struct profile *p, const char *name)
{
    const struct sac_pipeline_stats *s = &p->stats;
    char                             full[64];
    if (strcmp(name, "fps") == 0)
        return s->fps;
    if (strcmp(name, "rss_peak") == 0)
        return (double)s->rss_peak_bytes;
    for (int i = -1; i < s->stage_count; i++) {
        const struct sac_timer_summary *t = i < 0 ? &s->latency : &s->stage[i];
        snprintf(full, sizeof full, "%s p50", t->name);
        if (t->count && strcmp(full, name) == 0)
            return t->p50_ms;
        snprintf(full, sizeof full, "%s p99", t->name);
        if (t->count && strcmp(full, name) == 0)
            return t->p99_ms;
    }
    return NAN;
}
