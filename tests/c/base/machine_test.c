/* tests/c/base/machine_test.c - what the process may use, with control groups made of ordinary
 * files. */
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/machine/cgroup.h"
#include "base/machine/cores.h"
#include "test.h"

static char root[64]; /* stands for "/" */

/* Stands in for the C library's function, so that a case can refuse it as a sandbox does. */
static bool affinity_is_refused;

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *cores) {
  if (affinity_is_refused) return errno = EPERM, -1;
  long done = syscall(SYS_sched_getaffinity, process, bytes, cores);
  if (done < 0) return -1;
  memset((char *)cores + done, 0, bytes - (size_t)done);
  return 0;
}

/* Write a file below root, making its folders. */
static void put(const char *path, const char *text) {
  char full[PATH_MAX];
  snprintf(full, sizeof full, "%s%s", root, path);
  for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    CHECK(mkdir(full, 0700) == 0 || errno == EEXIST);
    *slash = '/';
  }
  FILE *f = fopen(full, "w");
  CHECK(f != NULL);
  if (!f) return;
  fputs(text, f);
  fclose(f);
}

static void begin(const char *cgroup, const char *mountinfo) {
  strcpy(root, "/tmp/gpipe-machine-XXXXXX");
  CHECK(mkdtemp(root) != NULL);
  put("/proc/self/cgroup", cgroup);
  put("/proc/self/mountinfo", mountinfo);
}

static void end(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  CHECK(system(command) == 0);
}

#define V2 "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"

TEST(version_2_limits_are_read) {
  begin("0::/user/job\n", V2);
  put("/sys/fs/cgroup/user/job/cpu.max", "150000 100000\n");
  put("/sys/fs/cgroup/user/job/memory.max", "max\n");
  put("/sys/fs/cgroup/user/memory.max", "1073741824\n");
  put("/sys/fs/cgroup/user/cpu.max", "max 100000\n");
  gp_cgroup_limits limits = gp_cgroup_read(root);
  CHECK_NEAR(limits.cores, 1.5, 1e-12);
  CHECK(limits.memory == 1073741824);
  end();
}

TEST(the_tightest_limit_on_the_way_up_counts) {
  begin("0::/a/b\n", V2);
  put("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  put("/sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
  CHECK_NEAR(gp_cgroup_read(root).cores, 2, 1e-12);
  end();
}

TEST(a_mount_may_show_a_part_of_the_tree) {
  /* In a container: the mount's root is the container's own group. */
  begin("0::/docker/77/inner\n", "31 23 0:28 /docker/77 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("/sys/fs/cgroup/inner/cpu.max", "50000 100000\n");
  put("/sys/fs/cgroup/cpu.max", "70000 100000\n");
  CHECK_NEAR(gp_cgroup_read(root).cores, 0.5, 1e-12);
  end();
  /* In a namespace of its own: the group's path leads outside. */
  begin("0::/../other\n", V2);
  put("/sys/fs/cgroup/cpu.max", "90000 100000\n");
  CHECK_NEAR(gp_cgroup_read(root).cores, 0.9, 1e-12);
  end();
}

TEST(version_1_limits_are_read) {
  begin("4:memory:/job\n3:cpuset:/\n2:cpu,cpuacct:/job\n0::/\n",
        "30 23 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "31 30 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "32 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "33 30 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  gp_cgroup_limits limits = gp_cgroup_read(root);
  CHECK_NEAR(limits.cores, 2.5, 1e-12);
  CHECK(limits.memory == 2147483648);
  end();
}

TEST(nonsense_is_no_limit) {
  begin("garbage\n0::\n::\n", "also garbage\n- - -\n" V2);
  put("/sys/fs/cgroup/cpu.max", "nonsense\n");
  put("/sys/fs/cgroup/memory.max", "-5x\n");
  gp_cgroup_limits limits = gp_cgroup_read(root);
  CHECK(limits.cores == 0 && limits.memory == 0);
  end();
  limits = gp_cgroup_read("/nowhere/at/all");
  CHECK(limits.cores == 0 && limits.memory == 0);
}

TEST(this_machine_is_described) {
  gp_machine machine = gp_machine_info();
  gp_cores allowed = gp_cores_allowed();
  CHECK(machine.cores >= 1 && machine.cores <= gp_cores_count(&allowed));
  CHECK(machine.memory > 1 << 20);
  CHECK(strcmp(machine.isa, "avx512") == 0 || strcmp(machine.isa, "avx2") == 0 ||
        strcmp(machine.isa, "baseline") == 0);
  CHECK(strlen(machine.model) > 0);
}

TEST(cores_are_those_of_the_machine_where_the_system_does_not_say) {
  affinity_is_refused = true;
  gp_cores cores = gp_cores_allowed();
  affinity_is_refused = false;
  CHECK(gp_cores_count(&cores) == (int)sysconf(_SC_NPROCESSORS_ONLN));
}

TEST_MAIN(cores_are_those_of_the_machine_where_the_system_does_not_say, version_2_limits_are_read,
          the_tightest_limit_on_the_way_up_counts, a_mount_may_show_a_part_of_the_tree,
          version_1_limits_are_read, nonsense_is_no_limit, this_machine_is_described)
