/* SPDX-License-Identifier: Apache-2.0 */
/* COCO's JSON: a data set (images, annotations, categories) or a list of results. The text stays in
 * memory; of each annotation the place of its segmentation is kept, which is read when its picture
 * is scored. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/json_read.h"
#include "base/search.h"
#include "mask/mask.h"
#include "mask/polygon.h"

#define TEXT_MAX  ((off_t)1 << 32)
#define STEPS_MAX ((int64_t)1 << 28) /* that polygons of one picture are walked */

struct annotation {
    int64_t image, category;
    size_t  at; /* of the segmentation in the text; 0: none */
    double  score;
    bool    crowd;
};

struct image {
    int64_t id;
    double  width, height; /* 0: not said */
    char   *name;
};

struct category {
    int64_t id;
    char   *name;
};

struct coco {
    char                  *text;
    size_t                 size;
    bool                   lists_images;
    struct image          *images;      /* by id */
    struct annotation     *annotations; /* by image */
    struct category       *categories;
    int64_t               *classes; /* [class_count] that annotations have, in order */
    size_t                 image_count, image_capacity;
    size_t                 annotation_count, annotation_capacity;
    size_t                 category_count, category_capacity;
    size_t                 class_count;
    size_t                 first, last; /* annotations of the loaded picture */
    struct sac_json_reader reader;
    struct sac_rle         rle;
    struct sac_polygon     polygon;
};

/* ---- the file ---- */

static sac_result read_text(struct sac_mask_set *set, struct coco *coco)
{
    struct stat about;
    sac_result  res = SAC_OK;
    FILE       *file = fopen(set->path, "rb");
    if (!file || fstat(fileno(file), &about) != 0 || !S_ISREG(about.st_mode))
        res = SAC_FAIL(set->ctx, SAC_ERR_IO, "%s: %s", set->path,
                       file ? "not a regular file" : strerror(errno));
    else if (about.st_size > TEXT_MAX)
        res = SAC_FAIL(set->ctx, SAC_ERR_LIMIT, "%s: larger than 4 GiB", set->path);
    else if (!(coco->text = sac_alloc((size_t)about.st_size + 1)))
        res = SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", set->path);
    else
        coco->size = fread(coco->text, 1, (size_t)about.st_size, file);
    if (file)
        fclose(file);
    return res;
}

static void out_of_memory(struct coco *coco)
{
    sac_json_read_fault(&coco->reader, SAC_ERR_MEMORY, "no memory");
}

static int64_t read_id(struct coco *coco)
{
    double value = sac_json_read_number(&coco->reader);
    if (value != floor(value) || fabs(value) > 9e15) {
        sac_json_read_fault(&coco->reader, SAC_ERR_FORMAT, "%s %g is no whole number",
                            coco->reader.key, value);
        return 0;
    }
    return (int64_t)value;
}

static char *read_name(struct sac_mask_set *set, struct coco *coco)
{
    size_t      length = 0;
    const char *name = sac_json_read_string(&coco->reader, &length);
    char       *copy = name ? sac_arena_strndup(&set->arena, name, length) : NULL;
    if (name && !copy)
        out_of_memory(coco);
    return copy;
}

static void read_image(struct sac_mask_set *set, struct coco *coco)
{
    struct sac_json_reader *reader = &coco->reader;
    struct image            image = {.id = -1};
    if (sac_json_read_open(reader, '{')) {
        while (sac_json_read_member(reader))
            if (strcmp(reader->key, "id") == 0)
                image.id = read_id(coco);
            else if (strcmp(reader->key, "width") == 0)
                image.width = sac_json_read_number(reader);
            else if (strcmp(reader->key, "height") == 0)
                image.height = sac_json_read_number(reader);
            else if (strcmp(reader->key, "file_name") == 0)
                image.name = read_name(set, coco);
            else
                sac_json_read_skip(reader);
    }
    if (image.id < 0)
        sac_json_read_fault(reader, SAC_ERR_FORMAT, "an image without an id");
    if (sac_grow((void **)&coco->images, &coco->image_capacity, coco->image_count + 1,
                 sizeof *coco->images))
        coco->images[coco->image_count++] = image;
    else
        out_of_memory(coco);
}

