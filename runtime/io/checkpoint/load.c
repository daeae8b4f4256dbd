/* io/checkpoint/load.c - loads a checkpoint only if it matches its manifest to the last bit. */
#include <string.h>
#include <zlib.h>

#include "base/memory.h"
#include "gpipe/checkpoint.h"
#include "gpipe/data.h"
#include "io/checkpoint/folder.h"
#include "io/checkpoint/manifest.h"
#include "io/file/reader.h"

enum { PIECE = 1 << 20 }; /* bytes that are read at a time */

static gp_status checksum(const gp_reader *file, char *piece, uint64_t *sum) {
  uLong crc = crc32_z(0, NULL, 0);
  for (uint64_t at = 0; at < file->size; at += PIECE) {
    uint64_t left = file->size - at;
    size_t bytes = left < PIECE ? (size_t)left : PIECE;
    GP_TRY(gp_reader_get(file, at, piece, bytes));
    crc = crc32_z(crc, (const Bytef *)piece, bytes);
  }
  *sum = crc;
  return GP_OK;
}

static gp_status compare(const gp_reader *file, const gp_manifest_file *said) {
  if (file->size != said->bytes)
    return gp_fail(GP_EFORMAT, "%s: it has %llu bytes, the manifest says %llu", file->path,
                   (unsigned long long)file->size, (unsigned long long)said->bytes);
  void *piece = NULL;
  uint64_t sum;
  GP_TRY(gp_alloc(PIECE, &piece));
  gp_status status = checksum(file, piece, &sum);
  gp_free(piece);
  if (status || sum == said->crc32) return status;
  return gp_fail(GP_EFORMAT, "%s: its checksum is %08llx, the manifest says %08llx: it is damaged",
                 file->path, (unsigned long long)sum, (unsigned long long)said->crc32);
}

static gp_status verify(const char *path, const gp_manifest_file *said) {
  gp_reader file;
  gp_status status = gp_reader_open(&file, path);
  if (!status) status = compare(&file, said);
  gp_reader_close(&file);
  return status;
}

/* Check every file before any of them is passed on. */
static gp_status collect(const char *folder, const gp_manifest *manifest, char **names) {
  for (size_t i = 0; i < manifest->count; i++) {
    GP_TRY(gp_folder_path(folder, manifest->files[i].name, &names[i]));
    GP_TRY(verify(names[i], &manifest->files[i]));
  }
  return GP_OK;
}

static gp_status read_manifest(const char *folder, gp_manifest *manifest) {
  char *path;
  GP_TRY(gp_folder_path(folder, GP_MANIFEST_NAME, &path));
  gp_status status = gp_manifest_load(path, manifest);
  gp_free(path);
  return status;
}

static gp_status read_folder(const char *folder, char ***names, size_t *count, char **state) {
  gp_manifest manifest;
  GP_TRY(read_manifest(folder, &manifest));
  void *list = NULL;
  gp_status status = gp_alloc_array(manifest.count + 1, sizeof(char *), &list);
  if (!status) status = collect(folder, &manifest, list);
  if (!status) {
    *names = list;
    *count = manifest.count;
    *state = manifest.state;
    manifest.state = NULL;
  } else if (list) {
    gp_file_list_free(list, manifest.count);
  }
  gp_manifest_clear(&manifest);
  return status;
}

gp_status gp_checkpoint_read(const char *folder, char ***names, size_t *count, char **state) {
  char *path;
  GP_TRY(gp_folder_find(folder, &path));
  gp_status status = read_folder(path, names, count, state);
  gp_free(path);
  return status;
}

void gp_checkpoint_free_state(char *state) { gp_free(state); }
