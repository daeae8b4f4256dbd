/* io/file/folder.c - making, listing and removing folders of files. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpipe/data.h"
#include "gpipe/folder.h"
#include "io/grow.h"

static gp_status refused(const char *path, const char *what) {
  return gp_fail(GP_EIO, "%s: cannot %s: %s", path, what, strerrordesc_np(errno));
}

/* ---- making -------------------------------------------------------------------------------- */

static gp_status make_one(const char *path) {
  struct stat info;
  if (mkdir(path, 0777) == 0) return GP_OK;
  if (errno != EEXIST) return refused(path, "make the folder");
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return GP_OK;
  return gp_fail(GP_EIO, "%s: cannot make the folder: there is a file of this name", path);
}

static gp_status make_all(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    gp_status status = make_one(path);
    *slash = '/';
    if (status) return status;
  }
  return make_one(path);
}

gp_status gp_folder_make(const char *path) {
  char *copy;
  size_t length = strlen(path);
  if (length == 0) return gp_fail(GP_EINVAL, "cannot make a folder without a name");
  GP_TRY(gp_copy_string(path, &copy));
  while (length > 1 && copy[length - 1] == '/') copy[--length] = '\0';
  gp_status status = strcmp(copy, "/") == 0 ? GP_OK : make_all(copy);
  gp_free(copy);
  return status;
}

/* ---- listing ------------------------------------------------------------------------------- */

typedef struct list {
  char **name;
  size_t count, room;
} list;

static gp_status append(list *names, const char *name) {
  GP_GROW(names->name, names->count, names->room);
  GP_TRY(gp_copy_string(name, &names->name[names->count]));
  names->count++;
  return GP_OK;
}

static bool is_self(const char *name) { return strcmp(name, ".") == 0 || strcmp(name, "..") == 0; }

/* Only errno tells an error of readdir from the end, so it is cleared before each call. */
static gp_status read_names(DIR *dir, const char *path, list *names) {
  for (;;) {
    errno = 0;
    struct dirent *item = readdir(dir);
    if (!item) return errno ? refused(path, "read the folder") : GP_OK;
    if (!is_self(item->d_name)) GP_TRY(append(names, item->d_name));
  }
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

gp_status gp_folder_names(const char *path, char ***names, size_t *count) {
  list found = {0};
  DIR *dir = opendir(path);
  if (!dir) return refused(path, "read the folder");
  gp_status status = read_names(dir, path, &found);
  closedir(dir);
  if (status) {
    gp_file_list_free(found.name, found.count);
    return status;
  }
  if (found.count) qsort(found.name, found.count, sizeof *found.name, by_bytes);
  *names = found.name;
  *count = found.count;
  return GP_OK;
}

/* ---- removing ------------------------------------------------------------------------------ */

gp_status gp_folder_remove(const char *path) {
  DIR *dir = opendir(path);
  if (!dir) return refused(path, "remove the folder");
  for (struct dirent *item; (item = readdir(dir));)
    if (!is_self(item->d_name)) unlinkat(dirfd(dir), item->d_name, 0);
  closedir(dir);
  return rmdir(path) == 0 ? GP_OK : refused(path, "remove the folder");
}
