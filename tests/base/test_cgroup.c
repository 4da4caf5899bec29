/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups in folders made here, as Linux shows them. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/cgroup.h"
#include "tests/test.h"

static char folder[] = "/tmp/saccade-test-cgroup-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static uint64_t limit_with(const char *list)
{
    char path[512];
    write_text("list", list);
    snprintf(path, sizeof path, "%s", in_folder("list"));
    return sac_cgroup_memory_limit(path, in_folder("root"));
}

static int set_up(void **state)
{
    static const char *const folders[] = {
        "root", "root/a", "root/a/b", "root/memory", "root/memory/docker", "root/memory/docker/x"};
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    for (size_t i = 0; i < SAC_COUNT(folders); i++)
        if (mkdir(in_folder(folders[i]), 0700) != 0)
            return -1;
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void version_2_counts_the_groups_above(void **state)
{
    (void)state;
    assert_true(limit_with("0::/a/b\n") == UINT64_MAX); /* no controller, so no files */
    write_text("root/a/b/memory.max", "max\n");
    assert_true(limit_with("0::/a/b\n") == UINT64_MAX);
    write_text("root/a/memory.max", "4194304\n");
    assert_true(limit_with("0::/a/b\n") == 4194304);
    write_text("root/a/b/memory.max", "1048576\n");
    assert_true(limit_with("0::/a/b\n") == 1048576);
    assert_true(limit_with("0::/a\n") == 4194304);
    assert_true(limit_with("0::/\n") == UINT64_MAX);
}

/* With a name space of its own, or the host's path where only the container's group is mounted. */
static void a_container_sees_its_own_root(void **state)
{
    (void)state;
    write_text("root/memory.max", "777216\n");
    assert_true(limit_with("0::/\n") == 777216);
    assert_true(limit_with("0::/system.slice/docker-1234.scope\n") == 777216);
    assert_true(limit_with("0::/../../a\n") == 777216);
    unlink(in_folder("root/memory.max"));
}

static void version_1_has_a_hierarchy_for_memory(void **state)
{
    (void)state;
    const char *list = "12:cpuset:/docker/x\n4:cpu,memory:/docker/x\n1:name=systemd:/a/b\n";
    write_text("root/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_text("root/memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
    write_text("root/memory/docker/x/memory.limit_in_bytes", "536870912\n");
    assert_true(limit_with(list) == 536870912);
    assert_true(limit_with("4:memory:/docker\n") == 9223372036854771712u);
    assert_true(limit_with("4:memoryless:/docker/x\n") == UINT64_MAX);
}

static void nonsense_is_no_limit(void **state)
{
    (void)state;
    assert_true(limit_with("") == UINT64_MAX);
    assert_true(limit_with("nonsense\n0:nonsense\n") == UINT64_MAX);
    write_text("root/a/memory.max", "many\n");
    assert_true(limit_with("0::/a\n") == UINT64_MAX);
    write_text("root/a/memory.max", "99999999999999999999999999\n");
    assert_true(limit_with("0::/a\n") == UINT64_MAX);
    assert_true(sac_cgroup_memory_limit("/nowhere/list", "/nowhere") == UINT64_MAX);
}

static void this_process_may_use_something(void **state)
{
    (void)state;
    assert_true(sac_memory_allowed() > 1 << 20);
    assert_true(sac_memory_allowed() <=
                (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGE_SIZE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_2_counts_the_groups_above),
        cmocka_unit_test(a_container_sees_its_own_root),
        cmocka_unit_test(version_1_has_a_hierarchy_for_memory),
        cmocka_unit_test(nonsense_is_no_limit),
        cmocka_unit_test(this_process_may_use_something),
    };
    return cmocka_run_group_tests_name("base/cgroup", tests, set_up, tear_down);
}
