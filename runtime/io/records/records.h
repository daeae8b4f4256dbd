/* io/records/records.h - the columns of a file of records, which grow line by line. */
#ifndef GP_IO_RECORDS_RECORDS_H
#define GP_IO_RECORDS_RECORDS_H

#include <locale.h>

#include "gpipe/records.h"

enum {
  GP_RECORDS_COLUMNS = 4096,  /* a limit, because a script may make up names */
  GP_RECORDS_LINE = 16 << 20, /* bytes of the longest line */
  GP_RECORDS_ELEMENTS = 64,   /* most elements of a list that become columns */
  GP_RECORDS_TAIL = 64,       /* bytes before `offset` that show if the file is the same */
  GP_RECORDS_DAMAGE = 256     /* bytes of the message about the first damaged line */
};

typedef struct gp_records_column_data {
  char *name;
  size_t length;        /* bytes of the name */
  double *step, *value; /* [count] */
  size_t count, steps_room, values_room;
  size_t last_pending; /* the place of its last value among the pending ones, if it has one */
} gp_records_column_data;

/* A value of the current line: it is added when the whole line was good. */
typedef struct gp_records_pending {
  size_t column;
  double value;
} gp_records_pending;

struct gp_records {
  char *path;
  uint64_t offset; /* bytes read so far, all in whole lines */
  char tail[GP_RECORDS_TAIL];
  size_t tail_size; /* the last bytes before offset */
  size_t lines, count, damaged;
  char damage[GP_RECORDS_DAMAGE];
  gp_records_column_data *column;
  size_t columns, columns_room;
  size_t asked; /* the column after the last one looked up */
  size_t guess; /* the column expected next: lines have the same names in the same order */
  gp_records_pending *pending;
  size_t n_pending, pending_room;
  locale_t locale; /* "C" */
};

/* line.c: add the values of one line without its newline. The text is overwritten, and the byte
 * after it must be readable. Errors: GP_EFORMAT; nothing is added then. */
gp_status gp_records_line(gp_records *records, char *text, size_t size);
/* records.c: is there a column with this name, and which? */
bool gp_records_seek(gp_records *records, const char *name, size_t length, size_t *column);
/* records.c: the column with this name, made if there is none. */
gp_status gp_records_place(gp_records *records, const char *name, size_t length, size_t *column);

#endif
