/* device/cuda/paths.c - which path each kind of work takes on a device, and why not a faster one.
 *
 * The code that decides on a path notes it: a library's plan, our own kernels, what was tried
 * before. Reports read a list per device, without repetitions. A model has a few dozens of shapes;
 * if a script makes ever new ones, the list gets full, and later ones are only counted. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/table.h"

enum { MOST = 256 }; /* notes per device */

struct gp_noted_path {
  gp_work_path path;
  gp_noted_path *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards every device's list */

/* Compare texts as they are kept, which may be shortened. */
static bool same(const gp_work_path *a, const gp_work_path *b) {
  return strcmp(a->kind, b->kind) == 0 && strcmp(a->shape, b->shape) == 0 &&
         strcmp(a->path, b->path) == 0;
}

/* Find the place of an equal note, or of a new one; the last place of a full list stands for all
 * others. */
static gp_noted_path **find(gp_gpu *gpu, gp_work_path *path) {
  gp_noted_path **at = &gpu->paths;
  for (int i = 0; *at && !same(&(*at)->path, path); i++) {
    at = &(*at)->next;
    if (i + 2 == MOST) *path = (gp_work_path){"others", "", "not listed", "", 0};
  }
  return at;
}

const char *gp_gpu_dtype_name(gp_dtype dtype) {
#define NAME(id, text, bytes, is_float) text,
  static const char *const names[] = {GP_DTYPE_LIST(NAME)};
#undef NAME
  return names[dtype];
}

/* If there is no memory for a note, leave it out: a step should not fail for a report. */
void gp_gpu_note_path(gp_gpu *gpu, const char *kind, const char *shape, const char *path,
                      const char *why) {
  gp_work_path note = {.count = 0};
  snprintf(note.kind, sizeof note.kind, "%s", kind);
  snprintf(note.shape, sizeof note.shape, "%s", shape);
  snprintf(note.path, sizeof note.path, "%s", path);
  snprintf(note.why, sizeof note.why, "%s", why ? why : "");
  pthread_mutex_lock(&lock);
  gp_noted_path **at = find(gpu, &note);
  if (!*at && (*at = calloc(1, sizeof **at))) (*at)->path = note;
  if (*at) (*at)->path.count++;
  pthread_mutex_unlock(&lock);
}

bool gp_cuda_path(const gp_gpu *gpu, int i, gp_work_path *path) {
  pthread_mutex_lock(&lock);
  const gp_noted_path *at = gpu->paths;
  while (at && i-- > 0) at = at->next;
  if (at) *path = at->path;
  pthread_mutex_unlock(&lock);
  return at != NULL;
}

void gp_cuda_paths_close(gp_gpu *gpu) {
  while (gpu->paths) {
    gp_noted_path *next = gpu->paths->next;
    free(gpu->paths);
    gpu->paths = next;
  }
}