static void read_category(struct sac_mask_set *set, struct coco *coco)
{
    struct sac_json_reader *reader = &coco->reader;
    struct category         category = {0};
    if (sac_json_read_open(reader, '{')) {
        while (sac_json_read_member(reader))
            if (strcmp(reader->key, "id") == 0)
                category.id = read_id(coco);
            else if (strcmp(reader->key, "name") == 0)
                category.name = read_name(set, coco);
            else
                sac_json_read_skip(reader);
    }
    if (sac_grow((void **)&coco->categories, &coco->category_capacity, coco->category_count + 1,
                 sizeof *coco->categories))
        coco->categories[coco->category_count++] = category;
    else
        out_of_memory(coco);
}

/* iscrowd is 0 or 1, in some files false or true. */
static bool read_flag(struct sac_json_reader *reader)
{
    char c = sac_json_read_peek(reader);
    if (c != 't' && c != 'f')
        return sac_json_read_number(reader) != 0;
    sac_json_read_skip(reader);
    return c == 't';
}

static void read_annotation(struct sac_mask_set *set, struct coco *coco)
{
    struct sac_json_reader *reader = &coco->reader;
    struct annotation       annotation = {.image = -1, .score = 1};
    (void)set;
    if (sac_json_read_open(reader, '{'))
        while (sac_json_read_member(reader)) {
            if (strcmp(reader->key, "image_id") == 0) {
                annotation.image = read_id(coco);
            } else if (strcmp(reader->key, "category_id") == 0) {
                annotation.category = read_id(coco);
            } else if (strcmp(reader->key, "score") == 0) {
                annotation.score = sac_json_read_number(reader);
            } else if (strcmp(reader->key, "iscrowd") == 0) {
                annotation.crowd = read_flag(reader);
            } else if (strcmp(reader->key, "segmentation") == 0) {
                if (sac_json_read_peek(reader) != 'n')
                    annotation.at = (size_t)(reader->at - reader->begin);
                sac_json_read_skip(reader);
            } else {
                sac_json_read_skip(reader);
            }
        }
    if (annotation.image < 0)
        sac_json_read_fault(reader, SAC_ERR_FORMAT, "an annotation without an image_id");
    if (sac_grow((void **)&coco->annotations, &coco->annotation_capacity,
                 coco->annotation_count + 1, sizeof *coco->annotations))
        coco->annotations[coco->annotation_count++] = annotation;
    else
        out_of_memory(coco);
}

static void read_list(struct sac_mask_set *set, struct coco *coco,
                      void (*read)(struct sac_mask_set *, struct coco *))
{
    if (sac_json_read_open(&coco->reader, '['))
        while (sac_json_read_element(&coco->reader))
            read(set, coco);
}

static sac_result read_document(struct sac_mask_set *set, struct coco *coco)
{
    struct sac_json_reader *reader = &coco->reader;
    sac_json_read_begin(reader, coco->text, coco->size);
    if (sac_json_read_peek(reader) == '[') {
        read_list(set, coco, read_annotation);
    } else if (sac_json_read_open(reader, '{')) {
        while (sac_json_read_member(reader))
            if (strcmp(reader->key, "images") == 0) {
                coco->lists_images = true;
                read_list(set, coco, read_image);
            } else if (strcmp(reader->key, "annotations") == 0) {
                read_list(set, coco, read_annotation);
            } else if (strcmp(reader->key, "categories") == 0) {
                read_list(set, coco, read_category);
            } else {
                sac_json_read_skip(reader);
            }
    }
    return sac_json_read_end(reader);
}

/* ---- the list of pictures ---- */

