/* base/machine/machine.c - what this process may use of the machine.
 *
 * Numbers of the machine are not those of the process: containers and taskset give it less, and a
 * runtime that starts a thread per core of the machine under a quota of two runs slower than with
 * two threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/machine/cgroup.h"
#include "base/machine/cores.h"
#include "gpipe/process.h"

static const char *find_isa(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "avx512";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
  return "baseline";
}

/* Read the value of the first line of /proc/cpuinfo that begins with "model name". */
static void find_model(char *model, size_t size) {
  char line[256];
  snprintf(model, size, "unknown processor");
  FILE *f = fopen("/proc/cpuinfo", "re");
  while (f && fgets(line, sizeof line, f)) {
    char *value = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !value) continue;
    value += 1 + strspn(value + 1, " \t");
    value[strcspn(value, "\n")] = '\0';
    snprintf(model, size, "%s", value);
    break;
  }
  if (f) fclose(f);
}

/* Round up: a quota of 1.5 cores keeps two threads busy for most of the time. */
static int count_cores(double quota) {
  gp_cores allowed = gp_cores_allowed();
  int cores = gp_cores_count(&allowed);
  if (quota > 0 && ceil(quota) < cores) cores = (int)ceil(quota);
  return cores > 0 ? cores : 1;
}

static size_t count_memory(size_t limit) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
  if (limit > 0 && (memory == 0 || limit < memory)) memory = limit;
  return memory;
}

/* Read the number behind a name in a file of /proc, in KiB; 0 if it is not there. */
static size_t read_kib(const char *path, const char *name) {
  char line[256];
  unsigned long long kib = 0;
  FILE *f = fopen(path, "re");
  while (f && !kib && fgets(line, sizeof line, f))
    if (strncmp(line, name, strlen(name)) == 0) kib = strtoull(line + strlen(name), NULL, 10);
  if (f) fclose(f);
  return (size_t)kib * 1024;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Count what the system has, within the limits of the group and of the process (ulimit -v). The
 * group's limit is for all of its processes; what this one holds is subtracted. */
static size_t count_available(size_t memory) {
  size_t held = read_kib("/proc/self/status", "VmRSS:"),
         space = read_kib("/proc/self/status", "VmSize:");
  size_t system = read_kib("/proc/meminfo", "MemAvailable:");
  size_t available = memory > held ? memory - held : 0;
  struct rlimit limit;
  if (system) available = smaller(available, system);
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    available = smaller(available, limit.rlim_cur > space ? (size_t)limit.rlim_cur - space : 0);
  return available;
}

gp_machine gp_machine_info(void) {
  gp_cgroup_limits limits = gp_cgroup_read("");
  gp_machine machine = {
      .cores = count_cores(limits.cores), .memory = count_memory(limits.memory), .isa = find_isa()};
  machine.available = count_available(machine.memory);
  find_model(machine.model, sizeof machine.model);
  return machine;
}
