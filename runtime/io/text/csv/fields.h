/* io/text/csv/fields.h - the fields of a file of separated values, one after the other.
 *
 * The file is read in pieces, so a table takes the memory of its values and not that of its text.
 * Quoted fields, CRLF, a byte order mark, blanks around fields and blank lines are supported.
 * Source: RFC 4180. */
#ifndef GP_IO_TEXT_CSV_FIELDS_H
#define GP_IO_TEXT_CSV_FIELDS_H

#include "io/file/reader.h"

typedef struct gp_csv_fields {
  const char *path; /* borrowed, for messages */
  char separator;
  gp_reader file;
  char *buffer;      /* owned: the bytes of the file before `next` */
  size_t at, end;    /* positions in the buffer: the next byte, and the end */
  uint64_t next;     /* the first byte of the file that is not yet in the buffer */
  long line;         /* of the next byte, from 1 */
  char *field;       /* owned: the last field, without the blanks around it, NUL-terminated */
  size_t length;     /* of the field */
  size_t room;       /* of its memory */
  gp_status failure; /* of reading */
} gp_csv_fields;

/* Open a file. Call close also after a failure. Errors: GP_EIO, GP_ENOMEM. */
gp_status gp_csv_open(gp_csv_fields *fields, const char *path, char separator);
/* Back to the first line. */
gp_status gp_csv_rewind(gp_csv_fields *fields);
/* Go to the next line that is not blank; *found is false at the end of the file. */
gp_status gp_csv_line(gp_csv_fields *fields, bool *found);
/* Read the next field of the line; *last says that the line ended with it. Errors: GP_EFORMAT with
 * file:line. */
gp_status gp_csv_next(gp_csv_fields *fields, bool *last);
void gp_csv_close(gp_csv_fields *fields);

#endif
