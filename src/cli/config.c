/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "../base/nearest.h"
#include "config.h"
#include "term.h"
#include "wrap.h"

enum { KEY_MAX = 128 };

struct reader {
    struct settings *settings;
    const char      *name; /* of the file */
    yaml_document_t  document;
    bool            *seen; /* [option_count] */
    struct fault    *fault;
};

static unsigned long line_of(const yaml_node_t *node)
{
    return (unsigned long)node->start_mark.line + 1;
}

static bool is_section(const char *key)
{
    size_t length = strlen(key);
    for (size_t i = 0; i < option_count; i++)
        if (options[i].key && strncmp(options[i].key, key, length) == 0 &&
            options[i].key[length] == '.')
            return true;
    return false;
}

static int unknown_key(struct reader *reader, const yaml_node_t *node, const char *key)
{
    struct sac_nearest best = {0};
    for (size_t i = 0; i < option_count; i++)
        if (options[i].key)
            sac_nearest_offer(&best, key, options[i].key);
    if (best.word)
        return fault_usage(reader->fault, "%s:%lu: unknown key '%s'; did you mean '%s'?",
                           reader->name, line_of(node), key, best.word);
    return fault_usage(reader->fault, "%s:%lu: unknown key '%s'; 'saccade config' prints all keys",
                       reader->name, line_of(node), key);
}

/* A scalar's text, owned by the settings; NULL with a fault if the node is not a scalar. */
static const char *scalar_text(struct reader *reader, const yaml_node_t *node, const char *key)
{
    const char *text = NULL;
    if (node->type != YAML_SCALAR_NODE) {
        fault_usage(reader->fault, "%s:%lu: %s takes one value, not a %s", reader->name,
                    line_of(node), key, node->type == YAML_MAPPING_NODE ? "mapping" : "list");
    } else if (memchr(node->data.scalar.value, '\0', node->data.scalar.length)) {
        fault_usage(reader->fault, "%s:%lu: %s: the text contains a zero byte", reader->name,
                    line_of(node), key);
    } else {
        text = settings_hold(reader->settings, (const char *)node->data.scalar.value);
        if (!text)
            fault_usage(reader->fault, "%s: out of memory", reader->name);
    }
    return text;
}

static int set_scalar(struct reader *reader, const struct option *option, const yaml_node_t *node)
{
    char        place[512];
    const char *text = scalar_text(reader, node, option->key);
    if (!text)
        return STATUS_USAGE;
    snprintf(place, sizeof place, "%.300s:%lu: %s", reader->name, line_of(node), option->key);
    return option_set(reader->settings, option, text, place, reader->fault);
}

static int set_option(struct reader *reader, const struct option *option, const yaml_node_t *key,
                      const yaml_node_t *node)
{
    bool *seen = &reader->seen[option - options];
    if (*seen)
        return fault_usage(reader->fault, "%s:%lu: key '%s' appears a second time", reader->name,
                           line_of(key), option->key);
    *seen = true;
    if (option->type != OPTION_LIST || node->type != YAML_SEQUENCE_NODE)
        return set_scalar(reader, option, node);
    int status = STATUS_OK;
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top && status == STATUS_OK; item++)
        status = set_scalar(reader, option, yaml_document_get_node(&reader->document, *item));
    return status;
}

static void tell_renamed(const struct reader *reader, const yaml_node_t *node, const char *old,
                         const char *now)
{
    char line[512];
    snprintf(line, sizeof line, "%.300s:%lu: the key '%s' is '%s' now", reader->name, line_of(node),
             old, now);
    term_line(line);
}

static int read_mapping(struct reader *reader, const yaml_node_t *node, const char *section);

static int read_pair(struct reader *reader, const char *section, const yaml_node_t *key,
                     const yaml_node_t *value)
{
    char path[KEY_MAX];
    if (key->type != YAML_SCALAR_NODE)
        return fault_usage(reader->fault, "%s:%lu: a key must be a word", reader->name,
                           line_of(key));
    snprintf(path, sizeof path, "%s%s%.60s", section, *section ? "." : "",
             (const char *)key->data.scalar.value);
    const char          *now = option_renamed(path);
    const struct option *option = option_find_key(now ? now : path);
    if (now)
        tell_renamed(reader, key, path, now);
    if (option)
        return set_option(reader, option, key, value);
    if (!is_section(path))
        return unknown_key(reader, key, path);
    /* Keys have two levels, so a section inside a section is an unknown key: this ends. */
    return read_mapping(reader, value, path);
}

static int read_mapping(struct reader *reader, const yaml_node_t *node, const char *section)
{
    int status = STATUS_OK;
    if (node->type != YAML_MAPPING_NODE)
        return fault_usage(reader->fault, "%s:%lu: %s%sexpected 'key: value' lines", reader->name,
                           line_of(node), section, *section ? ": " : "");
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top && status == STATUS_OK; pair++)
        status = read_pair(reader, section, yaml_document_get_node(&reader->document, pair->key),
                           yaml_document_get_node(&reader->document, pair->value));
    return status;
}

/* Limits that are checked on libyaml's events, before it builds a document, which may take minutes
 * and gigabytes. A configuration has two levels of keys, a list below them, and some hundred keys.
 */
enum { DEPTH_MAX = 8, EVENTS_MAX = 20000 };

