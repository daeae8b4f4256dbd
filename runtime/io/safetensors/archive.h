/* io/safetensors/archive.h - what the archive, the writer and the reader of safetensors share.
 *
 * The limits are those of the reader; the writer keeps them too, so that what it saves can be
 * loaded. Source: the safetensors format description and its reference implementation. */
#ifndef GP_IO_SAFETENSORS_ARCHIVE_H
#define GP_IO_SAFETENSORS_ARCHIVE_H

#include "base/status.h"
#include "gpipe/archive.h"
#include "io/file/writer.h"

#define GP_ARCHIVE_METADATA "__metadata__"

enum {
  GP_ARCHIVE_MAX_HEADER = 100000000, /* bytes; the format's own limit */
  GP_ARCHIVE_MAX_TENSORS = 1 << 18,  /* each costs some 500 bytes besides its data */
  GP_ARCHIVE_MAX_EMPTY = 4096,       /* tensors without elements: they add no bytes to the file */
  GP_ARCHIVE_MAX_TEXTS =
      100000,                 /* entries of metadata: each costs some 300 bytes until Lua has it */
  GP_ARCHIVE_MAX_NAME = 4096, /* bytes */
  GP_ARCHIVE_PREFIX = 8       /* bytes of the header's length before it */
};

/* The format's name of a dtype ("F32"), and back; false if we have no such dtype. */
const char *gp_archive_dtype_name(gp_dtype dtype);
bool gp_archive_dtype_parse(const char *name, gp_dtype *dtype);

/* Write the whole archive into an open file. Errors: as gp_archive_save. */
gp_status gp_archive_put(const gp_archive *archive, gp_writer *writer);

#endif
