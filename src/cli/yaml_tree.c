/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml_tree.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool yaml_tree_read(const char *path, yaml_document_t *out)
{
    yaml_parser_t parser;
    bool          whole = false;
    FILE         *file = fopen(path, "re");
    if (file && yaml_parser_initialize(&parser)) {
        yaml_parser_set_input_file(&parser, file);
        whole = yaml_parser_load(&parser, out);
        yaml_parser_delete(&parser);
    }
    if (file)
        fclose(file);
    return whole;
}

yaml_node_t *yaml_member(yaml_document_t *doc, yaml_node_t *of, const char *key)
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

const char *yaml_text(yaml_document_t *doc, yaml_node_t *of, const char *key)
{
    const yaml_node_t *node = yaml_member(doc, of, key);
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

double yaml_number(yaml_document_t *doc, yaml_node_t *of, const char *key)
{
    const char  *text = yaml_text(doc, of, key);
    char        *end = NULL;
    const double value = text ? strtod(text, &end) : 0;
    return text && end != text && !*end ? value : (double)NAN;
}
