/* io/checkpoint/manifest.h - the list of a checkpoint's files, as JSON.
 *
 *   {"format": "gpipe-lua checkpoint 1",
 *    "files": [{"name": "stage-0.safetensors", "bytes": 1024, "crc32": 123}],
 *    "state": "...",
 *    "crc32": 456}
 *
 * The last number is the checksum of everything before its key, so that damage to the list itself
 * is detected. */
#ifndef GP_IO_CHECKPOINT_MANIFEST_H
#define GP_IO_CHECKPOINT_MANIFEST_H

#include "base/status.h"

#define GP_MANIFEST_NAME "MANIFEST.json"

typedef struct gp_manifest_file {
  char *name; /* without its folder */
  uint64_t bytes, crc32;
} gp_manifest_file;

typedef struct gp_manifest {
  gp_manifest_file *files;
  size_t count, capacity;
  char *state;
} gp_manifest;

/* Append a file; its name is copied. Errors: GP_EINVAL for a name that is a path or hidden. */
gp_status gp_manifest_add(gp_manifest *manifest, const char *name, uint64_t bytes, uint64_t crc32);
/* Save the manifest; the caller syncs its folder. Errors: GP_EIO, GP_ENOMEM. */
gp_status gp_manifest_save(const gp_manifest *manifest, const char *path);
/* Load a manifest. Errors: GP_EIO; GP_EFORMAT, naming what is wrong. */
gp_status gp_manifest_load(const char *path, gp_manifest *manifest);
void gp_manifest_clear(gp_manifest *manifest);

#endif