static int compare_images(const void *a, const void *b)
{
    const struct image *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int compare_annotations(const void *a, const void *b)
{
    const struct annotation *x = a, *y = b;
    if (x->image != y->image)
        return x->image < y->image ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static sac_result list_classes(struct sac_mask_set *set, struct coco *coco)
{
    coco->classes = sac_calloc(coco->annotation_count + 1, sizeof *coco->classes);
    if (!coco->classes)
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", set->path);
    for (size_t i = 0; i < coco->annotation_count; i++)
        coco->classes[i] = coco->annotations[i].category;
    qsort(coco->classes, coco->annotation_count, sizeof *coco->classes, compare_ids);
    for (size_t i = 0; i < coco->annotation_count; i++)
        if (i == 0 || coco->classes[i] != coco->classes[coco->class_count - 1])
            coco->classes[coco->class_count++] = coco->classes[i];
    return SAC_OK;
}

static sac_result list_images(struct sac_mask_set *set, struct coco *coco)
{
    sac_result res = SAC_OK;
    bool       segmented = coco->annotation_count == 0;
    for (size_t i = 0; i < coco->annotation_count; i++)
        segmented |= coco->annotations[i].at > 0;
    if (!segmented)
        return SAC_FAIL(set->ctx, SAC_ERR_FORMAT,
                        "%s: none of its %zu annotations has a segmentation", set->path,
                        coco->annotation_count);
    if (coco->annotation_count > 0)
        qsort(coco->annotations, coco->annotation_count, sizeof *coco->annotations,
              compare_annotations);
    if (coco->image_count > 0)
        qsort(coco->images, coco->image_count, sizeof *coco->images, compare_images);
    for (size_t i = 0; i < coco->image_count && res == SAC_OK; i++) {
        if (i > 0 && coco->images[i].id == coco->images[i - 1].id)
            res = SAC_FAIL(set->ctx, SAC_ERR_FORMAT, "%s: two images have the id %lld", set->path,
                           (long long)coco->images[i].id);
        else
            res = sac_mask_set_add(set, coco->images[i].name, coco->images[i].id, i);
    }
    for (size_t i = 0; !coco->lists_images && i < coco->annotation_count && res == SAC_OK; i++)
        if (i == 0 || coco->annotations[i].image != coco->annotations[i - 1].image)
            res = sac_mask_set_add(set, NULL, coco->annotations[i].image, i);
    return res == SAC_OK ? list_classes(set, coco) : res;
}

static sac_result read_all(struct sac_mask_set *set)
{
    struct coco *coco = set->state;
    sac_result   res = read_document(set, coco);
    if (res == SAC_OK)
        res = list_images(set, coco);
    set->results = !coco->lists_images;
    return res;
}

static bool claims(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ".json") == 0;
}

static sac_result init(struct sac_mask_set *set)
{
    struct coco *coco = sac_new(struct coco);
    set->state = coco;
    if (!coco)
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", set->path);
    coco->reader.ctx = set->ctx;
    coco->reader.name = set->path;
    return SAC_OK;
}

static sac_result open_coco(struct sac_mask_set *set)
{
    sac_result res = init(set);
    if (res == SAC_OK)
        res = read_text(set, set->state);
    if (res == SAC_OK)
        res = read_all(set);
    return res;
}

sac_result sac_mask_coco_take(struct sac_mask_set *set, const char *text, size_t size)
{
    sac_result   res = init(set);
    struct coco *coco = set->state;
    if (res != SAC_OK)
        return res;
    coco->text = sac_alloc(size + 1);
    if (!coco->text)
        return SAC_FAIL(set->ctx, SAC_ERR_MEMORY, "%s: no memory", set->path);
    memcpy(coco->text, text, size);
    coco->size = size;
    set->ops = &sac_mask_coco;
    return read_all(set);
}

static void close_coco(struct sac_mask_set *set)
{
    struct coco *coco = set->state;
    if (!coco)
        return;
    sac_free(coco->text);
    sac_free(coco->images);
    sac_free(coco->annotations);
    sac_free(coco->categories);
    sac_free(coco->classes);
    sac_json_read_finish(&coco->reader);
    sac_rle_finish(&coco->rle);
    sac_polygon_finish(&coco->polygon);
    sac_free(coco);
}

/* ---- one picture ---- */

static int64_t image_of(const void *annotations, size_t i)
{
    return ((const struct annotation *)annotations)[i].image;
}

/* A text, or a list of numbers. */
static void read_counts(struct coco *coco)
{
    struct sac_json_reader *reader = &coco->reader;
    if (sac_json_read_peek(reader) == '"') {
        size_t      length = 0;
        const char *text = sac_json_read_string(reader, &length);
        if (text)
            reader->res = sac_rle_add_text(reader->ctx, &coco->rle, text, length);
    } else if (sac_json_read_open(reader, '[')) {
        while (sac_json_read_element(reader)) {
            double run = sac_json_read_number(reader);
            if (reader->res == SAC_OK)
                reader->res = sac_rle_add_run(reader->ctx, &coco->rle, run);
        }
    }
}

/* Members come in any order, and the runs need the size: two goes. counts false: only the size. */
static bool read_rle(struct coco *coco, size_t at, bool counts)
{
    struct sac_json_reader *reader = &coco->reader;
    double                  size[2] = {0}; /* height, width */
    bool                    has = false;
    for (int go = 0; go < (counts ? 2 : 1); go++) {
        reader->at = reader->begin + at;
        if (!sac_json_read_open(reader, '{'))
            return false;
        while (sac_json_read_member(reader))
            if (go == 0 && strcmp(reader->key, "size") == 0 && sac_json_read_open(reader, '[')) {
                size_t n = 0;
                for (; sac_json_read_element(reader); n++) {
                    double value = sac_json_read_number(reader);
                    size[n < 2 ? n : 1] = value;
                }
                has = n == 2;
            } else if (go == 1 && strcmp(reader->key, "counts") == 0) {
                read_counts(coco);
            } else {
                sac_json_read_skip(reader);
            }
        if (go == 0 && !has)
            sac_json_read_fault(reader, SAC_ERR_FORMAT,
                                "a segmentation without its size [height, width]");
        if (go == 0 && reader->res == SAC_OK)
            reader->res = sac_rle_begin(reader->ctx, size[1], size[0], &coco->rle);
    }
    return reader->res == SAC_OK;
}

/* Puts file and image before a sentence that knows neither. */
static sac_result of_picture(struct sac_mask_set *set, sac_result res)
{
    if (res == SAC_OK)
        return SAC_OK;
    return sac_fail_prefix(set->ctx, res, "%s: image %lld: ", set->path,
                           (long long)set->entries[set->loaded].number);
}

static sac_result load(struct sac_mask_set *set, size_t entry, int width, int height)
{
    struct coco *coco = set->state;
    int64_t      id = set->entries[entry].number;
    double       own_width = 0, own_height = 0;
    coco->first = sac_lower_bound(coco->annotations, coco->annotation_count, id, image_of);
    coco->last = coco->first;
    while (coco->last < coco->annotation_count && coco->annotations[coco->last].image == id)
        coco->last++;
    if (coco->lists_images) {
        own_width = coco->images[set->entries[entry].at].width;
        own_height = coco->images[set->entries[entry].at].height;
    }
    for (size_t i = coco->first; i < coco->last && own_width == 0; i++) {
        if (coco->annotations[i].at == 0 || coco->text[coco->annotations[i].at] != '{')
            continue;
        if (!read_rle(coco, coco->annotations[i].at, false))
            return of_picture(set, coco->reader.res);
        own_width = coco->rle.width;
        own_height = coco->rle.height;
    }
    if (own_width == 0 && width == 0)
        return SAC_FAIL(set->ctx, SAC_ERR_FORMAT, "%s: image %lld: its size is written nowhere",
                        set->path, (long long)id);
    if (own_width == 0) {
        own_width = width;
        own_height = height;
    }
    return sac_mask_picture_size(set, set->path, own_width, own_height, false);
}

static sac_result draw_rle(struct sac_mask_set *set, uint8_t value, uint8_t *pixels)
{
    struct coco *coco = set->state;
    if (coco->rle.width != set->picture.width || coco->rle.height != set->picture.height)
        return SAC_FAIL(set->ctx, SAC_ERR_FORMAT, "RLE of %d x %d pixels for one of %d x %d",
                        coco->rle.width, coco->rle.height, set->picture.width, set->picture.height);
    sac_result res = sac_rle_check(set->ctx, &coco->rle);
    if (res == SAC_OK)
        sac_rle_draw(&coco->rle, value, pixels, (size_t)set->picture.width);
    return res;
}

/* A list of polygons, each a list of numbers. */
static sac_result draw_polygons(struct sac_mask_set *set, size_t at, uint8_t value, uint8_t *pixels)
{
    struct coco            *coco = set->state;
    struct sac_json_reader *reader = &coco->reader;
    reader->at = reader->begin + at;
    if (!sac_json_read_open(reader, '['))
        return reader->res;
    while (sac_json_read_element(reader)) {
        sac_polygon_clear(&coco->polygon);
        if (!sac_json_read_open(reader, '['))
            return reader->res;
        while (sac_json_read_element(reader)) {
            double number = sac_json_read_number(reader);
            if (reader->res == SAC_OK)
                reader->res = sac_polygon_add(set->ctx, &coco->polygon, number);
        }
        if (reader->res == SAC_OK)
            reader->res = sac_polygon_encode(set->ctx, &coco->polygon, set->picture.width,
                                             set->picture.height, &coco->rle);
        if (reader->res == SAC_OK)
            reader->res = draw_rle(set, value, pixels);
    }
    return reader->res;
}

static sac_result draw_annotation(struct sac_mask_set *set, const struct annotation *annotation,
                                  uint8_t *mask, uint8_t *ignored)
{
    struct coco *coco = set->state;
    uint8_t     *pixels = annotation->crowd ? ignored : mask;
    uint8_t      value = annotation->crowd ? 1 : 255;
    if (coco->text[annotation->at] != '{')
        return draw_polygons(set, annotation->at, value, pixels);
    if (!read_rle(coco, annotation->at, true))
        return coco->reader.res;
    return draw_rle(set, value, pixels);
}

static bool is_wanted(const struct sac_mask_set *set, const struct annotation *annotation,
                      int64_t class_id)
{
    return (class_id == SAC_MASK_EVERY || annotation->category == class_id) && annotation->at > 0 &&
           annotation->score >= set->score_min;
}

static sac_result draw(struct sac_mask_set *set, int64_t class_id, uint8_t *mask, uint8_t *ignored)
{
    struct coco *coco = set->state;
    sac_result   res = SAC_OK;
    coco->polygon.steps = STEPS_MAX;
    for (size_t i = coco->first; i < coco->last && res == SAC_OK; i++)
        if (is_wanted(set, &coco->annotations[i], class_id))
            res = draw_annotation(set, &coco->annotations[i], mask, ignored);
    return of_picture(set, res);
}

static bool has(const struct sac_mask_set *set, int64_t class_id)
{
    const struct coco *coco = set->state;
    for (size_t i = coco->first; i < coco->last; i++)
        if (is_wanted(set, &coco->annotations[i], class_id) && !coco->annotations[i].crowd)
            return true;
    return false;
}

static size_t classes(const struct sac_mask_set *set, const int64_t **ids)
{
    const struct coco *coco = set->state;
    *ids = coco->classes;
    return coco->class_count;
}

static int64_t class_of_name(const struct sac_mask_set *set, const char *name)
{
    const struct coco *coco = set->state;
    for (size_t i = 0; i < coco->category_count; i++)
        if (coco->categories[i].name && strcasecmp(coco->categories[i].name, name) == 0)
            return coco->categories[i].id;
    return -1;
}

static const char *class_name(const struct sac_mask_set *set, int64_t class_id)
{
    const struct coco *coco = set->state;
    for (size_t i = 0; i < coco->category_count; i++)
        if (coco->categories[i].id == class_id)
            return coco->categories[i].name;
    return NULL;
}

const struct sac_mask_set_ops sac_mask_coco = {
    .claims = claims,
    .open = open_coco,
    .load = load,
    .close = close_coco,
    .has = has,
    .draw = draw,
    .classes = classes,
    .class_name = class_name,
    .class_of_name = class_of_name,
};
