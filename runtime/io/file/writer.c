/* io/file/writer.c - the whole-or-nothing file: temporary file, write loop, fsync, rename, fsync of
 * the folder, every return value looked at.
 *
 * A failed fsync is never tried again on the same descriptor: the system may have dropped the pages
 * and would say yes. Source: Rebello et al., "Can applications recover from fsync failures?",
 * USENIX ATC 2020. */
#include "io/file/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h> /* snprintf */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/memory.h"

enum { BUFFER_BYTES = 256 * 1024, TEMPORARY_TRIES = 100, TEMPORARY_NAME = 200 };

static gp_status refused(const gp_writer *writer, const char *what) {
  return gp_fail(GP_EIO, "%.1000s: cannot %s: %s", writer->path, what, strerrordesc_np(errno));
}

/* ---- the signal of the file size limit ----------------------------------------------------- */

/* Beyond RLIMIT_FSIZE the system kills the process with SIGXFSZ. While it is blocked, write returns
 * EFBIG instead and we can say so; the signal, meant for this thread, is swept up at the end. */
static void guard_signals(gp_writer *writer) {
  sigset_t size_limit;
  sigemptyset(&size_limit);
  sigaddset(&size_limit, SIGXFSZ);
  writer->guarded = pthread_sigmask(SIG_BLOCK, &size_limit, &writer->signals) == 0;
}

static void restore_signals(gp_writer *writer) {
  if (!writer->guarded) return;
  sigset_t size_limit;
  sigemptyset(&size_limit);
  sigaddset(&size_limit, SIGXFSZ);
  if (!sigismember(&writer->signals, SIGXFSZ))
    while (sigtimedwait(&size_limit, NULL, &(struct timespec){0}) > 0) {
    }
  pthread_sigmask(SIG_SETMASK, &writer->signals, NULL);
  writer->guarded = false;
}

/* ---- opening ------------------------------------------------------------------------------- */