static int check_event(const struct reader *reader, const yaml_event_t *event, int *depth,
                       int count)
{
    const unsigned long line = (unsigned long)event->start_mark.line + 1;
    *depth += (event->type == YAML_SEQUENCE_START_EVENT) +
              (event->type == YAML_MAPPING_START_EVENT) - (event->type == YAML_SEQUENCE_END_EVENT) -
              (event->type == YAML_MAPPING_END_EVENT);
    if (*depth > DEPTH_MAX)
        return fault_usage(
            reader->fault,
            "%s:%lu: lists and mappings %d deep; this is not a configuration of saccade",
            reader->name, line, *depth);
    if (count > EVENTS_MAX)
        return fault_usage(
            reader->fault,
            "%s:%lu: more than %d values and keys; this is not a configuration of saccade",
            reader->name, line, (int)EVENTS_MAX);
    return STATUS_OK;
}

/* Invalid YAML passes; read_document then reports what is wrong with it. */
static int check_effort(const struct reader *reader, const void *bytes, size_t size)
{
    yaml_parser_t parser;
    yaml_event_t  event;
    int           status = STATUS_OK, depth = 0;
    bool          more = true;
    if (!yaml_parser_initialize(&parser))
        return fault_failure(reader->fault, "%s: out of memory", reader->name);
    yaml_parser_set_input_string(&parser, bytes, size);
    for (int count = 0; more && status == STATUS_OK && yaml_parser_parse(&parser, &event);
         count++) {
        status = check_event(reader, &event, &depth, count);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return status;
}

static int read_document(struct reader *reader, yaml_parser_t *parser)
{
    if (!yaml_parser_load(parser, &reader->document)) {
        if (parser->error == YAML_READER_ERROR)
            return fault_usage(reader->fault, "%s: not a YAML text: %s at byte %zu", reader->name,
                               parser->problem, parser->problem_offset);
        return fault_usage(reader->fault, "%s:%lu: %s", reader->name,
                           (unsigned long)parser->problem_mark.line + 1,
                           parser->problem ? parser->problem : "out of memory");
    }
    int          status = STATUS_OK;
    yaml_node_t *root = yaml_document_get_root_node(&reader->document);
    reader->seen = calloc(option_count, sizeof *reader->seen);
    if (!reader->seen)
        status = fault_failure(reader->fault, "%s: out of memory", reader->name);
    else if (root) /* else: an empty file, which sets nothing */
        status = read_mapping(reader, root, "");
    free(reader->seen);
    yaml_document_delete(&reader->document);
    return status;
}

int config_read_memory(struct settings *s, const void *bytes, size_t size, const char *name,
                       struct fault *fault)
{
    struct reader reader = {.settings = s, .name = name, .fault = fault};
    yaml_parser_t parser;
    int           status = check_effort(&reader, bytes, size);
    if (status != STATUS_OK)
        return status;
    if (!yaml_parser_initialize(&parser))
        return fault_failure(fault, "%s: out of memory", name);
    yaml_parser_set_input_string(&parser, bytes, size);
    status = read_document(&reader, &parser);
    yaml_parser_delete(&parser);
    return status;
}

/* A configuration is a page or two; a longer file is something else. */
enum { CONFIG_BYTES_MAX = 1 << 17 };

int config_read(struct settings *s, const char *path, struct fault *fault)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return fault_failure(fault, "%s: %s", path, strerror(errno));
    int    status;
    char  *bytes = malloc(CONFIG_BYTES_MAX);
    size_t size = bytes ? fread(bytes, 1, CONFIG_BYTES_MAX, file) : 0;
    if (!bytes)
        status = fault_failure(fault, "%s: out of memory", path);
    else if (ferror(file))
        status = fault_failure(fault, "%s: %s", path, strerror(errno));
    else if (size == CONFIG_BYTES_MAX)
        status = fault_usage(
            fault, "%s: larger than 128 KiB; this is not a configuration of saccade", path);
    else
        status = config_read_memory(s, bytes, size, path, fault);
    free(bytes);
    fclose(file);
    return status;
}

static void print_comment(const struct option *option, const char *indent, FILE *out)
{
    char text[1024], prefix[16];
    option_description(option, text, sizeof text);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, " [--%s]", option->name);
    snprintf(prefix, sizeof prefix, "%s# ", indent);
    print_wrapped(out, text, prefix, prefix, 96);
}

void config_print(FILE *out)
{
    struct settings defaults;
    const char     *section = "";
    size_t          section_length = 0;
    settings_init(&defaults);
    fputs("# saccade: all keys with their defaults. Leave out what you do not change; options on "
          "the\n"
          "# command line override this file. Use it with --config FILE.\n",
          out);
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &options[i];
        if (!option->key)
            continue;
        const char *dot = strchr(option->key, '.'), *name = dot ? dot + 1 : option->key;
        size_t      length = dot ? (size_t)(dot - option->key) : 0;
        char        value[64];
        fputc('\n', out);
        if (length != section_length || strncmp(section, option->key, length) != 0)
            fprintf(out, "%.*s:\n", (int)length, option->key);
        section = option->key;
        section_length = length;
        option_print(&defaults, option, value, sizeof value);
        print_comment(option, dot ? "  " : "", out);
        fprintf(out, "%s%s: %s\n", dot ? "  " : "", name, value);
    }
    settings_finish(&defaults);
}
