/* SPDX-License-Identifier: Apache-2.0 */
/* The model contract: how pixels become a model's input, and what its classes are called.
 *
 * It comes from three places: the file's metadata_props, M.yaml beside M.onnx, and --preprocess.
 * Metadata takes precedence over M.yaml, and --preprocess over both.
 *
 * The text form is "bgr,mean=0,scale=1,letterbox=topleft,fill=114,size=416x416"; numbers per
 * channel are written with colons (mean=103.53:116.28:123.675), and 1/255 is a number. Metadata
 * holds it under "saccade.preprocess", the names under "saccade.classes" (and the head's name under
 * "saccade.head", see heads.c); Ultralytics' keys "names" and "imgsz" are read too, and lists under
 * "mean" and "std" or "image_mean" and "image_std". M.yaml is a mapping with the same keys, or with
 * "names"/"classes" as a list or a mapping from numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "heads/heads.h"

enum { TEXT_MAX = 512, CLASSES_MAX = 100000 };

/* ---- values ---- */

/* "0.5" or "1/255"; *end is past it. */
static bool parse_number(const char *text, const char **end, float *out)
{
    char  *stop;
    double v = strtod(text, &stop);
    if (stop == text)
        return false;
    if (*stop == '/') {
        const char *divisor = stop + 1;
        double      d = strtod(divisor, &stop);
        if (stop == divisor || d == 0)
            return false;
        v /= d;
    }
    *end = stop;
    *out = (float)v;
    return v == v && v < 1e30 && v > -1e30;
}

/* One number for all channels, or three. */
static bool parse_channels(const char *text, float out[3])
{
    float v[3];
    int   n = 0;
    do {
        if (n == 3 || !parse_number(text, &text, &v[n++]))
            return false;
    } while (*text++ == ':');
    if (text[-1] || n == 2)
        return false;
    for (int c = 0; c < 3; c++)
        out[c] = v[n == 1 ? 0 : c];
    return true;
}

/* What a deviation divides by; false where that is not a number as others are: of 0, and of next to
 * nothing. */
static bool scale_of(const float std[3], float out[3])
{
    for (int c = 0; c < 3; c++)
        if (!(fabsf(std[c]) > 1e-30f))
            return false;
    for (int c = 0; c < 3; c++)
        out[c] = 1 / std[c];
    return true;
}

static bool set_size(struct sac_model_contract *io, const char *value,
                     enum sac_contract_source from)
{
    int  width, height;
    char rest;
    if (sscanf(value, "%9dx%9d%c", &width, &height, &rest) != 2 || width < 1 || height < 1 ||
        width > 32768 || height > 32768)
        return false;
    io->pre.width = width;
    io->pre.height = height;
    io->size_from = from;
    return true;
}

static bool set_fit(struct sac_model_contract *io, const char *value, enum sac_contract_source from)
{
    static const struct {
        const char  *name;
        enum sac_fit fit;
    } fits[] = {{"topleft", SAC_FIT_LETTERBOX_TOPLEFT},
                {"centre", SAC_FIT_LETTERBOX_CENTRE},
                {"center", SAC_FIT_LETTERBOX_CENTRE},
                {"none", SAC_FIT_STRETCH}};
    for (size_t i = 0; i < SAC_COUNT(fits); i++)
        if (!strcmp(fits[i].name, value)) {
            io->pre.fit = fits[i].fit;
            io->fit_from = from;
            return true;
        }
    return false;
}

static bool set_order(struct sac_model_contract *io, const char *value,
                      enum sac_contract_source from)
{
    bool bgr = !strcmp(value, "bgr");
    if (!bgr && strcmp(value, "rgb") != 0)
        return false;
    io->pre.order = bgr ? SAC_ORDER_BGR : SAC_ORDER_RGB;
    io->order_from = from;
    return true;
}

static bool set_filter(struct sac_model_contract *io, const char *value,
                       enum sac_contract_source from)
{
    (void)from;
    bool area = !strcmp(value, "area");
    if (!area && strcmp(value, "bilinear") != 0)
        return false;
    io->pre.filter = area ? SAC_FILTER_AREA : SAC_FILTER_BILINEAR;
    return true;
}

/* Where numbers are from is noted once they are known to be good; returns that. */
static bool note_source(bool good, enum sac_contract_source from, enum sac_contract_source *to)
{
    if (good)
        *to = from;
    return good;
}

