/* io/checkpoint/folder.c - replaces a folder all at once: it is filled beside the target, synced,
 * and exchanged with it.
 *
 * If the file system can (RENAME_EXCHANGE), two folders change places in one step. Otherwise the
 * old one is first renamed aside, to a name from which gp_folder_open would restore it. */
#include "io/checkpoint/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h> /* renameat2, snprintf */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "gpipe/folder.h"

enum { TRIES = 100 };

static gp_status refused(const char *path, const char *what) {
  return gp_fail(GP_EIO, "%s: cannot %s: %s", path, what, strerrordesc_np(errno));
}

gp_status gp_folder_path(const char *folder, const char *file, char **path) {
  size_t size = strlen(folder) + strlen(file) + 2;
  void *memory = NULL;
  GP_TRY(gp_alloc(size, &memory));
  snprintf(memory, size, "%s/%s", folder, file);
  *path = memory;
  return GP_OK;
}

/* ---- removing ------------------------------------------------------------------------------ */

/* Remove a folder; if that fails, it stays under a name that no reader looks for. */
static void remove_folder(const char *path) { (void)gp_folder_remove(path); }

static const char *name_in(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The folder that holds `path`. Ownership: gp_free. */
static gp_status parent_of(const char *path, char **parent) {
  const char *name = name_in(path);
  if (name == path) return gp_copy_string(".", parent);
  GP_TRY(gp_copy_string(path, parent));
  (*parent)[name == path + 1 ? 1 : name - path - 1] = '\0';
  return GP_OK;
}

/* The process that made a temporary folder of `name`, from the folder's own name; 0: it is none. */
static pid_t owner_of(const char *temporary, const char *name) {
  size_t length = strlen(name);
  long pid, n;
  char end;
  if (temporary[0] != '.' || strncmp(temporary + 1, name, length) != 0) return 0;
  if (sscanf(temporary + 1 + length, ".tmp.%ld.%ld%c", &pid, &n, &end) != 2) return 0;
  return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

/* Remove what killed processes have left of saves to this very target. */
static void remove_stale(const char *parent, const char *name) {
  DIR *dir = opendir(parent);
  for (struct dirent *item; dir && (item = readdir(dir));) {
    pid_t owner = owner_of(item->d_name, name);
    char *path;
    if (owner == 0 || kill(owner, 0) == 0 || errno != ESRCH) continue;
    if (gp_folder_path(parent, item->d_name, &path) != GP_OK) continue;
    remove_folder(path);
    gp_free(path);
  }
  if (dir) closedir(dir);
}

/* ---- the old folder ------------------------------------------------------------------------- */

/* The old folder's name between the two steps: ".NAME.old". Ownership: gp_free. */
static gp_status aside_of(const char *target, const char *parent, char **aside) {
  char name[NAME_MAX + 8];
  snprintf(name, sizeof name, ".%.*s.old", NAME_MAX - 8, name_in(target));
  return gp_folder_path(parent, name, aside);
}

static bool is_there(const char *path) {
  struct stat info;
  return stat(path, &info) == 0;
}

/* Repair what a killed process left. If it was killed between the two steps, the target is missing:
 * restore the old folder. If it was killed later, the old folder is still there: remove it. */
static gp_status recover(const char *target, const char *parent) {
  char *aside;
  GP_TRY(aside_of(target, parent, &aside));
  if (!is_there(target))
    (void)rename(aside, target);
  else if (is_there(aside))
    remove_folder(aside);
  gp_free(aside);
  return GP_OK;
}

/* Copy the target's path without trailing slashes. */
static gp_status copy_target(const char *target, char **copy) {
  size_t length = strlen(target);
  while (length > 1 && target[length - 1] == '/') length--;
  if (length == 0 || strcmp(target, "/") == 0)
    return gp_fail(GP_EINVAL, "checkpoint: the folder is '%s', expected a name", target);
  GP_TRY(gp_copy_string(target, copy));
  (*copy)[length] = '\0';
  return GP_OK;
}

gp_status gp_folder_find(const char *target, char **path) {
  char *own, *parent = NULL, *aside = NULL;
  GP_TRY(copy_target(target, &own));
  gp_status status = parent_of(own, &parent);
  if (!status) status = aside_of(own, parent, &aside);
  if (!status) {
    bool moved = !is_there(own) && is_there(aside);
    *path = moved ? aside : own;
    *(moved ? &aside : &own) = NULL;
  }
  gp_free(parent);
  gp_free(aside);
  gp_free(own);
  return status;
}

/* ---- making -------------------------------------------------------------------------------- */

static gp_status check_target(const char *target) {
  struct stat info;
  if (stat(target, &info) != 0 || S_ISDIR(info.st_mode)) return GP_OK;
  return gp_fail(GP_EIO, "%s: cannot save: it exists and is no folder", target);
}

static gp_status make_temporary(gp_folder *folder, const char *parent) {
  size_t size = strlen(folder->target) + strlen(parent) + 64;
  void *path = NULL;
  GP_TRY(gp_alloc(size, &path));
  for (int n = 0; n < TRIES; n++) {
    snprintf(path, size, "%s/.%s.tmp.%ld.%d", parent, name_in(folder->target), (long)getpid(), n);
    if (mkdir(path, 0777) == 0) {
      folder->temporary = path;
      return GP_OK;
    }
    if (errno != EEXIST) break;
  }
  gp_free(path);
  return refused(folder->target, "save");
}

gp_status gp_folder_open(gp_folder *folder, const char *target) {
  *folder = (gp_folder){0};
  GP_TRY(copy_target(target, &folder->target));
  GP_TRY(check_target(folder->target));
  char *parent;
  GP_TRY(parent_of(folder->target, &parent));
  gp_status status = gp_folder_make(parent);
  if (!status) remove_stale(parent, name_in(folder->target));
  if (!status) status = recover(folder->target, parent);
  if (!status) status = make_temporary(folder, parent);
  gp_free(parent);
  return status;
}

/* ---- committing ---------------------------------------------------------------------------- */

/* Sync a folder. Some file systems cannot (EINVAL), and a folder without read permission cannot be
 * opened: neither is a failure. */
static gp_status sync_folder(const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == EACCES) return GP_OK;
  bool failed = fd < 0 || (fsync(fd) && errno != EINVAL);
  int reason = errno;
  if (fd >= 0) close(fd);
  errno = reason;
  return failed ? refused(path, "sync the folder") : GP_OK;
}

static gp_status step_aside(const gp_folder *folder, const char *parent, char **aside) {
  GP_TRY(aside_of(folder->target, parent, aside));
  if (rename(folder->target, *aside) == 0) return GP_OK;
  return refused(folder->target, "put the old one aside");
}

/* Replace the target on a file system that cannot exchange two folders. */
static gp_status replace_by_two_steps(gp_folder *folder, const char *parent) {
  char *aside = NULL;
  gp_status status = step_aside(folder, parent, &aside);
  if (!status && rename(folder->temporary, folder->target) != 0) {
    status = refused(folder->target, "put the folder in place");
    rename(aside, folder->target);
  }
  if (!status) remove_folder(aside);
  gp_free(aside);
  return status;
}

static gp_status put_in_place(gp_folder *folder, const char *parent) {
  struct stat info;
  if (stat(folder->target, &info) != 0) {
    if (rename(folder->temporary, folder->target) == 0) return GP_OK;
    return refused(folder->target, "put the folder in place");
  }
  if (renameat2(AT_FDCWD, folder->temporary, AT_FDCWD, folder->target, RENAME_EXCHANGE) == 0) {
    remove_folder(folder->temporary); /* it is the old folder now */
    return GP_OK;
  }
  return replace_by_two_steps(folder, parent);
}

gp_status gp_folder_commit(gp_folder *folder) {
  char *parent;
  gp_status synced = sync_folder(folder->temporary);
  if (synced) return gp_fail_prefix(synced, folder->target);
  GP_TRY(parent_of(folder->target, &parent));
  gp_status status = put_in_place(folder, parent);
  if (!status) {
    gp_free(folder->temporary); /* the temporary folder is gone */
    folder->temporary = NULL;
    status = sync_folder(parent);
    if (status) status = gp_fail_prefix(status, "saved, but it may not survive a power cut");
    if (status) status = gp_fail_prefix(status, folder->target);
  }
  gp_free(parent);
  return status;
}

void gp_folder_close(gp_folder *folder) {
  if (folder->temporary) remove_folder(folder->temporary);
  gp_free(folder->temporary);
  gp_free(folder->target);
  *folder = (gp_folder){0};
}
