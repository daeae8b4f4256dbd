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
  const char *path; /* borrowed: as the caller spelled it, for messages */
  char *target;     /* where the file goes, links followed */
  char *temporary;  /* the file being written; NULL when there is none */
  char *buffer;
  size_t used;      /* bytes in the buffer */
  uint64_t written; /* bytes given to the system */
  uint32_t crc32;   /* of those */
  int fd;           /* -1 when closed */
  bool guarded;     /* SIGXFSZ is blocked; signals holds the mask to restore */
  sigset_t signals;
} gp_writer;

/* Start writing path (borrowed until close). Errors: GP_EIO when the folder refuses, or when path
 * is something else than a regular file; GP_ENOMEM. */
gp_status gp_writer_open(gp_writer *writer, const char *path);
gp_status gp_writer_put(gp_writer *writer, const void *data, size_t bytes);
/* Flush, sync, rename, sync the folder. Errors: GP_EIO; the old file stays, but for the last step,
 * whose error text says that the new one is there and may not survive a power cut. */
gp_status gp_writer_commit(gp_writer *writer);
/* The same without the folder, for one that is synced when all of its files are there. */
gp_status gp_writer_place(gp_writer *writer);
void gp_writer_close(gp_writer *writer);

#endif
