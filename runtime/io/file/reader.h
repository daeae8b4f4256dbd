/* io/file/reader.h - read a regular file by position, every length checked. */
#ifndef GP_IO_FILE_READER_H
#define GP_IO_FILE_READER_H

#include "base/status.h"

typedef struct gp_reader {
  const char *path; /* borrowed, for messages */
  uint64_t size;    /* bytes when it was opened */
  int fd;           /* -1 when closed */
} gp_reader;

/* Open a file. Errors: GP_EIO if it is missing, not readable, or not a regular file. */
gp_status gp_reader_open(gp_reader *reader, const char *path);
/* The same, but a link is refused: for folders that other users can write to. */
gp_status gp_reader_open_own(gp_reader *reader, const char *path);
/* Read exactly `bytes` at `at`. Errors: GP_EIO, also if the file has become shorter. */
gp_status gp_reader_get(const gp_reader *reader, uint64_t at, void *data, size_t bytes);
void gp_reader_close(gp_reader *reader);

#endif
