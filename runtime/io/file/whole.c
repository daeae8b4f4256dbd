/* io/file/whole.c - reads a small file as a whole, from a folder that others may write to.
 *
 * A pipe would block the reader, a device never ends, a link opens a file that another user chose:
 * so only a regular file with this very name is read, and no more than the caller allows. */
#include <errno.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "gpipe/folder.h"
#include "io/file/reader.h"

static gp_status read_all(const gp_reader *reader, size_t most, char **bytes, size_t *size) {
  void *block;
  if (reader->size > most)
    return gp_fail(GP_EIO, "%s: has %llu bytes, expected at most %zu", reader->path,
                   (unsigned long long)reader->size, most);
  const size_t length = (size_t)reader->size;
  GP_TRY(gp_alloc(length + 1, &block));
  char *text = block;
  gp_status status = gp_reader_get(reader, 0, text, length);
  if (status) return gp_free(text), status;
  text[length] = '\0';
  *bytes = text;
  *size = length;
  return GP_OK;
}

gp_status gp_file_text(const char *path, size_t most, bool *there, char **bytes, size_t *size) {
  gp_reader reader;
  *there = true;
  gp_status status = gp_reader_open_own(&reader, path);
  const int reason = errno;
  if (status && reader.fd < 0 && (reason == ENOENT || reason == ENOTDIR))
    return *there = false, GP_OK;
  if (!status) status = read_all(&reader, most, bytes, size);
  gp_reader_close(&reader);
  return status;
}

void gp_file_text_free(char *bytes) { gp_free(bytes); }

bool gp_folder_is_own(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}
