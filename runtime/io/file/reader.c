/* io/file/reader.c - positioned reads. Not mmap: if another process truncates the file meanwhile, a
 * mapping would kill this process with SIGBUS, while a short read can be reported. */
#include "io/file/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The system's message after the file's name, which is shortened so that the message is not. */
static gp_status refused(const gp_reader *reader) {
  return gp_fail(GP_EIO, "%.1000s: cannot read: %s", reader->path, strerrordesc_np(errno));
}

/* O_NONBLOCK: opening a pipe must not wait for a writer; it changes nothing for regular files. */
static gp_status open_with(gp_reader *reader, const char *path, int flags) {
  *reader = (gp_reader){.path = path};
  do {
    reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
  } while (reader->fd < 0 && errno == EINTR);
  struct stat info;
  if (reader->fd < 0 || fstat(reader->fd, &info)) return refused(reader);
  if (!S_ISREG(info.st_mode))
    return gp_fail(GP_EIO, "%s: cannot read: %s, expected a regular file", path,
                   S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file");
  reader->size = (uint64_t)info.st_size;
  return GP_OK;
}

gp_status gp_reader_open(gp_reader *reader, const char *path) { return open_with(reader, path, 0); }

gp_status gp_reader_open_own(gp_reader *reader, const char *path) {
  return open_with(reader, path, O_NOFOLLOW);
}

/* Read exactly `bytes`. An interrupting signal or a short read is no failure. The end of the file
 * is one, because the size was known. */
gp_status gp_reader_get(const gp_reader *reader, uint64_t at, void *data, size_t bytes) {
  char *to = data;
  while (bytes) {
    ssize_t done = pread(reader->fd, to, bytes, (off_t)at);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return refused(reader);
    if (done == 0)
      return gp_fail(GP_EIO, "%s: ends at byte %llu of %llu: it changed while it was read",
                     reader->path, (unsigned long long)at, (unsigned long long)reader->size);
    to += done;
    at += (uint64_t)done;
    bytes -= (size_t)done;
  }
  return GP_OK;
}

void gp_reader_close(gp_reader *reader) {
  if (reader->fd >= 0) close(reader->fd);
  reader->fd = -1;
}
