/* io/file/map.c - a file as a tensor without reading it: the system loads its pages when they are
 * accessed, and may drop them again.
 *
 * The mapping is private: what is written into the tensor stays in this process. If a file is
 * truncated while it is mapped, the next access behind its end would kill the process (SIGBUS). So
 * code that holds mapped data for long calls gp_file_unchanged before each use; only a change
 * between that call and the use goes unnoticed. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/data.h"
#include "io/file/reader.h"

typedef struct mapping {
  void *data;
  size_t bytes;
} mapping;

static void release(void *context) {
  mapping *m = context;
  munmap(m->data, m->bytes);
  gp_free(m);
}

/* An empty file cannot be mapped. */
static gp_status wrap_empty(gp_tensor **bytes) {
  gp_shape shape = {.rank = 1, .dim = {0}};
  return gp_tensor_new(GP_U8, &shape, bytes);
}

static gp_status wrap(const gp_reader *file, mapping *m, gp_tensor **bytes) {
  gp_shape shape = {.rank = 1, .dim = {(int64_t)file->size}};
  gp_meta meta;
  GP_TRY(gp_meta_make(GP_U8, &shape, &meta));
  m->bytes = (size_t)file->size;
  m->data = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file->fd, 0);
  if (m->data == MAP_FAILED)
    return gp_fail(GP_EIO, "%s: cannot map: %s", file->path, strerrordesc_np(errno));
  gp_extent extent = {.data = m->data, .bytes = m->bytes, .release = release, .context = m};
  gp_status status = gp_tensor_wrap(&meta, &extent, bytes);
  if (status) munmap(m->data, m->bytes);
  return status;
}

static gp_status map_open(const gp_reader *file, gp_tensor **bytes) {
  if (file->size == 0) return wrap_empty(bytes);
  if (file->size > INT64_MAX / 2)
    return gp_fail(GP_EIO, "%s: cannot map: its size is not credible", file->path);
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof(mapping), &memory));
  gp_status status = wrap(file, memory, bytes);
  if (status) gp_free(memory);
  return status;
}

gp_status gp_file_map(const char *path, gp_tensor **bytes) {
  gp_reader file;
  gp_status status = gp_reader_open(&file, path);
  if (!status) status = map_open(&file, bytes);
  gp_reader_close(&file);
  return status;
}

/* Check that a mapped file is not shorter than it was. A file that replaced it is accepted if it is
 * long enough: the old pages are still there. */
gp_status gp_file_unchanged(const char *path, int64_t bytes) {
  struct stat info;
  if (stat(path, &info)) /* removed: the mapping keeps it */
    return errno == ENOENT ? GP_OK
                           : gp_fail(GP_EIO, "%s: cannot read: %s", path, strerrordesc_np(errno));
  if (info.st_size >= bytes) return GP_OK;
  return gp_fail(GP_EIO, "%s: has %lld bytes, expected %lld as when it was opened", path,
                 (long long)info.st_size, (long long)bytes);
}
