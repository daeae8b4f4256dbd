/* tests/c/folder.h - a temporary folder for a test that writes files, and files of given bytes. */
#ifndef GP_TESTS_FOLDER_H
#define GP_TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER_PATH = 512 };

static char folder[FOLDER_PATH]; /* "/tmp/gpipe-test-XXXXXX" */

static inline void folder_make(void) {
  snprintf(folder, sizeof folder, "/tmp/gpipe-test-XXXXXX");
  if (!mkdtemp(folder)) perror("mkdtemp");
}

/* Returns "folder/name"; four results are valid at a time. */
static inline const char *folder_path(const char *name) {
  static char paths[4][2 * FOLDER_PATH];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, 2 * FOLDER_PATH, "%.200s/%.255s", folder, name);
  return path;
}

static inline const char *folder_write(const char *name, const void *data, size_t size) {
  const char *path = folder_path(name);
  FILE *file = fopen(path, "wb");
  if (file) {
    if (fwrite(data, 1, size, file) != size) perror(path);
    fclose(file);
  }
  return path;
}

/* Reads the file into data[capacity]; returns its bytes, or -1 when it is not there. */
static inline long folder_read(const char *name, void *data, size_t capacity) {
  FILE *file = fopen(folder_path(name), "rb");
  if (!file) return -1;
  size_t size = fread(data, 1, capacity, file);
  fclose(file);
  return (long)size;
}

/* Counts the entries of the folder, hidden ones too. */
static inline int folder_count(void) {
  int count = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *item; dir && (item = readdir(dir));)
    count += strcmp(item->d_name, ".") && strcmp(item->d_name, "..");
  if (dir) closedir(dir);
  return count;
}

/* Remove the folder with the files in it (no folders below). */
static inline void folder_remove(void) {
  DIR *dir = opendir(folder);
  for (struct dirent *item; dir && (item = readdir(dir));) unlink(folder_path(item->d_name));
  if (dir) closedir(dir);
  rmdir(folder);
}

#endif
