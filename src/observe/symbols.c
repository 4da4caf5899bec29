/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 512, SECTIONS_MAX = 4096, TABLE_BYTES_MAX = 64 << 20 };

struct symbol {
    uintptr_t from, to; /* as in the file */
    uint32_t  name;     /* in the file's names */
};

/* A program or library that is loaded. */
struct file {
    uintptr_t      bias, from, to; /* in memory */
    char           path[256];
    struct symbol *symbols;         /* [count] by address */
    uint32_t       count, first_id; /* first_id itself: of no symbol */
    char          *names;           /* [name_bytes], terminated */
    size_t         name_bytes;
    bool           begins; /* threads begin here */
};

struct sac_symbols {
    struct file *files;       /* [count] */
    int          count, last; /* the file of the last address */
    uint32_t     next_id;
    uint64_t loads, loads_seen; /* the loader's count, when the list was looked at; on the way */
    bool     refreshed;         /* nothing was asked to be looked at again */
    char     note[192];
};

struct sac_symbols *sac_symbols_create(void)
{
    struct sac_symbols *s = sac_new(struct sac_symbols);
    if (s)
        s->files = sac_calloc(FILES_MAX, sizeof *s->files);
    if (s && !s->files) {
        sac_free(s);
        return NULL;
    }
    if (s)
        s->next_id = SAC_SYMBOL_FIRST;
    return s;
}

void sac_symbols_destroy(struct sac_symbols **symbols)
{
    struct sac_symbols *s = *symbols;
    *symbols = NULL;
    if (!s)
        return;
    for (int i = 0; i < s->count; i++) {
        sac_free(s->files[i].symbols);
        sac_free(s->files[i].names);
    }
    sac_free(s->files);
    sac_free(s);
}

const char *sac_symbols_note(const struct sac_symbols *s)
{
    return s->note;
}

/* ---- reading a file ---- */

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* The table of all symbols, else that of the exported ones; false: there is none. */
static bool find_tables(int fd, ElfW(Shdr) * table, ElfW(Shdr) * names)
{
    ElfW(Ehdr) head;
    ElfW(Shdr) section;
    bool found = false;
    if (!read_at(fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_shentsize != sizeof section || head.e_shnum > SECTIONS_MAX)
        return false;
    for (int i = 0; i < head.e_shnum; i++) {
        if (!read_at(fd, &section, sizeof section, head.e_shoff + (uint64_t)i * sizeof section))
            return false;
        if (section.sh_type != SHT_SYMTAB && (section.sh_type != SHT_DYNSYM || found))
            continue;
        if (section.sh_link >= head.e_shnum ||
            !read_at(fd, names, sizeof *names, head.e_shoff + section.sh_link * sizeof section))
            return false;
        *table = section;
        found = true;
        if (section.sh_type == SHT_SYMTAB)
            break;
    }
    return found && table->sh_entsize == sizeof(ElfW(Sym)) && table->sh_size <= TABLE_BYTES_MAX &&
           names->sh_size <= TABLE_BYTES_MAX && names->sh_size > 0;
}

static int by_address(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void take_functions(struct file *f, const ElfW(Sym) * all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int type = ELF64_ST_TYPE(all[i].st_info);
        if ((type == STT_FUNC || type == STT_GNU_IFUNC) && all[i].st_shndx != SHN_UNDEF &&
            all[i].st_value && all[i].st_name < f->name_bytes)
            f->symbols[f->count++] =
                (struct symbol){all[i].st_value, all[i].st_value + all[i].st_size, all[i].st_name};
    }
    qsort(f->symbols, f->count, sizeof *f->symbols, by_address);
    for (uint32_t i = 0; i < f->count; i++) /* assembler code may leave the size out */
        if (f->symbols[i].to == f->symbols[i].from)
            f->symbols[i].to = i + 1 < f->count ? f->symbols[i + 1].from : f->symbols[i].from + 1;
}

/* False: no memory. */
static bool read_tables(int fd, struct file *f, const ElfW(Shdr) * table, const ElfW(Shdr) * names)
{
    const size_t n = table->sh_size / sizeof(ElfW(Sym));
    ElfW(Sym) *all = sac_alloc(SAC_MAX(table->sh_size, 1));
    f->names = sac_alloc(names->sh_size + 1);
    f->symbols = sac_calloc(n + 1, sizeof *f->symbols);
    const bool room = all && f->names && f->symbols;
    if (room && read_at(fd, all, table->sh_size, table->sh_offset) &&
        read_at(fd, f->names, names->sh_size, names->sh_offset)) {
        f->name_bytes = names->sh_size;
        f->names[f->name_bytes] = '\0';
        take_functions(f, all, n);
    }
    sac_free(all);
    return room;
}

static void read_file(struct sac_symbols *s, struct file *f)
{
    ElfW(Shdr) table = {0}, names = {0};
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (find_tables(fd, &table, &names) && !read_tables(fd, f, &table, &names)) {
        sac_free(f->names);
        sac_free(f->symbols);
        f->names = NULL;
        f->symbols = NULL;
        snprintf(s->note, sizeof s->note,
                 "no memory for the names of functions in '%.100s': they stand for the whole file",
                 f->path);
    }
    close(fd);
}

/* ---- what is loaded ---- */

static bool is_known(const struct sac_symbols *s, uintptr_t from, uintptr_t bias)
{
    for (int i = 0; i < s->count; i++)
        if (s->files[i].from == from && s->files[i].bias == bias)
            return true;
    return false;
}

static int add_file(struct dl_phdr_info *info, size_t size, void *symbols)
{
    struct sac_symbols *s = symbols;
    struct file         f = {.bias = info->dlpi_addr, .from = UINTPTR_MAX};
    (void)size;
    if (info->dlpi_adds == s->loads) /* nothing was loaded since */
        return 1;
    s->loads_seen = info->dlpi_adds;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        f.from = SAC_MIN(f.from, f.bias + part->p_vaddr);
        f.to = SAC_MAX(f.to, f.bias + part->p_vaddr + part->p_memsz);
    }
    if (f.to <= f.from || s->count == FILES_MAX || is_known(s, f.from, f.bias))
        return 0;
    if (info->dlpi_name[0])
        snprintf(f.path, sizeof f.path, "%s", info->dlpi_name);
    else if (readlink("/proc/self/exe", f.path, sizeof f.path - 1) < 0)
        snprintf(f.path, sizeof f.path, "/proc/self/exe");
    /* A function that nobody puts another one in the place of, as sanitizers do with many. */
    const uintptr_t libc = (uintptr_t)(void (*)(void))gnu_get_libc_version;
    f.begins = libc >= f.from && libc < f.to;
    s->files[s->count++] = f;
    return 0;
}

