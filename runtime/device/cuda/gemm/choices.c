/* device/cuda/gemm/choices.c - see choices.h.
 *
 * A line holds a kind, an algorithm and a checksum of both, in hexadecimal words. A new file
 * replaces the old one by rename, so that no reader sees half of one. A lock file beside it makes
 * processes that add at the same time wait for each other, so that none drops another's line. If
 * the file cannot be read or written, nothing happens: a choice that is not kept is made again. */
#include "device/cuda/gemm/choices.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = GP_GEMM_KIND + GP_GEMM_CHOICE, LINE = 17 * (WORDS + 1) + 2, PATH = 4096 };

/* ---- lines --------------------------------------------------------------------------------- */

/* Source: Fowler, Noll and Vo, FNV-1a, over words instead of bytes. */
static uint64_t sum_of(const uint64_t words[WORDS]) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int i = 0; i < WORDS; i++) hash = (hash ^ words[i]) * 0x100000001b3u;
  return hash;
}

static bool read_line(const char *line, gp_gemm_choice *choice) {
  uint64_t words[WORDS + 1];
  char *end = NULL;
  for (int i = 0; i <= WORDS; i++, line = end) {
    words[i] = strtoull(line, &end, 16);
    if (end == line) return false;
  }
  if (*end != '\n' || words[WORDS] != sum_of(words)) return false;
  memcpy(choice->kind, words, sizeof choice->kind);
  memcpy(choice->algorithm, words + GP_GEMM_KIND, sizeof choice->algorithm);
  return true;
}

static bool write_line(FILE *to, const gp_gemm_choice *choice) {
  uint64_t words[WORDS];
  memcpy(words, choice->kind, sizeof choice->kind);
  memcpy(words + GP_GEMM_KIND, choice->algorithm, sizeof choice->algorithm);
  for (int i = 0; i < WORDS; i++)
    if (fprintf(to, "%016" PRIx64 " ", words[i]) < 0) return false;
  return fprintf(to, "%016" PRIx64 "\n", sum_of(words)) > 0;
}

/* ---- place --------------------------------------------------------------------------------- */

/* Make all folders of a path; existing ones stay. */
static void make_folders(char *path) {
  for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
    *at = '\0';
    (void)mkdir(path, 0777);
    *at = '/';
  }
}

bool gp_gemm_choices_path(const char *gpu, size_t version, char *path, size_t size) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  const bool given = cache && *cache == '/'; /* relative paths do not count, as the XDG rules say */
  char name[96];
  size_t n = 0;
  if (!given && !(home && *home == '/')) return false;
  for (; gpu[n] && n + 1 < sizeof name; n++)
    name[n] = isalnum((unsigned char)gpu[n]) ? gpu[n] : '-';
  name[n] = '\0';
  const int length = snprintf(path, size, "%s%s/gpipe-lua/gemm-%s-%zu", given ? cache : home,
                              given ? "" : "/.cache", name, version);
  return length > 0 && (size_t)length < size;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool find_in(FILE *file, gp_gemm_choice *choice) {
  char line[LINE + 1];
  gp_gemm_choice read;
  while (fgets(line, sizeof line, file))
    if (read_line(line, &read) && memcmp(read.kind, choice->kind, sizeof read.kind) == 0) {
      *choice = read;
      return true;
    }
  return false;
}

bool gp_gemm_choices_find(const char *path, gp_gemm_choice *choice) {
  FILE *file = fopen(path, "re");
  const bool found = file && find_in(file, choice);
  if (file) (void)fclose(file);
  return found;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Copy the whole lines of the old file; damaged ones are dropped. */
static bool copy_lines(FILE *to, const char *path) {
  char line[LINE + 1];
  gp_gemm_choice read;
  bool good = true;
  FILE *from = fopen(path, "re");
  while (from && good && fgets(line, sizeof line, from))
    if (read_line(line, &read)) good = write_line(to, &read);
  if (from) (void)fclose(from);
  return good;
}

/* Write the old lines and a new one under another name, then rename the file. */
static void replace(const char *path, const gp_gemm_choice *choice) {
  char other[PATH];
  if (snprintf(other, sizeof other, "%s.new", path) >= (int)sizeof other) return;
  FILE *to = fopen(other, "we");
  if (!to) return;
  bool good = copy_lines(to, path) && write_line(to, choice);
  good = fflush(to) == 0 && fsync(fileno(to)) == 0 && good;
  if (fclose(to) != 0 || !good || rename(other, path) != 0) (void)unlink(other);
}

void gp_gemm_choices_add(const char *path, const gp_gemm_choice *choice) {
  char lock[PATH];
  gp_gemm_choice there = *choice;
  if (snprintf(lock, sizeof lock, "%s.lock", path) >= (int)sizeof lock) return;
  make_folders(lock);
  const int file = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  if (flock(file, LOCK_EX) == 0 && !gp_gemm_choices_find(path, &there)) replace(path, choice);
  (void)close(file);
}
