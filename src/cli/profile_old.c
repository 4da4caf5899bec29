/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of an earlier profile, read as the YAML that it is too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "profile.h"

static yaml_node_t *member(yaml_document_t *doc, yaml_node_t *of, const char *key)
{
    if (!of || of->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = of->data.mapping.pairs.start; p < of->data.mapping.pairs.top; p++) {
        const yaml_node_t *name = yaml_document_get_node(doc, p->key);
        if (name->type == YAML_SCALAR_NODE &&
            strcmp((const char *)name->data.scalar.value, key) == 0)
            return yaml_document_get_node(doc, p->value);
    }
    return NULL;
}

static const char *text_of(yaml_document_t *doc, yaml_node_t *of, const char *key)
{
    const yaml_node_t *node = member(doc, of, key);
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

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

static void read_document(struct profile *p, yaml_document_t *doc)
{
    yaml_node_t *root = yaml_document_get_root_node(doc);
    yaml_node_t *stages = member(doc, root, "stages"), *latency = member(doc, root, "latency");
    const char  *format = text_of(doc, root, "format");
    if (!format || strcmp(format, "saccade-stats") != 0)
        return;
    add(p, "fps", "", text_of(doc, root, "fps"));
    add(p, "latency", "p50", text_of(doc, latency, "p50_ms"));
    add(p, "latency", "p99", text_of(doc, latency, "p99_ms"));
    if (stages && stages->type == YAML_SEQUENCE_NODE)
        for (yaml_node_item_t *i = stages->data.sequence.items.start;
             i < stages->data.sequence.items.top; i++) {
            yaml_node_t *stage = yaml_document_get_node(doc, *i);
            const char  *name = text_of(doc, stage, "name");
            add(p, name ? name : "", "p50", text_of(doc, stage, "p50_ms"));
            add(p, name ? name : "", "p99", text_of(doc, stage, "p99_ms"));
        }
    add(p, "rss_peak", "", text_of(doc, root, "rss_peak_bytes"));
}

int profile_read_old(struct profile *p, struct fault *fault)
{
    yaml_parser_t   parser;
    yaml_document_t doc;
    FILE           *file = fopen(p->against, "re");
    p->old_count = 0;
    if (!file)
        return fault_failure(fault, "--against '%s': it can't be opened", p->against);
    if (yaml_parser_initialize(&parser)) {
        yaml_parser_set_input_file(&parser, file);
        if (yaml_parser_load(&parser, &doc)) {
            read_document(p, &doc);
            yaml_document_delete(&doc);
        }
        yaml_parser_delete(&parser);
    }
    fclose(file);
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