static bool set_mean(struct sac_model_contract *io, const char *value,
                     enum sac_contract_source from)
{
    return note_source(parse_channels(value, io->pre.mean), from, &io->mean_from);
}

static bool set_scale(struct sac_model_contract *io, const char *value,
                      enum sac_contract_source from)
{
    return note_source(parse_channels(value, io->pre.scale), from, &io->scale_from);
}

static bool set_std(struct sac_model_contract *io, const char *value, enum sac_contract_source from)
{
    float std[3];
    return note_source(parse_channels(value, std) && scale_of(std, io->pre.scale), from,
                       &io->scale_from);
}

static bool set_fill(struct sac_model_contract *io, const char *value,
                     enum sac_contract_source from)
{
    return note_source(parse_channels(value, io->pre.fill), from, &io->fill_from);
}

/* Which output a state is fed with: states.c reads it, before the contract is read. */
static bool set_state(struct sac_model_contract *io, const char *value,
                      enum sac_contract_source from)
{
    (void)io;
    (void)from;
    return strchr(value, ':') != NULL;
}

static const struct key {
    const char *name, *values;
    bool (*set)(struct sac_model_contract *io, const char *value, enum sac_contract_source from);
} keys[] = {
    {"order", "rgb or bgr", set_order},
    {"mean", "one number or three, as in 103.5:116.3:123.7", set_mean},
    {"scale", "one number or three, as in 1/255", set_scale},
    {"std", "one number or three, none of them 0 or next to it", set_std},
    {"letterbox", "topleft, centre or none", set_fit},
    {"filter", "bilinear or area", set_filter},
    {"fill", "one number or three", set_fill},
    {"size", "WIDTHxHEIGHT", set_size},
    {"state", "INPUT:OUTPUT", set_state},
};

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < SAC_COUNT(keys); i++)
        if (!strcmp(keys[i].name, name))
            return &keys[i];
    return NULL;
}

/* ---- text ---- */

/* "key=value", or one of the words that say it all. */
static sac_result apply_item(sac_context *ctx, struct sac_model_contract *io, char *item,
                             enum sac_contract_source from)
{
    sac_result  bad = from == SAC_FROM_USER ? SAC_ERR_ARG : SAC_ERR_FORMAT;
    const char *name = item, *value = "";
    char       *equals = strchr(item, '=');
    if (equals) {
        *equals = '\0';
        value = equals + 1;
    } else if (!strcmp(item, "rgb") || !strcmp(item, "bgr")) {
        name = "order";
        value = item;
    } else if (!strcmp(item, "stretch")) {
        name = "letterbox";
        value = "none";
    }
    const struct key *key = find_key(name);
    if (!key)
        return SAC_FAIL(ctx, bad,
                        "preprocess: unknown '%s'; have rgb, bgr, stretch, mean=, scale=, std=, "
                        "letterbox=, filter=, fill=, size=, state=",
                        name);
    if (!key->set(io, value, from))
        return SAC_FAIL(ctx, bad, "preprocess: %s=%s; it takes %s", name, value, key->values);
    return SAC_OK;
}

sac_result sac_contract_apply_text(sac_context *ctx, struct sac_model_contract *io,
                                   const char *text, enum sac_contract_source from)
{
    char copy[TEXT_MAX], *save = NULL;
    if (strlen(text) >= sizeof copy)
        return SAC_FAIL(ctx, from == SAC_FROM_USER ? SAC_ERR_ARG : SAC_ERR_FORMAT,
                        "preprocess: the text is longer than %d bytes", TEXT_MAX);
    memcpy(copy, text, strlen(text) + 1);
    sac_result res = SAC_OK;
    for (char *item = strtok_r(copy, ", \t", &save); item && res == SAC_OK;
         item = strtok_r(NULL, ", \t", &save))
        res = apply_item(ctx, io, item, from);
    return res;
}

/* ---- class names ---- */

static void clear_classes(struct sac_model_contract *io)
{
    for (int i = 0; i < io->class_count; i++)
        sac_free(io->classes[i]);
    sac_free(io->classes);
    io->classes = NULL;
    io->class_count = 0;
}

