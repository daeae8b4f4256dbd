/* base/machine/resident.c - what the memory of this process that the kernel has given pages to is
 * for.
 *
 * The kernel lists the mappings of a process and how much of each is resident (smaps); the C
 * library knows how much of its heap is in use. Together with what the runtime counts itself these
 * explain every page. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "gpipe/process.h"

/* A mapping, as the lines of smaps tell it. */
typedef struct mapping {
  unsigned long first, end;
  char rights[5];
  bool file, stack; /* of a file; the stack of the first thread */
} mapping;

enum { MOST_GUARD = 1 << 16 }; /* bytes below a thread's stack that may not be touched */

/* Read the line that begins a mapping: "7f12a000-7f12b000 rw-p 00000000 00:00 0   [stack]". */
static bool read_mapping(const char *line, mapping *m) {
  int name = 0;
  unsigned long inode = 0;
  if (sscanf(line, "%lx-%lx %4s %*s %*s %lu %n", &m->first, &m->end, m->rights, &inode, &name) < 4)
    return false;
  m->file = inode != 0 || strncmp(line + name, "[v", 2) == 0; /* [vdso], [vvar] */
  m->stack = strncmp(line + name, "[stack]", 7) == 0;
  return true;
}

/* Is this the stack of a thread: does it follow pages that may not be touched? */
static bool is_thread_stack(const mapping *m, const mapping *before) {
  return before->end == m->first && strncmp(before->rights, "---", 3) == 0 &&
         before->end - before->first <= MOST_GUARD;
}

/* The field that a mapping counts in. */
static size_t *field_of(gp_resident_info *info, const mapping *m, const mapping *before) {
  if (m->file) return &info->files;
  if (m->stack || is_thread_stack(m, before)) return &info->stacks;
  if (m->rights[2] == 'x') return &info->code;
  return &info->heap;
}

static void add_mappings(gp_resident_info *info) {
  char line[512];
  unsigned long kib;
  mapping now = {0}, before = {0}, next;
  FILE *f = fopen("/proc/self/smaps", "re");
  while (f && fgets(line, sizeof line, f)) {
    if (read_mapping(line, &next)) {
      before = now;
      now = next;
    } else if (sscanf(line, "Rss: %lu kB", &kib) == 1) {
      *field_of(info, &now, &before) += (size_t)kib * 1024;
    }
  }
  if (f) fclose(f);
}

gp_resident_info gp_resident(void) {
  gp_resident_info info = {.runtime = gp_memory().live};
  add_mappings(&info);
  info.resident = info.files + info.stacks + info.code + info.heap;
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  struct mallinfo2 heap = mallinfo2();
  info.allocated = heap.uordblks + heap.hblkhd;
#else
  info.allocated = info.runtime;
#endif
  return info;
}
