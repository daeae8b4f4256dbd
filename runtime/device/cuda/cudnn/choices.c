/* device/cuda/cudnn/choices.c - see choices.h.
 *
 * A line of the file holds a kind of work, the number and the index of its engine, and a checksum
 * of all of it; lines that do not agree with theirs are ignored. Lines are only added, each by one
 * write while the file is locked, so that processes that add at the same time wait for each other
 * and the choice of the first one holds. */
#include "device/cuda/cudnn/choices.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

enum { LINE = GP_CUDNN_KIND + 80, PATH = 4096 };

/* ---- lines --------------------------------------------------------------------------------- */

/* Write "KIND = NUMBER INDEX CHECKSUM"; returns its length, 0 if it does not fit. */
static size_t write_line(char line[LINE], const char *kind, const gp_cudnn_engine *engine) {
  int n = snprintf(line, LINE, "%s = %d %" PRId64, kind, engine->number, engine->index);
  if (n < 0 || n >= LINE) return 0;
  const uint64_t sum = gp_hash_text(GP_HASH_START, line);
  n += snprintf(line + n, (size_t)(LINE - n), " %016" PRIx64 "\n", sum);
  return n < LINE ? (size_t)n : 0;
}

/* True if the line is a whole one of this kind. */
static bool read_line(const char *line, const char *kind, gp_cudnn_engine *engine) {
  const size_t length = strlen(kind);
  char again[LINE];
  gp_cudnn_engine read = {0};
  if (strncmp(line, kind, length) != 0 || strncmp(line + length, " = ", 3) != 0) return false;
  if (sscanf(line + length + 3, "%d %" SCNd64, &read.number, &read.index) != 2) return false;
  if (read.number < 0 || !write_line(again, kind, &read) || strcmp(line, again) != 0) return false;
  *engine = read;
  return true;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* Make all folders of a path; existing ones stay. */
static void make_folders(char *path) {
  for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
    *at = '\0';
    (void)mkdir(path, 0777);
    *at = '/';
  }
}

/* Write the file's path, and make its folders; false if there is no place for it. Relative paths do
 * not count, as the XDG rules say. */
static bool write_path(char path[PATH]) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  const bool given = cache && *cache == '/';
  if (!given && !(home && *home == '/')) return false;
  const int length = snprintf(path, PATH, "%s%s/gpipe-lua/convolutions", given ? cache : home,
                              given ? "" : "/.cache");
  if (length < 0 || length >= PATH) return false;
  make_folders(path);
  return true;
}

/* Read from the beginning. *whole: the file ends with a whole line. */
static bool find_in(FILE *file, const char *kind, gp_cudnn_engine *engine, bool *whole) {
  char line[LINE];
  *whole = true;
  rewind(file);
  while (fgets(line, sizeof line, file)) {
    *whole = strchr(line, '\n') != NULL;
    if (read_line(line, kind, engine)) return true;
  }
  return false;
}

/* The file is locked: take its choice, or add this one. What cannot be written is made again. */
static void join(FILE *file, const char *kind, gp_cudnn_engine *engine) {
  char line[LINE + 1] = "\n";
  bool whole;
  if (find_in(file, kind, engine, &whole)) return;
  const size_t bytes = write_line(line + 1, kind, engine);
  if (bytes == 0 || fseek(file, 0, SEEK_END) != 0) return;
  (void)fwrite(whole ? line + 1 : line, 1, whole ? bytes : bytes + 1, file);
  (void)fflush(file);
}

static void join_file(const char *kind, gp_cudnn_engine *engine) {
  char path[PATH];
  FILE *file = write_path(path) ? fopen(path, "a+e") : NULL;
  if (!file) return;
  if (flock(fileno(file), LOCK_EX) == 0) join(file, kind, engine);
  (void)fclose(file); /* which unlocks it */
}

static bool find_in_file(const char *kind, gp_cudnn_engine *engine) {
  char path[PATH];
  bool whole;
  FILE *file = write_path(path) ? fopen(path, "re") : NULL;
  if (!file) return false;
  const bool found = flock(fileno(file), LOCK_SH) == 0 && find_in(file, kind, engine, &whole);
  (void)fclose(file);
  return found;
}

/* ---- the process --------------------------------------------------------------------------- */

/* What holds in this process. */
typedef struct held {
  gp_cudnn_engine engine;
  struct held *next;
  char kind[GP_CUDNN_KIND];
} held;

static held *choices;

static void hold(const char *kind, const gp_cudnn_engine *engine) {
  held *h = calloc(1, sizeof *h);
  if (!h) return;
  snprintf(h->kind, sizeof h->kind, "%s", kind);
  h->engine = *engine, h->next = choices;
  choices = h;
}

bool gp_cudnn_choices_find(const char *kind, gp_cudnn_engine *engine) {
  for (const held *h = choices; h; h = h->next)
    if (strcmp(h->kind, kind) == 0) return *engine = h->engine, true;
  if (!find_in_file(kind, engine)) return false;
  hold(kind, engine);
  return true;
}

void gp_cudnn_choices_keep(const char *kind, gp_cudnn_engine *engine) {
  join_file(kind, engine);
  hold(kind, engine);
}
