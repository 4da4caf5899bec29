/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cgroup.h"

/* "max", or a number; version 1 writes a very large one for none. */
static uint64_t read_limit(const char *folder, const char *name)
{
    char     path[PATH_MAX], text[32] = "", *end;
    uint64_t limit = UINT64_MAX;
    FILE    *file = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path)
        file = fopen(path, "re");
    if (!file)
        return UINT64_MAX;
    if (fgets(text, sizeof text, file)) {
        errno = 0;
        uint64_t value = strtoumax(text, &end, 10);
        limit = end == text || errno ? UINT64_MAX : value;
    }
    fclose(file);
    return limit;
}

/* From the group up to the root of its hierarchy. In a container the path may be the host's, of
 * which only the root is seen, and that is then the container's own group. */
static uint64_t least_limit(const char *root, const char *group, const char *name)
{
    char     folder[PATH_MAX];
    size_t   floor = strlen(root);
    uint64_t least = read_limit(root, name);
    if (strstr(group, "/..") ||
        (size_t)snprintf(folder, sizeof folder, "%s%s", root, group) >= sizeof folder)
        return least;
    for (size_t length = strlen(folder); length > floor; length--) {
        bool whole = folder[length] == '\0' || folder[length] == '/';
        folder[length] = '\0';
        uint64_t limit = whole ? read_limit(folder, name) : UINT64_MAX;
        least = SAC_MIN(least, limit);
    }
    return least;
}

static bool has_memory(const char *controllers)
{
    const char *at = strstr(controllers, "memory");
    bool        begins = at && (at == controllers || at[-1] == ',');
    return begins && (at[6] == '\0' || at[6] == ',');
}

/* "4:cpu,memory:/path" of version 1, "0::/path" of version 2. */
static uint64_t limit_of_line(char *line, const char *root)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL, folder[PATH_MAX];
    if (!group)
        return UINT64_MAX;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    controllers++;
    if (*controllers)
        return has_memory(controllers) &&
                       (size_t)snprintf(folder, sizeof folder, "%s/memory", root) < sizeof folder
                   ? least_limit(folder, group, "memory.limit_in_bytes")
                   : UINT64_MAX;
    return least_limit(root, group, "memory.max");
}

uint64_t sac_cgroup_memory_limit(const char *list, const char *root)
{
    char     line[PATH_MAX];
    uint64_t least = UINT64_MAX;
    FILE    *file = fopen(list, "re");
    while (file && fgets(line, sizeof line, file)) {
        uint64_t limit = limit_of_line(line, root);
        least = SAC_MIN(least, limit);
    }
    if (file)
        fclose(file);
    return least;
}

uint64_t sac_memory_allowed(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGE_SIZE);
    uint64_t   machine = UINT64_MAX;
    if (pages > 0 && page_bytes > 0)
        machine = (uint64_t)pages * (uint64_t)page_bytes;
    uint64_t group = sac_cgroup_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    return SAC_MIN(machine, group);
}