/* Room for n names; those never set become "class 7" in finish_classes. */
static bool grow_classes(struct sac_model_contract *io, int n)
{
    if (n <= io->class_count)
        return true;
    char **grown =
        n > CLASSES_MAX ? NULL : sac_realloc_array(io->classes, (size_t)n, sizeof *grown);
    if (!grown)
        return false;
    memset(grown + io->class_count, 0, (size_t)(n - io->class_count) * sizeof *grown);
    io->classes = grown;
    io->class_count = n;
    return true;
}

static bool set_class(struct sac_model_contract *io, int index, const char *name)
{
    char *copy = grow_classes(io, index + 1) ? sac_strdup(name) : NULL;
    if (!copy)
        return false;
    sac_free(io->classes[index]);
    io->classes[index] = copy;
    return true;
}

static sac_result finish_classes(sac_context *ctx, struct sac_model_contract *io,
                                 enum sac_contract_source from)
{
    io->classes_from = from;
    for (int i = 0; i < io->class_count; i++)
        if (!io->classes[i] && !(io->classes[i] = sac_asprintf("class %d", i)))
            return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for class names");
    return SAC_OK;
}

static sac_result classes_of_text(sac_context *ctx, struct sac_model_contract *io, const char *text)
{
    char *copy = sac_strdup(text), *save = NULL;
    bool  fits = copy != NULL;
    clear_classes(io);
    for (char *name = copy ? strtok_r(copy, ",", &save) : NULL; name && fits;
         name = strtok_r(NULL, ",", &save))
        fits = set_class(io, io->class_count, name + strspn(name, " "));
    sac_free(copy);
    if (!fits)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for class names");
    return finish_classes(ctx, io, SAC_FROM_METADATA);
}

/* ---- YAML ---- */

static const char *scalar(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

static bool add_class(struct sac_model_contract *io, const char *index, int fallback,
                      const char *name)
{
    char *end;
    long  i = index ? strtol(index, &end, 10) : fallback;
    if (!name || (index && (end == index || *end)) || i < 0 || i >= CLASSES_MAX)
        return false;
    return set_class(io, (int)i, name);
}

/* A list of names, or a mapping from numbers. */
static bool classes_of_node(struct sac_model_contract *io, yaml_document_t *doc,
                            const yaml_node_t *node)
{
    bool fits = true;
    clear_classes(io);
    if (node->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *item = node->data.sequence.items.start;
        for (int i = 0; fits && item < node->data.sequence.items.top; item++, i++)
            fits = add_class(io, NULL, i, scalar(yaml_document_get_node(doc, *item)));
    } else if (node->type == YAML_MAPPING_NODE) {
        const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
        for (; fits && pair < node->data.mapping.pairs.top; pair++) {
            const char *index = scalar(yaml_document_get_node(doc, pair->key));
            fits =
                index && add_class(io, index, 0, scalar(yaml_document_get_node(doc, pair->value)));
        }
    } else {
        fits = false;
    }
    return fits;
}

/* A scalar as it is; a list joined, the way the text form writes it. */
static bool text_of_node(yaml_document_t *doc, const yaml_node_t *node, char joint, char *out,
                         size_t size)
{
    size_t used = 0;
    if (scalar(node))
        return (size_t)snprintf(out, size, "%s", scalar(node)) < size;
    if (node->type != YAML_SEQUENCE_NODE)
        return false;
    const yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top; item++) {
        const char *text = scalar(yaml_document_get_node(doc, *item));
        if (!text)
            return false;
        char before[2] = {used ? joint : '\0', '\0'};
        int  n = snprintf(out + used, size - used, "%s%s", before, text);
        if (n < 0 || used + (size_t)n >= size)
            return false;
        used += (size_t)n;
    }
    return used > 0;
}

