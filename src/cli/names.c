/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <saccade/context.h>

#include "names.h"

/* ---- parts of a path ---- */

static bool is_url(const char *path)
{
    return strstr(path, "://") != NULL;
}

/* The last part of path[0..*length); *length is set to where the part begins. */
static const char *last_part(const char *path, size_t *length, size_t *part_length)
{
    while (*length > 1 && path[*length - 1] == '/')
        --*length;
    size_t begin = *length;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    *part_length = *length - begin;
    *length = begin;
    return path + begin;
}

static void clean(char *name)
{
    for (char *p = name; *p; p++)
        if (*p == '%' || *p == ':' || *p == '*' || *p == '?' || (unsigned char)*p < 0x20)
            *p = '_';
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        strcpy(name, "input");
}

/* The part number up of the path, counted from its end: 0 is the file. */
static void copy_part(const char *path, int up, char *out, size_t size)
{
    size_t      length = is_url(path) ? strcspn(path, "?#;") : strlen(path), n = 0;
    const char *part = "";
    for (int i = 0; i <= up; i++)
        part = last_part(path, &length, &n);
    if (n >= 4 && strncmp(part, "***@", 4) == 0) {
        part += 4;
        n -= 4;
    }
    const bool scheme = n > 0 && part[n - 1] == ':';
    snprintf(out, size, "%.*s", scheme ? 0 : (int)n, part);
}

static bool is_host(const char *path)
{
    const char *begin = is_url(path) ? strstr(path, "://") + 3 : NULL;
    return begin && !begin[strcspn(begin, "/")];
}

void naming_init(struct naming *n, const char *of)
{
    char whole[PATH_MAX_BYTES];
    *n = (struct naming){0};
    /* absolute, so that ".", "../" and the folder of "a.mp4" have names */
    if (!is_url(of) && strcmp(of, "-") != 0 && of[0] != '/' && realpath(".", whole))
        snprintf(n->path, sizeof n->path, "%.2000s/%.2000s", whole,
                 strncmp(of, "./", 2) == 0 ? of + 2 : of);
    else
        sac_hide_secrets(of, n->path, sizeof n->path);
    if (realpath(of, whole) && (strcmp(of, ".") == 0 || strstr(of, "..")))
        snprintf(n->path, sizeof n->path, "%s", whole);
    copy_part(n->path, 0, n->name, 256);
    char *dot = strrchr(n->name, '.'); /* ".hidden" and "10.0.0.1" have no ending */
    if (dot > n->name && !is_host(n->path))
        *dot = '\0';
    if (strcmp(of, "-") == 0)
        strcpy(n->name, "stdin");
    clean(n->name);
    copy_part(n->path, 1, n->folder, sizeof n->folder);
    clean(n->folder);
    snprintf(n->unique, sizeof n->unique, "%s", n->name);
}

/* ---- names that are the same ---- */

static const char *ending_of(const struct naming *n)
{
    const char *slash = strrchr(n->path, '/'), *dot = strrchr(slash ? slash : n->path, '.');
    return dot ? dot + 1 : "";
}

static bool clash(const struct naming *a, const struct naming *b, bool by_ending)
{
    return strcmp(a->unique, b->unique) == 0 &&
           (!by_ending || strcasecmp(ending_of(a), ending_of(b)) == 0);
}

/* Marks names that clash with another whose path differs in part `up`; up < 0: all that clash. */
static bool mark(const struct naming *all, size_t count, bool by_ending, int up, bool *marked)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        marked[i] = false;
        for (size_t j = 0; j < count && !marked[i]; j++) {
            char a[256], b[256];
            if (i == j || !clash(&all[i], &all[j], by_ending))
                continue;
            copy_part(all[i].path, up < 0 ? 0 : up, a, sizeof a);
            copy_part(all[j].path, up < 0 ? 0 : up, b, sizeof b);
            marked[i] = up < 0 || strcmp(a, b) != 0;
        }
        any |= marked[i];
    }
    return any;
}

static void put_folder_before(struct naming *n, int up)
{
    char folder[128], name[NAME_MAX_BYTES];
    copy_part(n->path, up, folder, sizeof folder);
    snprintf(name, sizeof name, "%s", n->unique);
    if (*folder) {
        clean(folder);
        snprintf(n->unique, sizeof n->unique, "%s_%.380s", folder, name);
    }
}

static void put_behind(struct naming *n, const char *what)
{
    size_t used = strlen(n->unique);
    snprintf(n->unique + used, sizeof n->unique - used, "_%s", what);
}

void naming_part(struct naming *all, size_t count, bool by_ending)
{
    enum { FOLDERS_MAX = 6 };
    bool *marked = calloc(count ? count : 1, sizeof *marked);
    for (int up = 1; marked && up <= FOLDERS_MAX; up++)
        if (mark(all, count, by_ending, up, marked))
            for (size_t i = 0; i < count; i++)
                if (marked[i])
                    put_folder_before(&all[i], up);
    if (marked && mark(all, count, by_ending, 0, marked))
        for (size_t i = 0; i < count; i++)
            if (marked[i] && *ending_of(&all[i]))
                put_behind(&all[i], ending_of(&all[i]));
    if (marked && mark(all, count, by_ending, -1, marked))
        for (size_t i = 0; i < count; i++) {
            char number[24];
            snprintf(number, sizeof number, "%zu", i + 1);
            if (marked[i])
                put_behind(&all[i], number);
        }
    free(marked);
}

/* ---- templates ---- */

/* Length of the word in braces that text begins with; 0: none. */
static size_t word_in_braces(const char *text)
{
    size_t n = 1;
    while (text[0] == '{' && isalpha((unsigned char)text[n]))
        n++;
    return text[0] == '{' && n > 1 && text[n] == '}' ? n - 1 : 0;
}

bool template_is(const char *text)
{
    for (; *text; text++)
        if (word_in_braces(text) || strncmp(text, "{{", 2) == 0 || strncmp(text, "}}", 2) == 0)
            return true;
    return false;
}

/* false: no such word. */
static bool value_of(const char *word, size_t length, const struct naming *n, size_t index,
                     char *out, size_t size)
{
    const char *const words[] = {"name", "folder", "index", "stream"};
    int               i = 0;
    while (i < 4 && (strlen(words[i]) != length || strncmp(words[i], word, length) != 0))
        i++;
    if (i < 2)
        snprintf(out, size, "%s", i == 0 ? n->name : n->folder);
    else
        snprintf(out, size, "%zu", i == 2 ? index + 1 : index);
    return i < 4;
}

bool template_expand(const char *text, const struct naming *n, size_t index, char *path,
                     size_t size, char unknown[64])
{
    size_t used = 0;
    unknown[0] = '\0';
    while (*text && used + 1 < size) {
        char   value[NAME_MAX_BYTES] = {*text, '\0'};
        size_t length = word_in_braces(text), step = 1;
        if (strncmp(text, "{{", 2) == 0 || strncmp(text, "}}", 2) == 0) {
            step = 2;
        } else if (length > 0) {
            if (!value_of(text + 1, length, n, index, value, sizeof value))
                snprintf(unknown, 64, "%.*s", (int)(length + 2), text);
            step = length + 2;
        }
        used += (size_t)snprintf(path + used, size - used, "%s", value);
        text += step;
    }
    return !*text && used < size;
}