void sac_symbols_refresh(struct sac_symbols *s)
{
    s->refreshed = false;
}

/* The files are read after the list, whose lock is the loader's. */
static void look_again(struct sac_symbols *s)
{
    const int before = s->count;
    s->refreshed = true;
    dl_iterate_phdr(add_file, s);
    s->loads = s->loads_seen;
    for (int i = before; i < s->count; i++) {
        struct file *f = &s->files[i];
        read_file(s, f);
        f->first_id = s->next_id;
        s->next_id += f->count + 1;
    }
}

static struct file *file_at(struct sac_symbols *s, uintptr_t address)
{
    for (int i = 0; i < s->count; i++) {
        const int at = (s->last + i) % s->count;
        if (address >= s->files[at].from && address < s->files[at].to) {
            s->last = at;
            return &s->files[at];
        }
    }
    return NULL;
}

static struct file *file_of(struct sac_symbols *s, uintptr_t address)
{
    struct file *f = file_at(s, address);
    if (f || s->refreshed)
        return f;
    look_again(s);
    return file_at(s, address);
}

/* ---- addresses to names ---- */

/* The last function that begins at the address or before; -1: none. */
static int64_t symbol_at(const struct file *f, uintptr_t address)
{
    uint32_t low = 0, high = f->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (f->symbols[middle].from <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < f->symbols[low - 1].to ? (int64_t)low - 1 : -1;
}

uint32_t sac_symbols_find(struct sac_symbols *s, uintptr_t address)
{
    const struct file *f = file_of(s, address);
    return f ? (uint32_t)(f->first_id + 1 + symbol_at(f, address - f->bias))
             : (uint32_t)SAC_SYMBOL_GENERATED;
}

static const struct file *file_of_id(const struct sac_symbols *s, uint32_t id)
{
    for (int i = 0; i < s->count; i++)
        if (id >= s->files[i].first_id && id - s->files[i].first_id <= s->files[i].count)
            return &s->files[i];
    return NULL;
}

static const char *name_of(const struct file *f, uint32_t id)
{
    return id > f->first_id ? f->names + f->symbols[id - f->first_id - 1].name : "";
}

bool sac_symbols_is_root(struct sac_symbols *s, uintptr_t address)
{
    const struct file *f = file_of(s, address);
    return f && (f->begins || strcmp(name_of(f, sac_symbols_find(s, address)), "_start") == 0);
}

void sac_symbols_name(const struct sac_symbols *s, uint32_t id, char *buf, size_t size)
{
    const struct file *f = file_of_id(s, id);
    const char        *name = f ? name_of(f, id) : "", *slash = f ? strrchr(f->path, '/') : NULL;
    /* "conv_lines.constprop.0", "memcpy@@GLIBC_2.14" */
    const size_t length = strcspn(name, ".@; ");
    if (!f)
        snprintf(buf, size, "[generated]");
    else if (length)
        snprintf(buf, size, "%.*s", (int)length, name);
    else
        snprintf(buf, size, "[%s]", slash ? slash + 1 : f->path);
}
