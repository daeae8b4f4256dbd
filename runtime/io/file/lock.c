/* io/file/lock.c - a file that one process locks, and what a file keeps when a process ends. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "gpipe/folder.h"

enum { TRIES = 50 }; /* per second */

struct gp_lock {
  int fd;
};

static gp_status refused(const char *path, const char *what) {
  return gp_fail(GP_EIO, "%s: cannot %s: %s", path, what, strerrordesc_np(errno));
}

/* ---- the lock ------------------------------------------------------------------------------ */

static void read_holder(int fd, char *holder, size_t size) {
  ssize_t bytes = pread(fd, holder, size - 1, 0);
  holder[bytes > 0 ? bytes : 0] = '\0';
}

/* Write who holds the lock, for users to read; if that fails the lock holds all the same. */
static void write_holder(int fd, const char *text) {
  if (ftruncate(fd, 0) == 0) (void)!pwrite(fd, text, strlen(text), 0);
}

/* Wait up to `seconds` for the lock; false with the reason in errno. */
static bool lock_within(int fd, double seconds) {
  const struct timespec pause = {.tv_nsec = 1000000000 / TRIES};
  for (int left = (int)(seconds * TRIES);; left--) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK || left <= 0) return false;
    nanosleep(&pause, NULL);
  }
}

gp_status gp_lock_take(const char *path, const char *text, double seconds, gp_lock **lock,
                       char *holder, size_t size) {
  void *memory = NULL;
  *lock = NULL;
  GP_TRY(gp_alloc(sizeof **lock, &memory));
  gp_lock *new = memory;
  new->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (new->fd < 0) {
    gp_free(new);
    return refused(path, "open the lock");
  }
  if (lock_within(new->fd, seconds)) {
    write_holder(new->fd, text);
    *lock = new;
    return GP_OK;
  }
  bool taken = errno == EWOULDBLOCK;
  gp_status status = taken ? GP_OK : refused(path, "lock the file");
  if (taken) read_holder(new->fd, holder, size);
  gp_lock_free(new);
  return status;
}

void gp_lock_free(gp_lock *lock) {
  if (!lock) return;
  close(lock->fd);
  gp_free(lock);
}

/* ---- files that grow ----------------------------------------------------------------------- */

gp_status gp_file_cut(const char *path, uint64_t bytes, uint64_t *left) {
  struct stat info;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return refused(path, "open the file");
  bool failed = fstat(fd, &info) != 0;
  *left = failed ? 0 : (uint64_t)info.st_size;
  if (!failed && *left > bytes) {
    failed = ftruncate(fd, (off_t)bytes) != 0 || fsync(fd) != 0;
    *left = bytes;
  }
  gp_status status = failed ? refused(path, "cut the file") : GP_OK;
  close(fd);
  return status;
}

gp_status gp_file_sync(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused(path, "open the file");
  gp_status status = fsync(fd) == 0 || errno == EINVAL ? GP_OK : refused(path, "sync the file");
  close(fd);
  return status;
}
