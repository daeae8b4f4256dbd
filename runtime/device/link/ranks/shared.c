/* device/link/ranks/shared.c - see shared.h. */
#include "device/link/ranks/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

enum { HEAD = 4096 }; /* a page before the data holds the mark */

static const char name[] = "gpipe-slots";

struct gp_shared {
  char *memory; /* MAP_FAILED: none */
  size_t bytes; /* with the head */
  int file;     /* -1: closed */
};

/* ---- both sides ------------------------------------------------------------------------------ */

static gp_status map(gp_shared *s) {
  s->memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->file, 0);
  return s->memory == MAP_FAILED
             ? gp_fail(GP_EIO, "shared memory of %zu bytes: %s", s->bytes, strerror(errno))
             : GP_OK;
}

static gp_status make(size_t bytes, gp_shared **shared) {
  gp_shared *s;
  size_t all;
  GP_TRY(gp_size_add(bytes, HEAD, &all));
  GP_TRY(gp_alloc(sizeof *s, (void **)&s));
  *s = (gp_shared){.memory = MAP_FAILED, .bytes = all, .file = -1};
  *shared = s;
  return GP_OK;
}

void gp_shared_seal(gp_shared *s) {
  if (s->file >= 0) close(s->file);
  s->file = -1;
}

void gp_shared_free(gp_shared *s) {
  if (!s) return;
  gp_shared_seal(s);
  if (s->memory != MAP_FAILED) munmap(s->memory, s->bytes);
  gp_free(s);
}

char *gp_shared_data(const gp_shared *s) { return s->memory + HEAD; }

/* ---- the one that makes it ------------------------------------------------------------------- */

static gp_status fill(gp_shared *s) {
  s->file = memfd_create(name, MFD_CLOEXEC);
  if (s->file < 0 || ftruncate(s->file, (off_t)s->bytes))
    return gp_fail(GP_EIO, "shared memory of %zu bytes: %s", s->bytes, strerror(errno));
  GP_TRY(map(s));
  if (getrandom(s->memory, sizeof((gp_shared_offer *)0)->mark, 0) > 0) return GP_OK;
  return gp_fail(GP_EIO, "shared memory: the system has no random numbers");
}

gp_status gp_shared_new(size_t bytes, gp_shared **shared) {
  gp_shared *s;
  GP_TRY(make(bytes, &s));
  gp_status status = fill(s);
  if (status) return gp_shared_free(s), status;
  *shared = s;
  return GP_OK;
}

gp_shared_offer gp_shared_offer_of(const gp_shared *s) {
  gp_shared_offer offer = {.process = (int32_t)getpid(), .file = s->file, .bytes = s->bytes - HEAD};
  memcpy(offer.mark, s->memory, sizeof offer.mark);
  return offer;
}

/* ---- the one that opens it ------------------------------------------------------------------- */

/* Is it memory of ours? A process with this number may be another one. */
static bool is_ours(const char *path) {
  char target[64] = "";
  const ssize_t length = readlink(path, target, sizeof target - 1);
  return length > 0 && strstr(target, name) != NULL;
}

static gp_status open_offer(gp_shared *s, const gp_shared_offer *offer) {
  char path[64];
  struct stat found;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)offer->process, (int)offer->file);
  if (is_ours(path)) s->file = open(path, O_RDWR | O_CLOEXEC);
  if (s->file < 0 || fstat(s->file, &found) || (size_t)found.st_size != s->bytes)
    return gp_fail(GP_EIO, "shared memory: %s cannot be opened, expected %zu bytes", path,
                   s->bytes);
  GP_TRY(map(s));
  gp_shared_seal(s);
  if (!memcmp(s->memory, offer->mark, sizeof offer->mark)) return GP_OK;
  return gp_fail(GP_EIO, "shared memory: %s is another one", path);
}

gp_status gp_shared_open(const gp_shared_offer *offer, size_t bytes, gp_shared **shared) {
  gp_shared *s;
  if (offer->bytes != bytes)
    return gp_fail(GP_EIO, "shared memory of %llu bytes, expected %zu",
                   (unsigned long long)offer->bytes, bytes);
  GP_TRY(make(bytes, &s));
  gp_status status = open_offer(s, offer);
  if (status) return gp_shared_free(s), status;
  *shared = s;
  return GP_OK;
}