static sac_result apply_pair(sac_context *ctx, const char *where, struct sac_model_contract *io,
                             yaml_document_t *doc, const yaml_node_pair_t *pair)
{
    const yaml_node_t *key_node = yaml_document_get_node(doc, pair->key);
    const yaml_node_t *value = yaml_document_get_node(doc, pair->value);
    const char        *name = scalar(key_node);
    unsigned long      line = (unsigned long)key_node->start_mark.line + 1;
    if (!name || !value)
        return SAC_OK;
    if (!strcmp(name, "names") || !strcmp(name, "classes")) {
        if (!classes_of_node(io, doc, value))
            return SAC_FAIL(ctx, SAC_ERR_FORMAT,
                            "%s:%lu: %s is neither a list of names nor a mapping from numbers",
                            where, line, name);
        return finish_classes(ctx, io, SAC_FROM_YAML);
    }
    const struct key *key = find_key(name);
    char              text[TEXT_MAX];
    if (!key) /* such files also describe data sets and training: not ours */
        return SAC_OK;
    if (!text_of_node(doc, value, key->set == set_size ? 'x' : ':', text, sizeof text) ||
        !key->set(io, text, SAC_FROM_YAML))
        return SAC_FAIL(ctx, SAC_ERR_FORMAT, "%s:%lu: %s takes %s", where, line, name, key->values);
    return SAC_OK;
}

static sac_result apply_document(sac_context *ctx, const char *where, struct sac_model_contract *io,
                                 yaml_document_t *doc)
{
    const yaml_node_t *root = yaml_document_get_root_node(doc);
    sac_result         res = SAC_OK;
    if (!root || root->type != YAML_MAPPING_NODE)
        return SAC_FAIL(ctx, SAC_ERR_FORMAT, "%s: it is not a mapping of keys to values", where);
    const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
    for (; res == SAC_OK && pair < root->data.mapping.pairs.top; pair++)
        res = apply_pair(ctx, where, io, doc, pair);
    return res;
}

sac_result sac_contract_apply_yaml(sac_context *ctx, const char *where, FILE *file,
                                   struct sac_model_contract *io)
{
    yaml_parser_t   parser;
    yaml_document_t doc;
    sac_result      res;
    if (!yaml_parser_initialize(&parser))
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory to read it", where);
    yaml_parser_set_input_file(&parser, file);
    if (yaml_parser_load(&parser, &doc)) {
        res = apply_document(ctx, where, io, &doc);
        yaml_document_delete(&doc);
    } else {
        res = SAC_FAIL(ctx, SAC_ERR_FORMAT, "%s:%lu: %s", where,
                       (unsigned long)parser.problem_mark.line + 1,
                       parser.problem ? parser.problem : "not YAML");
    }
    yaml_parser_delete(&parser);
    return res;
}

char *sac_contract_yaml_path(const char *model)
{
    const char *dot = strrchr(model, '.');
    return dot && strcmp(dot, ".onnx") == 0 ? sac_asprintf("%.*s.yaml", (int)(dot - model), model)
                                            : NULL;
}

/* M.yaml beside M.onnx; no such file is fine. */
static sac_result apply_yaml_file(sac_context *ctx, const sac_model *model,
                                  struct sac_model_contract *io)
{
    const char *model_path = sac_model_path(model), *dot = strrchr(model_path, '.');
    if (!dot || strcmp(dot, ".onnx") != 0)
        return SAC_OK;
    char *path = sac_contract_yaml_path(model_path);
    if (!path)
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "%s: no memory for its YAML's name", model_path);
    FILE      *file = fopen(path, "rbe");
    sac_result res = file ? sac_contract_apply_yaml(ctx, path, file, io) : SAC_OK;
    if (file)
        fclose(file);
    sac_free(path);
    return res;
}

/* ---- metadata ---- */

