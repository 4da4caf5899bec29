/* SPDX-License-Identifier: Apache-2.0 */
/* Names of outputs, made from the names of inputs. */
#ifndef SAC_CLI_NAMES_H
#define SAC_CLI_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum { NAME_MAX_BYTES = 512, PATH_MAX_BYTES = 4096 };

struct naming {
    char path[PATH_MAX_BYTES];   /* the source of the names; secrets removed */
    char name[NAME_MAX_BYTES];   /* "a" of "cam1/a.mp4" */
    char folder[256];            /* "cam1"; of a URL its host */
    char unique[NAME_MAX_BYTES]; /* unique among the inputs */
};

/* of: a file, a folder, a URL, a pattern or "-". */
void naming_init(struct naming *n, const char *of);
/* Fill unique: the name, after folders' names if several inputs have the same one. by_ending:
 * inputs that differ only in their extension get outputs that differ in it too. */
void naming_part(struct naming *all, size_t count, bool by_ending);

/* Whether a text contains {name} or another word in braces, or doubled braces. */
bool template_is(const char *text);
/* Write the path for input number index. unknown: a word in braces that has no meaning, or empty.
 * false: too long. */
bool template_expand(const char *text, const struct naming *n, size_t index, char *path,
                     size_t size, char unknown[64]);

#endif
