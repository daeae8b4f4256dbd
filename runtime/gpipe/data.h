/* gpipe/data.h - files as bytes and as tables. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_DATA_H
#define GP_PUBLIC_DATA_H

#include "gpipe/tensor.h"

/* Read a whole file into a u8 tensor of one dimension. Errors: GP_EIO. */
gp_status gp_file_read(const char *path, gp_tensor **bytes);
/* Map a file instead of reading it: its pages are loaded when they are touched. Errors: GP_EIO. */
gp_status gp_file_map(const char *path, gp_tensor **bytes);
/* Check, before mapped bytes are used, that the file is still as long as it was. Errors: GP_EIO. */
gp_status gp_file_unchanged(const char *path, int64_t bytes);
/* Write bytes as a file, atomically: the old file stays on any failure. Errors: GP_EIO. */
gp_status gp_file_write(const char *path, const void *data, size_t bytes);
/* names[count] receives the paths of the regular files below path (itself if a file), sorted by
 * bytes, hidden ones left out. Ownership: gp_file_list_free. Errors: GP_EIO. */
gp_status gp_file_list(const char *path, char ***names, size_t *count);
void gp_file_list_free(char **names, size_t count);

/* The form in which a foreign file stores a number. */
typedef struct gp_element {
  char kind; /* 'b' truth, 'i' and 'u' integers with and without a sign, 'f' floats */
  int bytes; /* 1, 2, 4 or 8 */
  bool big;  /* the highest byte comes first */
} gp_element;

/* Tell whether some dtype holds all values of the form, and which. */
bool gp_element_known(gp_element form, gp_dtype *dtype);
/* Make a tensor of the elements that fill `bytes` from `offset` on. Shapes: bytes u8
 * [size]. Errors: GP_EFORMAT for another number of bytes, a bool that is not 0 or 1, a u64
 * of 2^63 or more. */
gp_status gp_elements_read(const gp_tensor *bytes, int64_t offset, gp_element form,
                           const gp_shape *shape, gp_tensor **values);

typedef enum gp_json_event {
  GP_JSON_OBJECT, /* begins; its keys and values follow, then GP_JSON_CLOSE */
  GP_JSON_ARRAY,
  GP_JSON_CLOSE,
  GP_JSON_KEY,    /* text */
  GP_JSON_STRING, /* text */
  GP_JSON_NUMBER, /* text[bytes], not terminated */
  GP_JSON_TRUE,
  GP_JSON_FALSE,
  GP_JSON_NULL,
} gp_json_event;

/* Called for each part of a text, in order; a status other than GP_OK ends the walk. */
typedef gp_status (*gp_json_see)(void *context, gp_json_event event, const char *text,
                                 size_t bytes);

/* Walk over a JSON text, whose strings are decoded in place. Allocates nothing. Errors: GP_EFORMAT
 * with the byte, and what `see` returns. */
gp_status gp_json_walk(char *text, size_t bytes, gp_json_see see, void *context);

typedef struct gp_csv_options {
  bool header;    /* the first line names the columns */
  char separator; /* ',' or another ASCII character */
  bool fills;     /* empty fields of numbers are `missing`, else they are errors */
  double missing;
} gp_csv_options;

typedef enum gp_csv_part { GP_CSV_SKIP, GP_CSV_INPUT, GP_CSV_TARGET } gp_csv_part;

typedef struct gp_csv_column {
  gp_csv_part part;
  int64_t place; /* among the columns of its part, from 0 */
  bool words;    /* the numbers are ids of classes, from 0, in the order of the words' bytes */
} gp_csv_column;

/* Words of column i: words[i], with word_count[i] of them; the arrays are the caller's, [columns].
 * Ownership: gp_tensor_free, gp_file_list_free for each column. */
typedef struct gp_csv_table {
  gp_tensor *x; /* f32 [rows, inputs] */
  gp_tensor *y; /* [rows, targets] */
  char ***words;
  size_t *word_count;
} gp_csv_table;

/* Read the fields of the first line that is not blank and of the next one (NULL and 0 if there is
 * none). Ownership: gp_file_list_free. Errors: GP_EIO; GP_EFORMAT. */
gp_status gp_csv_head(const char *path, char separator, char ***first, size_t *first_count,
                      char ***second, size_t *second_count);
/* Read a table, one row a line, every line with `count` columns. Quoted fields, CRLF, a byte order
 * mark and blank lines are understood. ids: y is i64 if all targets are whole numbers, else f32.
 * Errors: GP_EIO; GP_EFORMAT with file:line and column. Cost: the memory of the tensors; the text
 * is not kept. Source: RFC 4180. */
gp_status gp_csv_read(const char *path, const gp_csv_options *options, const gp_csv_column *columns,
                      size_t count, bool ids, gp_csv_table *table);

#endif