/* Python prints a dict of names as what YAML calls a flow mapping. */
static sac_result classes_of_python(sac_context *ctx, struct sac_model_contract *io,
                                    const char *text)
{
    yaml_parser_t   parser;
    yaml_document_t doc;
    bool            fits = false;
    if (!yaml_parser_initialize(&parser))
        return SAC_FAIL(ctx, SAC_ERR_MEMORY, "no memory for class names");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    if (yaml_parser_load(&parser, &doc)) {
        const yaml_node_t *root = yaml_document_get_root_node(&doc);
        fits = root && classes_of_node(io, &doc, root);
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    if (!fits)
        return SAC_FAIL(ctx, SAC_ERR_FORMAT,
                        "metadata 'names' is neither a list of names nor a mapping from numbers");
    return finish_classes(ctx, io, SAC_FROM_METADATA);
}

/* "[0.485, 0.456, 0.406]", as trainers write it: of pixels in 0..1 where no number is above 1. */
static bool parse_list(const char *text, float out[3])
{
    int used = 0;
    if (sscanf(text, " [ %f , %f , %f ] %n", &out[0], &out[1], &out[2], &used) != 3 || !used ||
        text[used])
        return false;
    const bool shares = out[0] <= 1 && out[1] <= 1 && out[2] <= 1;
    for (int c = 0; c < 3; c++)
        out[c] *= shares ? 255 : 1;
    return out[0] >= 0 && out[1] >= 0 && out[2] >= 0 && out[0] <= 255 && out[1] <= 255 &&
           out[2] <= 255;
}

/* Mean and deviation belong together: one alone says nothing certain. */
static void apply_normalisation(const sac_model *model, struct sac_model_contract *io)
{
    static const char *const keys_of[][2] = {{"mean", "std"}, {"image_mean", "image_std"}};
    for (size_t i = 0; i < SAC_COUNT(keys_of); i++) {
        const char *mean = sac_model_metadata(model, keys_of[i][0]),
                   *std = sac_model_metadata(model, keys_of[i][1]);
        float m[3], d[3];
        if (!mean || !std || !parse_list(mean, m) || !parse_list(std, d) ||
            !scale_of(d, io->pre.scale))
            continue;
        for (int c = 0; c < 3; c++)
            io->pre.mean[c] = m[c];
        io->mean_from = io->scale_from = SAC_FROM_METADATA;
    }
}

static sac_result apply_metadata(sac_context *ctx, const sac_model *model,
                                 struct sac_model_contract *io)
{
    const char *preprocess = sac_model_metadata(model, "saccade.preprocess");
    const char *classes = sac_model_metadata(model, "saccade.classes");
    const char *names = sac_model_metadata(model, "names");
    const char *imgsz = sac_model_metadata(model, "imgsz"); /* "[height, width]" */
    sac_result  res = SAC_OK;
    int         height, width;
    if (imgsz && sscanf(imgsz, "[%9d , %9d ]", &height, &width) == 2) {
        char size[32];
        snprintf(size, sizeof size, "%dx%d", width, height);
        set_size(io, size, SAC_FROM_METADATA);
    }
    apply_normalisation(model, io);
    if (classes)
        res = classes_of_text(ctx, io, classes);
    else if (names)
        res = classes_of_python(ctx, io, names);
    if (res == SAC_OK && preprocess)
        res = sac_contract_apply_text(ctx, io, preprocess, SAC_FROM_METADATA);
    return res == SAC_OK ? res : sac_fail_prefix(ctx, res, "%s: ", sac_model_path(model));
}

/* ---- the whole ---- */

sac_result sac_model_contract_read(const sac_model *model, const char *user,
                                   struct sac_model_contract *io)
{
    SAC_NEEDS(sac_device_context(sac_model_device(model)), model);
    SAC_NEEDS(sac_device_context(sac_model_device(model)), io);
    SAC_NEEDS_NO_LATER_FIELD(sac_device_context(sac_model_device(model)), io, "contract");
    sac_context *ctx = sac_device_context(sac_model_device(model));
    sac_result   res = apply_yaml_file(ctx, model, io);
    if (res == SAC_OK)
        res = apply_metadata(ctx, model, io);
    if (res == SAC_OK && user)
        res = sac_contract_apply_text(ctx, io, user, SAC_FROM_USER);
    return res;
}

void sac_contract_range(const struct sac_model_contract *contract, float *low_out, float *high_out)
{
    float low = INFINITY, high = -INFINITY;
    for (int c = 0; c < 3; c++) {
        const float black = -contract->pre.mean[c] * contract->pre.scale[c],
                    white = (255 - contract->pre.mean[c]) * contract->pre.scale[c];
        low = fminf(low, fminf(black, white));
        high = fmaxf(high, fmaxf(black, white));
    }
    *low_out = low;
    *high_out = high;
}

void sac_contract_expect(sac_model *model, const struct sac_model_contract *contract)
{
    float low, high;
    sac_contract_range(contract, &low, &high);
    sac_model_expect(model, low, high);
}

void sac_model_contract_finish(struct sac_model_contract *contract)
{
    if (contract)
        clear_classes(contract);
}

int sac_contract_count_names(const sac_model *model)
{
    struct sac_model_contract contract = {0};
    int                       count =
        sac_model_contract_read(model, NULL, &contract) == SAC_OK ? contract.class_count : 0;
    sac_model_contract_finish(&contract);
    return count;
}