/* The last part of a path. */
static const char *name_in(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The target of the link at `path`, relative to the link's folder; NULL: no link, or see errno. */
static char *read_link(const char *path) {
  char to[PATH_MAX];
  ssize_t length = readlink(path, to, sizeof to - 1);
  if (length < 0) return NULL;
  to[length] = '\0';
  const char *slash = strrchr(path, '/');
  int folder = slash && to[0] != '/' ? (int)(slash + 1 - path) : 0;
  char *joined = NULL;
  return asprintf(&joined, "%.*s%s", folder, path, to) < 0 ? NULL : joined;
}

/* Follow a link whose target does not exist yet: the file is made there, and the link stays. */
static char *follow_dangling(const char *path) {
  enum { MOST_LINKS = 40 }; /* as in Linux */
  char *at = strdup(path);
  for (int i = 0; at && i < MOST_LINKS; i++) {
    char *next = read_link(at);
    if (!next) return at;
    free(at);
    at = next;
  }
  free(at);
  errno = ELOOP;
  return NULL;
}

/* Follow links, so that a link stays a link. A path that does not exist yet is used as it is. */
static gp_status resolve(gp_writer *writer) {
  char *real = realpath(writer->path, NULL);
  if (!real && errno == ENOENT) real = follow_dangling(writer->path);
  if (!real) return refused(writer, "save");
  gp_status status = gp_copy_string(real, &writer->target);
  free(real);
  return status;
}

/* Get the permissions for the new file: those of the file that it replaces. Only a regular file is
 * replaced, because renaming over a device or a pipe would destroy it. */
static gp_status target_mode(const gp_writer *writer, mode_t *mode, bool *exists) {
  struct stat info;
  *exists = stat(writer->target, &info) == 0;
  *mode = *exists ? info.st_mode & 0777 : 0666;
  if (!*exists || S_ISREG(info.st_mode)) return GP_OK;
  return gp_fail(GP_EIO, "%s: cannot save: it exists and is not a regular file", writer->path);
}

/* Make "folder/.name.tmp.PID.N"; a long name is shortened so that the new one is not too long. */
static void name_temporary(gp_writer *writer, size_t size, int n) {
  const char *name = name_in(writer->target);
  snprintf(writer->temporary, size, "%.*s.%.*s.tmp.%ld.%d", (int)(name - writer->target),
           writer->target, TEMPORARY_NAME, name, (long)getpid(), n);
}

/* The process of a temporary file of `name`, from the file's own name; 0: it is none. */
static pid_t owner_of(const char *temporary, const char *name) {
  char prefix[TEMPORARY_NAME + 8], end;
  long pid, n;
  snprintf(prefix, sizeof prefix, ".%.*s.tmp.", TEMPORARY_NAME, name);
  size_t length = strlen(prefix);
  if (strncmp(temporary, prefix, length) != 0) return 0;
  if (sscanf(temporary + length, "%ld.%ld%c", &pid, &n, &end) != 2) return 0;
  return pid > 0 && pid <= INT_MAX ? (pid_t)pid : 0;
}

/* Remove temporary files that dead processes left of saves to this very file. A process of another
 * user counts as alive (EPERM). A process on another machine that shares the folder counts as dead:
 * its save then fails, and its old file stays whole. */
static void remove_stale(const gp_writer *writer) {
  const char *name = name_in(writer->target);
  char *folder = name > writer->target ? strndup(writer->target, (size_t)(name - writer->target))
                                       : strdup("./");
  DIR *dir = folder ? opendir(folder) : NULL;
  for (struct dirent *item; dir && (item = readdir(dir));) {
    pid_t owner = owner_of(item->d_name, name);
    struct stat info;
    if (owner == 0 || kill(owner, 0) == 0 || errno != ESRCH) continue;
    if (fstatat(dirfd(dir), item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(info.st_mode)) unlinkat(dirfd(dir), item->d_name, 0);
  }
  if (dir) closedir(dir);
  free(folder);
}

static gp_status open_temporary(gp_writer *writer, mode_t mode) {
  size_t size = strlen(writer->target) + 64;
  void *name = NULL;
  GP_TRY(gp_alloc(size, &name));
  writer->temporary = name;
  for (int n = 0; n < TEMPORARY_TRIES && writer->fd < 0; n++) {
    name_temporary(writer, size, n);
    writer->fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (writer->fd < 0 && errno != EEXIST && errno != EINTR) break;
  }
  if (writer->fd >= 0) return GP_OK;
  gp_status status = refused(writer, "save");
  gp_free(writer->temporary); /* not ours to remove */
  writer->temporary = NULL;
  return status;
}

gp_status gp_writer_open(gp_writer *writer, const char *path) {
  *writer = (gp_writer){.path = path, .fd = -1};
  GP_TRY(resolve(writer));
  mode_t mode;
  bool exists;
  GP_TRY(target_mode(writer, &mode, &exists));
  void *buffer = NULL;
  GP_TRY(gp_alloc(BUFFER_BYTES, &buffer));
  writer->buffer = buffer;
  remove_stale(writer);
  GP_TRY(open_temporary(writer, mode));
  guard_signals(writer);
  if (exists && fchmod(writer->fd, mode)) return refused(writer, "set the permissions");
  return GP_OK;
}

/* ---- writing ------------------------------------------------------------------------------- */

static gp_status write_all(gp_writer *writer, const char *data, size_t bytes) {
  while (bytes) {
    ssize_t done = write(writer->fd, data, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = ENOSPC; /* nothing written and no reason given */
    if (done <= 0) return refused(writer, "write");
    writer->crc32 = (uint32_t)crc32_z(writer->crc32, (const Bytef *)data, (size_t)done);
    data += done;
    bytes -= (size_t)done;
    writer->written += (uint64_t)done;
  }
  return GP_OK;
}

static gp_status flush(gp_writer *writer) {
  size_t used = writer->used;
  writer->used = 0;
  return write_all(writer, writer->buffer, used);
}

/* Gather small pieces in the buffer; large ones go straight to the system. */
gp_status gp_writer_put(gp_writer *writer, const void *data, size_t bytes) {
  if (!bytes) return GP_OK;
  if (bytes > BUFFER_BYTES - writer->used) GP_TRY(flush(writer));
  if (bytes >= BUFFER_BYTES) return write_all(writer, data, bytes);
  memcpy(writer->buffer + writer->used, data, bytes);
  writer->used += bytes;
  return GP_OK;
}

/* ---- committing ---------------------------------------------------------------------------- */

/* Make sure that everything is on the disk, and that the file has the right length. */
static gp_status settle(gp_writer *writer) {
  GP_TRY(flush(writer));
  if (fsync(writer->fd)) return refused(writer, "write to the disk");
  struct stat info;
  if (fstat(writer->fd, &info)) return refused(writer, "check what was written");
  if ((uint64_t)info.st_size != writer->written)
    return gp_fail(GP_EIO, "%s: the file has %lld bytes after writing %llu", writer->path,
                   (long long)info.st_size, (unsigned long long)writer->written);
  int fd = writer->fd;
  writer->fd = -1;
  return close(fd) ? refused(writer, "write to the disk") : GP_OK;
}

/* Sync the folder. Some file systems cannot (EINVAL), and a folder without read permission cannot
 * be opened: neither is a failure of the save. */
static gp_status sync_folder(gp_writer *writer) {
  char *slash = strrchr(writer->target, '/');
  if (slash) slash[slash == writer->target] = '\0'; /* keeps the "/" of "/name" */
  int fd = open(slash ? writer->target : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == EACCES) return GP_OK;
  bool failed = fd < 0 || (fsync(fd) && errno != EINVAL);
  int reason = errno;
  if (fd >= 0) close(fd);
  if (!failed) return GP_OK;
  return gp_fail(GP_EIO,
                 "%s: saved, but it may not survive a power cut: cannot sync the folder: %s",
                 writer->path, strerrordesc_np(reason));
}

gp_status gp_writer_place(gp_writer *writer) {
  GP_TRY(settle(writer));
  if (rename(writer->temporary, writer->target)) return refused(writer, "put the file in place");
  gp_free(writer->temporary); /* the temporary file is gone */
  writer->temporary = NULL;
  return GP_OK;
}

gp_status gp_writer_commit(gp_writer *writer) {
  GP_TRY(gp_writer_place(writer));
  return sync_folder(writer);
}

void gp_writer_close(gp_writer *writer) {
  if (writer->fd >= 0) close(writer->fd);
  if (writer->temporary) unlink(writer->temporary);
  restore_signals(writer);
  gp_free(writer->temporary);
  gp_free(writer->target);
  gp_free(writer->buffer);
  *writer = (gp_writer){.fd = -1};
}
