/* io/file/writer.h - write a file whole or not at all.
 *
 * The bytes go to a temporary file in the target's own folder; commit makes it durable and puts it
 * in the target's place in one step. Until then, and on any failure, the old file is untouched.
 * Close always: it removes what was not committed. One thread uses a writer from open to close. */
#ifndef GP_IO_FILE_WRITER_H
#define GP_IO_FILE_WRITER_H

#include <signal.h>

#include "base/status.h"

typedef struct gp_writer {
  const char *path; /* borrowed: as the caller spells it, for messages */
  char *target;     /* the final path, with links followed */
  char *temporary;  /* the file being written; NULL if there is none */
  char *buffer;
  size_t used;      /* bytes in the buffer */
  uint64_t written; /* bytes given to the system */
  uint32_t crc32;   /* of these bytes */
  int fd;           /* -1 when closed */
  bool guarded;     /* SIGXFSZ is blocked; signals holds the mask to restore */
  sigset_t signals;
} gp_writer;

/* Start writing to `path` (borrowed until close). Errors: GP_EIO if the folder refuses, or if path
 * is not a regular file; GP_ENOMEM. */
gp_status gp_writer_open(gp_writer *writer, const char *path);
gp_status gp_writer_put(gp_writer *writer, const void *data, size_t bytes);
/* Flush, sync, rename, sync the folder. Errors: GP_EIO; the old file stays, unless the last step
 * failed: then the text says that the new one is in place but may not survive a power cut. */
gp_status gp_writer_commit(gp_writer *writer);
/* The same without syncing the folder, for a folder that is synced once all its files are
 * written. */
gp_status gp_writer_place(gp_writer *writer);
void gp_writer_close(gp_writer *writer);

#endif
