/* bindings/cli/launch/folder.c - see folder.h. */
#include "cli/launch/folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARENT "/tmp"
#define PREFIX "gpipe-launch-"

enum { RANDOM = 6 }; /* characters that mkdtemp chooses */

static int open_folder(const char *path) {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes the folder and its files: sockets and notes. It has no folders in it. */
static void remove_all(const char *path, int folder) {
  const int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
  DIR *files = copy < 0 ? NULL : fdopendir(copy);
  if (!files && copy >= 0) close(copy);
  for (const struct dirent *file; files && (file = readdir(files));)
    unlinkat(folder, file->d_name, 0); /* "." and ".." refuse */
  if (files) closedir(files);
  rmdir(path);
}

/* ---- those of launchers that are gone -------------------------------------------------------- */

/* Is it a name that mkdtemp makes here? Another launcher's jobs have a dash in theirs. */
static bool is_ours(const char *name) {
  const size_t length = strlen(PREFIX);
  if (strncmp(name, PREFIX, length) || strlen(name) != length + RANDOM) return false;
  for (const char *c = name + length; *c; c++)
    if (!isalnum((unsigned char)*c)) return false;
  return true;
}

/* Removes the folder if it belongs to this user, and its launcher does not hold it. */
static void remove_abandoned(const char *path) {
  struct stat found;
  const int folder = open_folder(path);
  if (folder < 0) return;
  if (!fstat(folder, &found) && found.st_uid == getuid() && !flock(folder, LOCK_EX | LOCK_NB))
    remove_all(path, folder);
  close(folder);
}

static void sweep(void) {
  char path[sizeof PARENT "/" PREFIX + RANDOM];
  DIR *parent = opendir(PARENT);
  for (const struct dirent *entry; parent && (entry = readdir(parent));) {
    if (!is_ours(entry->d_name)) continue;
    snprintf(path, sizeof path, PARENT "/" PREFIX "%.*s", (int)RANDOM,
             entry->d_name + strlen(PREFIX));
    remove_abandoned(path);
  }
  if (parent) closedir(parent);
}

/* ---- that of this one ------------------------------------------------------------------------ */

/* Another launcher may take a folder for an abandoned one before it is locked. */
static bool is_there(const char *path, int folder) {
  struct stat named, held;
  return !lstat(path, &named) && !fstat(folder, &held) && named.st_ino == held.st_ino &&
         named.st_dev == held.st_dev;
}

int gp_launch_folder_make(char path[GP_LAUNCH_FOLDER]) {
  sweep();
  for (;;) {
    snprintf(path, GP_LAUNCH_FOLDER, PARENT "/" PREFIX "XXXXXX");
    if (!mkdtemp(path)) break;
    const int folder = open_folder(path);
    if (folder < 0) {
      const int fault = errno;
      rmdir(path);
      if (fault == ENOENT) continue;
      errno = fault;
      break;
    }
    /* where a file system has no such locks, other launchers get none either */
    (void)flock(folder, LOCK_EX);
    if (is_there(path, folder)) return folder;
    close(folder);
  }
  path[0] = '\0';
  return -1;
}

void gp_launch_folder_remove(const char *path, int folder) {
  if (is_there(path, folder)) remove_all(path, folder); /* the ranks may have done so */
  close(folder);
}
