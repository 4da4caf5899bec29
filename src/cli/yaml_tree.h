/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into a YAML document, or into JSON, which is YAML too. */
#ifndef SAC_CLI_YAML_TREE_H
#define SAC_CLI_YAML_TREE_H

#include <stdbool.h>

#include <yaml.h>

/* Whole, or false: it can't be read, or is no YAML. Else deleted with yaml_document_delete. */
bool yaml_tree_read(const char *path, yaml_document_t *out);
/* NULL: of is no mapping, or has no such key. */
yaml_node_t *yaml_member(yaml_document_t *doc, yaml_node_t *of, const char *key);
/* The same for a scalar's text. */
const char *yaml_text(yaml_document_t *doc, yaml_node_t *of, const char *key);
/* NAN: there is no number. */
double yaml_number(yaml_document_t *doc, yaml_node_t *of, const char *key);

#endif
