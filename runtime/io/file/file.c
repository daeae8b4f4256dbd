/* io/file/file.c - reads and writes whole files, and lists the files below a folder.
 *
 * Lists are sorted by bytes, so that a data set has one order on every file system and in every
 * locale: the order of rows decides the bits of a training run. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h> /* qsort */
#include <stdio.h>  /* snprintf */
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "gpipe/data.h"
#include "gpipe/tensor.h"
#include "io/file/reader.h"
#include "io/file/writer.h"

/* ---- reading ------------------------------------------------------------------------------- */

/* The tensor gets the size that the file has now. */
static gp_status read_bytes(const gp_reader *file, gp_tensor **bytes) {
  if (file->size > INT64_MAX / 2)
    return gp_fail(GP_EIO, "%s: cannot read: its size is not credible", file->path);
  gp_shape shape = {.rank = 1, .dim = {(int64_t)file->size}};
  gp_tensor *tensor;
  gp_status status = gp_tensor_new(GP_U8, &shape, &tensor);
  if (status) return gp_fail_prefix(status, file->path);
  status = gp_reader_get(file, 0, gp_tensor_data(tensor), (size_t)file->size);
  if (status) {
    gp_tensor_free(tensor);
    return status;
  }
  *bytes = tensor;
  return GP_OK;
}

gp_status gp_file_read(const char *path, gp_tensor **bytes) {
  gp_reader file;
  gp_status status = gp_reader_open(&file, path);
  if (!status) status = read_bytes(&file, bytes);
  gp_reader_close(&file);
  return status;
}

/* ---- writing ------------------------------------------------------------------------------- */

gp_status gp_file_write(const char *path, const void *data, size_t bytes) {
  gp_writer writer;
  gp_status status = gp_writer_open(&writer, path);
  if (!status) status = gp_writer_put(&writer, data, bytes);
  if (!status) status = gp_writer_commit(&writer);
  gp_writer_close(&writer);
  return status;
}

/* ---- listing ------------------------------------------------------------------------------- */

/* A list of paths; its strings are owned. */
typedef struct list {
  char **path;
  size_t count, capacity;
} list;

/* Call this right after the failed call: it reads errno. */
static gp_status refused(const char *path) {
  return gp_fail(GP_EIO, "%.1000s: cannot read: %s", path, strerrordesc_np(errno));
}

/* Append "folder/name", or the folder itself if the name is empty. */
static gp_status append(list *l, const char *folder, const char *name) {
  void *array = l->path;
  GP_TRY(gp_grow_array(l->count, &l->capacity, sizeof *l->path, &array));
  l->path = array;
  size_t length = strlen(folder), size = length + strlen(name) + 2;
  void *path = NULL;
  GP_TRY(gp_alloc(size, &path));
  bool slash = length > 0 && folder[length - 1] != '/' && *name;
  snprintf(path, size, "%s%s%s", folder, slash ? "/" : "", name);
  l->path[l->count++] = path;
  return GP_OK;
}

/* Add files to `files`, and folders to `folders` for a later visit. A link to a file counts as a
 * file; a link to a folder is not followed, because it could lead in a circle. What has vanished
 * meanwhile is skipped. */
static gp_status sort_in(list *files, list *folders, const char *folder, const char *name) {
  GP_TRY(append(files, folder, name));
  char *path = files->path[files->count - 1];
  struct stat info, target;
  bool there = lstat(path, &info) == 0;
  if (there && S_ISREG(info.st_mode)) return GP_OK;
  if (there && S_ISLNK(info.st_mode) && stat(path, &target) == 0 && S_ISREG(target.st_mode))
    return GP_OK;
  files->count--;
  gp_status status = there && S_ISDIR(info.st_mode) ? append(folders, path, "") : GP_OK;
  gp_free(path);
  return status;
}

/* Only errno tells an error of readdir from the end, so it is cleared before each call. */
static gp_status read_folder(list *files, list *folders, const char *folder) {
  DIR *dir = opendir(folder);
  if (!dir) return refused(folder);
  gp_status status = GP_OK;
  while (!status) {
    errno = 0;
    struct dirent *item = readdir(dir);
    if (!item) break;
    if (item->d_name[0] != '.') status = sort_in(files, folders, folder, item->d_name);
  }
  if (!status && errno) status = refused(folder);
  closedir(dir);
  return status;
}

/* Folders wait in a list that grows, because recursion into a deep tree could exhaust the stack. */
static gp_status collect(list *files, list *folders, const char *path) {
  struct stat info;
  if (stat(path, &info)) return refused(path);
  if (!S_ISDIR(info.st_mode)) return append(files, path, "");
  GP_TRY(append(folders, path, ""));
  for (size_t i = 0; i < folders->count; i++) GP_TRY(read_folder(files, folders, folders->path[i]));
  return GP_OK;
}

/* strcmp, not strcoll: see above. */
static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* On failure a partial list is freed; `folders` is needed only for the walk. */
gp_status gp_file_list(const char *path, char ***names, size_t *count) {
  list files = {0}, folders = {0};
  gp_status status = collect(&files, &folders, path);
  gp_file_list_free(folders.path, folders.count);
  if (status) {
    gp_file_list_free(files.path, files.count);
    return status;
  }
  if (files.count) qsort(files.path, files.count, sizeof *files.path, by_bytes);
  *names = files.path;
  *count = files.count;
  return GP_OK;
}

void gp_file_list_free(char **names, size_t count) {
  for (size_t i = 0; i < count; i++) gp_free(names[i]);
  gp_free(names);
}
