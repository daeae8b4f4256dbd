/* base/machine/cgroup.c - limits of control groups, versions 1 and 2.
 *
 * /proc/self/cgroup says in which group the process is, /proc/self/mountinfo where the groups are
 * mounted; in a container the mount may show only a part of the tree, so the group's path is cut by
 * the mount's root, and the mount point itself is used where that does not fit. A limit of an outer
 * group holds for the inner ones: all folders up to the mount point are read. */
#include "base/machine/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/number.h"

/* ---- files ---- */

/* Read the first line of folder/file; false if there is none. */
static bool read_line(const char *folder, const char *file, char *line, int size) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path) return false;
  FILE *f = fopen(path, "re");
  if (!f) return false;
  bool found = fgets(line, size, f) != NULL;
  fclose(f);
  return found;
}

/* Tell whether the comma-separated list has this member. */
static bool list_has(const char *list, const char *member) {
  size_t length = strlen(member);
  for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
    if (strncmp(at, member, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
  return false;
}

/* ---- where a controller's group is ---- */

/* controller: "cpu" or "memory" for version 1, "" for version 2. */
typedef struct place {
  const char *root, *controller;
  char group[PATH_MAX];       /* path of the process's group in the tree */
  char mount_root[PATH_MAX];  /* part of the tree that is mounted ... */
  char mount_point[PATH_MAX]; /* ... here, with root before it */
} place;

/* A line of /proc/self/cgroup is "number:controllers:path"; version 2 has none between the
 * colons. */
static bool match_group(place *p, char *line) {
  char *controllers = strchr(line, ':');
  char *path = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!path) return false;
  *path = '\0';
  if (!list_has(controllers + 1, p->controller)) return false;
  snprintf(p->group, sizeof p->group, "%s", path + 1);
  return true;
}

/* A line of mountinfo is "id parent dev root point options [optional ...] - type source
 * options". */
static bool match_mount(place *p, char *line) {
  char root[PATH_MAX], point[PATH_MAX], type[32], options[PATH_MAX];
  char *tail = strstr(line, " - ");
  _Static_assert(PATH_MAX > 4095, "the widths below are those of the buffers");
  if (!tail || sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2 ||
      sscanf(tail, " - %31s %*s %4095s", type, options) != 2)
    return false;
  bool fits = *p->controller ? strcmp(type, "cgroup") == 0 && list_has(options, p->controller)
                             : strcmp(type, "cgroup2") == 0;
  if (!fits) return false;
  snprintf(p->mount_root, sizeof p->mount_root, "%s", root);
  int length = snprintf(p->mount_point, sizeof p->mount_point, "%s%s", p->root, point);
  return length < (int)sizeof p->mount_point;
}

/* Offer the lines of a file of /proc to match until it takes one. */
static bool scan(place *p, const char *file, bool (*match)(place *, char *)) {
  char path[PATH_MAX], *line = NULL;
  size_t size = 0;
  snprintf(path, sizeof path, "%s/proc/self/%s", p->root, file);
  FILE *f = fopen(path, "re");
  bool found = false;
  while (f && !found && getline(&line, &size, f) > 0) {
    line[strcspn(line, "\n")] = '\0';
    found = match(p, line);
  }
  free(line);
  if (f) fclose(f);
  return found;
}

/* Return the group's path below the mount point: "" if the mount shows the group itself or less. */
static const char *visible_path(const place *p) {
  size_t length = strcmp(p->mount_root, "/") == 0 ? 0 : strlen(p->mount_root);
  if (strncmp(p->group, p->mount_root, length) != 0 || strstr(p->group, "/..")) return "";
  const char *rest = p->group + length;
  return rest[0] == '/' && rest[1] != '\0' ? rest : "";
}

/* Call read with every folder from the group up to the mount point. */
static void climb(place *p, gp_cgroup_limits *limits,
                  void (*read)(const char *folder, gp_cgroup_limits *limits)) {
  if (!scan(p, "cgroup", match_group) || !scan(p, "mountinfo", match_mount)) return;
  char folder[2 * PATH_MAX];
  size_t top = strlen(p->mount_point);
  snprintf(folder, sizeof folder, "%s%s", p->mount_point, visible_path(p));
  for (;;) {
    read(folder, limits);
    char *slash = strrchr(folder, '/');
    if (!slash || (size_t)(slash - folder) < top) return;
    *slash = '\0';
  }
}

/* ---- limits ---- */

static void limit_cores(gp_cgroup_limits *limits, double quota, double period) {
  if (!(quota > 0 && period > 0)) return; /* -1 means none */
  double cores = quota / period;
  if (limits->cores <= 0 || cores < limits->cores) limits->cores = cores;
}

/* Text like "max", or version 1's huge number, means no limit. */
static void limit_memory(gp_cgroup_limits *limits, const char *text) {
  char *end;
  unsigned long long bytes = strtoull(text, &end, 10);
  if (end == text || bytes == 0 || bytes > (unsigned long long)INT64_MAX / 2) return;
  if (limits->memory == 0 || bytes < limits->memory) limits->memory = (size_t)bytes;
}

static void read_v2(const char *folder, gp_cgroup_limits *limits) {
  char line[128];
  if (read_line(folder, "cpu.max", line, sizeof line)) { /* "QUOTA PERIOD" or "max PERIOD" */
    char *period;
    double quota = gp_number_read(line, &period);
    if (period > line) limit_cores(limits, quota, gp_number_read(period, NULL));
  }
  if (read_line(folder, "memory.max", line, sizeof line)) limit_memory(limits, line);
}

static void read_v1_cpu(const char *folder, gp_cgroup_limits *limits) {
  char quota[64], period[64];
  if (read_line(folder, "cpu.cfs_quota_us", quota, sizeof quota) &&
      read_line(folder, "cpu.cfs_period_us", period, sizeof period))
    limit_cores(limits, gp_number_read(quota, NULL), gp_number_read(period, NULL));
}

static void read_v1_memory(const char *folder, gp_cgroup_limits *limits) {
  char line[64];
  if (read_line(folder, "memory.limit_in_bytes", line, sizeof line)) limit_memory(limits, line);
}

gp_cgroup_limits gp_cgroup_read(const char *root) {
  gp_cgroup_limits limits = {0};
  climb(&(place){.root = root, .controller = ""}, &limits, read_v2);
  climb(&(place){.root = root, .controller = "cpu"}, &limits, read_v1_cpu);
  climb(&(place){.root = root, .controller = "memory"}, &limits, read_v1_memory);
  return limits;
}
