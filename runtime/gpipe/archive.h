/* gpipe/archive.h - named tensors in safetensors files. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_ARCHIVE_H
#define GP_PUBLIC_ARCHIVE_H

#include "gpipe/tensor.h"

/* Named tensors and string metadata, in order. */
typedef struct gp_archive gp_archive;

gp_status gp_archive_new(gp_archive **archive);
void gp_archive_free(gp_archive *archive);
/* Append a tensor (retained) or a metadata pair (copied). Errors: GP_EINVAL for a name given twice,
 * too long or not UTF-8. */
gp_status gp_archive_add(gp_archive *archive, const char *name, gp_tensor *tensor);
gp_status gp_archive_add_text(gp_archive *archive, const char *key, const char *value);

/* What these return is borrowed; index < count. */
size_t gp_archive_count(const gp_archive *archive);
const char *gp_archive_name(const gp_archive *archive, size_t index);
gp_tensor *gp_archive_tensor(const gp_archive *archive, size_t index);
size_t gp_archive_text_count(const gp_archive *archive);
const char *gp_archive_text_key(const gp_archive *archive, size_t index);
const char *gp_archive_text_value(const gp_archive *archive, size_t index);

/* Write as safetensors: a temporary file, fsync, rename, fsync of the folder; the old file stays on
 * any failure. Errors: GP_EIO; GP_EINVAL where the header would exceed what the format allows. */
gp_status gp_archive_save(const gp_archive *archive, const char *path);
/* Read a safetensors file, which is not trusted: every offset is checked against the file.
 * Errors: GP_EIO, GP_EFORMAT. */
gp_status gp_archive_load(const char *path, gp_archive **archive);
/* The same, but read only the tensors with these names, which ascend by strcmp. The others have
 * their shape and dtype, and one element that all of their places show. */
gp_status gp_archive_load_some(const char *path, const char *const *names, size_t count,
                               gp_archive **archive);

#endif
