/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions by address, from the symbol tables of the files that the process has loaded.
 * Neither dladdr nor backtrace_symbols know functions that a library does not export, which are
 * nearly all of ours. Not for several threads at once. */
#ifndef SAC_OBSERVE_SYMBOLS_H
#define SAC_OBSERVE_SYMBOLS_H

#include "base/base.h"

enum {
    SAC_SYMBOL_GENERATED,   /* in no file: code that was made while the program ran */
    SAC_SYMBOL_FIRST = 1024 /* ids before it are the caller's own */
};

struct sac_symbols;

/* NULL: no memory. */
struct sac_symbols *sac_symbols_create(void);
void                sac_symbols_destroy(struct sac_symbols **symbols);
/* Files that were loaded since are looked at again, once. */
void sac_symbols_refresh(struct sac_symbols *symbols);
/* The id of the function that the address is in, the same for all of its addresses. */
uint32_t sac_symbols_find(struct sac_symbols *symbols, uintptr_t address);
/* Whether the address is where threads begin: in the C library, or the program's first function. */
bool sac_symbols_is_root(struct sac_symbols *symbols, uintptr_t address);
/* "conv_lines", "[libc.so.6]", "[generated]". What compilers append to a name is left out. */
void sac_symbols_name(const struct sac_symbols *symbols, uint32_t id, char *buf, size_t size);
/* A sentence about what is missing; empty: nothing. */
const char *sac_symbols_note(const struct sac_symbols *symbols);

#endif
