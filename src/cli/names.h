/* SPDX-License-Identifier: Apache-2.0 */
/* Names of outputs, made of those of inputs. */
#ifndef SAC_CLI_NAMES_H
#define SAC_CLI_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum { NAME_MAX_BYTES = 512, PATH_MAX_BYTES = 4096 };

struct naming {
    char path[PATH_MAX_BYTES]; /* what the name is made of; no secrets in it */
    char name[NAME_MAX_BYTES]; /* "a" of "cam1/a.mp4" */
    char folder[256];          /* "cam1"; of a URL its host */
    char unique[NAME_MAX_BYTES]; /* differs from those of the other inputs */
};

/* of: a file, a folder, a URL, a pattern or "-". */
void naming_init(struct naming *n, const char *of);
/* Fill unique: the name, behind folders' names where several inputs have one. by_ending: files that differ in
 * their ending alone get outputs that do. */
void naming_part(struct naming *all, size_t count, bool by_ending);

/* Whether a text has {name}, {folder}, {index} or {stream} in it, or braces that are doubled. */
bool template_is(const char *text);
/* Write the path for input number index. *unknown: a word in braces that stands for nothing, to be freed by nobody;
 * or NULL. false: too long. */
bool template_expand(const char *text, const struct naming *n, size_t index, char *path, size_t size,
                     char unknown[64]);

#endif
