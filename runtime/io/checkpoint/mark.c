/* io/checkpoint/mark.c - see mark.h. */
#include "io/checkpoint/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h> /* snprintf */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "io/checkpoint/folder.h"
#include "io/file/writer.h"

static const int64_t NAP_NS = 10000000;
/* For how long is a mark waited for: if a process is gone, and if none is. What a process has
 * placed before it went is there at once, or after a moment where the folder is on another host;
 * the launcher gives this process 5 seconds to end. The other may still write gigabytes when this
 * one is done. */
static const int64_t GRACE_NS = INT64_C(2000000000), PATIENCE_NS = INT64_C(1800000000000);

enum { MOST = 600 }; /* bytes of a mark */

static gp_status path_of(const char *folder, const char *file, char **path) {
  char name[300];
  snprintf(name, sizeof name, ".%.255s.mark", file);
  return gp_folder_path(folder, name, path);
}

/* ---- placing --------------------------------------------------------------------------------- */

static gp_status place(const char *folder, const char *file, const char *text) {
  gp_writer writer;
  char *path;
  GP_TRY(path_of(folder, file, &path));
  gp_status status = gp_writer_open(&writer, path);
  if (!status) status = gp_writer_put(&writer, text, strlen(text));
  if (!status) status = gp_writer_place(&writer);
  gp_writer_close(&writer);
  gp_free(path);
  return status;
}

gp_status gp_mark_place(const char *folder, const char *file, const gp_mark *mark) {
  char text[64];
  snprintf(text, sizeof text, "%" PRIu64 " %" PRIu32 "\n", mark->bytes, mark->crc32);
  return place(folder, file, text);
}

/* An empty mark needs no room on the disk. */
void gp_mark_refuse(const char *folder, const char *file, const char *reason) {
  char text[MOST], *path;
  snprintf(text, sizeof text, "!%.500s\n", reason);
  if (place(folder, file, text) == GP_OK || path_of(folder, file, &path)) return;
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) close(fd);
  gp_free(path);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Read a mark; *found: it is there. It was placed whole, so it is read in one go. */
static gp_status look(const char *path, const char *file, gp_mark *mark, bool *found) {
  char text[MOST] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  *found = fd >= 0;
  if (fd < 0) return GP_OK;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n >= 0) text[n] = '\0';
  if (sscanf(text, "%" SCNu64 " %" SCNu32, &mark->bytes, &mark->crc32) == 2) return GP_OK;
  text[strcspn(text, "\n")] = '\0';
  return gp_fail(GP_EIO, "%s", text[0] == '!' ? text + 1 : file);
}

static void nap(void) {
  const struct timespec time = {.tv_nsec = NAP_NS};
  nanosleep(&time, NULL);
}

/* Look until it is there; *reason receives why a process is gone. */
static gp_status wait_for(const char *path, const char *file, gp_status (*check)(void),
                          gp_mark *mark) {
  const int64_t begin = gp_now_ns();
  int64_t end = begin + PATIENCE_NS;
  bool found, told = false;
  char reason[300] = "";
  for (;;) {
    GP_TRY(look(path, file, mark, &found));
    if (found) return GP_OK;
    if (gp_now_ns() > end) break;
    if (!told && check && check()) {
      told = true;
      snprintf(reason, sizeof reason, "%s", gp_error_text());
      end = gp_now_ns() + GRACE_NS;
    }
    nap();
  }
  if (told) return gp_fail(GP_EDEVICE, "%s was not written: %s", file, reason);
  return gp_fail(GP_ETIMEOUT, "%s was not written within %g seconds by the process that has it",
                 file, 1e-9 * (double)PATIENCE_NS);
}

gp_status gp_mark_await(const char *folder, const char *file, gp_status (*check)(void),
                        gp_mark *mark) {
  char *path;
  GP_TRY(path_of(folder, file, &path));
  gp_status status = wait_for(path, file, check, mark);
  unlink(path);
  gp_free(path);
  return status;
}
