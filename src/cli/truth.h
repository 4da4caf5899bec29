/* SPDX-License-Identifier: Apache-2.0 */
/* Ground truth of MOTChallenge's sequences, by files and folders. */
#ifndef SAC_CLI_TRUTH_H
#define SAC_CLI_TRUTH_H

#include "settings.h"
#include "fault.h"

enum { TRUTH_PATH_SIZE = 4096, TRUTH_NAME_SIZE = 128 };

struct truth {
    char name[TRUTH_NAME_SIZE];
    char gt[TRUTH_PATH_SIZE];
    char folder[TRUTH_PATH_SIZE];  /* of the sequence; empty: the file is in none */
    char seqinfo[TRUTH_PATH_SIZE]; /* empty: none */
};
struct truths {
    struct truth *items; /* owned */
    size_t        count;
};

/* Each text is a MOTChallenge file, a sequence's folder (gt.txt or gt/gt.txt in it) or a folder of
 * such folders, which are taken by name. A fault for what does not exist, and for a folder without
 * a sequence. */
int  truths_find(struct truths *out, const struct text_list *texts, struct fault *fault);
void truths_finish(struct truths *truths);

/* Which file of such an option belongs to which sequence, of which there must be as many. Where
 * each has one file that is named after it (SEQ.txt, SEQ/det.txt, SEQ/det/det.txt) that one, else
 * the one in its place. A shell's pattern sorts otherwise than --gt may be written.
 *
 * file_of  [truths->count] indices; freed by the caller. */
int truths_pair(const struct truths *truths, const struct text_list *files, const char *option,
                size_t **file_of, struct fault *fault);

bool is_existing_folder(const char *path);
/* folder/name into buf when there is such a file, else nothing. */
bool find_file_in(const char *folder, const char *name, char *buf, size_t size);

#endif
