/* io/text/csv.c - files of numbers separated by commas, as a tensor.
 *
 * Fields are cut out of the text in place. Numbers are read in the "C" locale whatever the script
 * set, and only in decimal form: "nan", "inf" and hexadecimal are errors, since in such files they
 * stand for missing values. Every error names file:line and column. Source: RFC 4180. */
#include <locale.h>
#include <math.h>
#include <stdlib.h> /* strtod_l */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/data.h"
#include "io/file/reader.h"

enum { SHOWN = 40 }; /* bytes of a field that a message shows */

typedef struct csv {
  const char *path;
  char separator;
  bool fills; /* empty fields are `missing` */
  double missing;
  char *text;      /* owned, NUL after the last byte */
  size_t size, at; /* at: the next byte to read */
  long line;       /* of byte `at`, from 1 */
  locale_t locale;
  char **name; /* [name_room], owned */
  size_t names, name_room;
  gp_tensor *numbers; /* f64 [room], owned: all values, row by row */
  double *value;      /* its elements */
  size_t values;      /* so far */
  size_t columns;     /* 0 until the first line was read */
} csv;

/* ---- fields -------------------------------------------------------------------------------- */

/* A line ends with LF, with CR LF, or with the file. */
static bool at_end_of_line(const csv *c) {
  return c->at >= c->size || c->text[c->at] == '\n' ||
         (c->text[c->at] == '\r' && (c->at + 1 >= c->size || c->text[c->at + 1] == '\n'));
}

static bool is_blank(char b) { return b == ' ' || b == '\t'; }

/* Leave the field whose text has been cut out: past its separator, or past the line. */
static gp_status leave_field(csv *c, bool *last) {
  *last = at_end_of_line(c);
  if (!*last && c->text[c->at] != c->separator)
    return gp_fail(GP_EFORMAT, "%s:%ld: text after a quoted field, expected '%c'", c->path, c->line,
                   c->separator);
  if (c->at < c->size && c->text[c->at] == '\r') c->at++;
  if (*last) c->line++;
  if (c->at < c->size) c->at++;
  return GP_OK;
}

/* A field in quotes, the first one consumed; a doubled quote stands for one. */
static gp_status quoted_field(csv *c, bool *last) {
  long first_line = c->line;
  char *to = c->text + c->at;
  for (;; c->at++) {
    if (c->at >= c->size)
      return gp_fail(GP_EFORMAT, "%s:%ld: a quoted field has no end", c->path, first_line);
    if (c->text[c->at] == '"' && c->text[++c->at] != '"') break;
    if (c->text[c->at] == '\n') c->line++;
    *to++ = c->text[c->at];
  }
  while (c->at < c->size && is_blank(c->text[c->at])) c->at++;
  gp_status status = leave_field(c, last);
  *to = '\0';
  return status;
}

/* The next field, without the blanks around it, NUL-terminated in place. */
static gp_status next_field(csv *c, char **field, bool *last) {
  while (c->at < c->size && is_blank(c->text[c->at])) c->at++;
  *field = c->text + c->at;
  if (c->at < c->size && c->text[c->at] == '"') {
    c->at++;
    ++*field;
    return quoted_field(c, last);
  }
  while (!at_end_of_line(c) && c->text[c->at] != c->separator) c->at++;
  char *end = c->text + c->at;
  while (end > *field && is_blank(end[-1])) end--;
  gp_status status = leave_field(c, last);
  *end = '\0'; /* at the separator, the line's end or before */
  return status;
}

/* Blank lines are skipped; false at the end of the file. */
static bool find_line(csv *c) {
  for (;;) {
    size_t start = c->at;
    while (c->at < c->size && is_blank(c->text[c->at])) c->at++;
    if (c->at >= c->size) return false;
    if (!at_end_of_line(c)) {
      c->at = start;
      return true;
    }
    c->at += c->text[c->at] == '\r' && c->at + 1 < c->size ? 2 : 1;
    c->line++;
  }
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Names the column by its header, and guesses the usual reason when the first field is none. */
static gp_status not_a_number(const csv *c, long line, size_t column, const char *field) {
  const char *name = column < c->names ? c->name[column] : NULL;
  return gp_fail(GP_EFORMAT, "%s:%ld: column %zu%s%.40s%s is %s%.*s%s, expected a number%s",
                 c->path, line, column + 1, name ? " (" : "", name ? name : "", name ? ")" : "",
                 *field ? "'" : "empty", SHOWN, field, *field ? "'" : "",
                 !c->names && !c->values ? " (does the first line hold names: header = true?)"
                                         : "");
}

/* The characters are checked first: strtod would also take "inf", "nan(1)" and "0x1p4". */
static gp_status parse_number(csv *c, long line, size_t column, const char *field) {
  char *end;
  size_t length = strlen(field);
  if (!length && c->fills) {
    c->value[c->values++] = c->missing;
    return GP_OK;
  }
  if (!length || strspn(field, "+-.0123456789eE") != length)
    return not_a_number(c, line, column, field);
  double value = strtod_l(field, &end, c->locale);
  if (end != field + length || !isfinite(value)) return not_a_number(c, line, column, field);
  c->value[c->values++] = value;
  return GP_OK;
}

static gp_status add_name(csv *c, const char *field) {
  void *array = c->name;
  GP_TRY(gp_grow_array(c->names, &c->name_room, sizeof *c->name, &array));
  c->name = array;
  GP_TRY(gp_copy_string(field, &c->name[c->names]));
  c->names++;
  return GP_OK;
}

/* One line: names or numbers; all lines have the same number of columns. */
static gp_status read_line(csv *c, bool names) {
  long line = c->line;
  bool last = false;
  size_t column = 0;
  for (; !last; column++) {
    char *field;
    GP_TRY(next_field(c, &field, &last));
    if (c->columns && column >= c->columns) continue; /* counted, for the message */
    GP_TRY(names ? add_name(c, field) : parse_number(c, line, column, field));
  }
  if (!c->columns) c->columns = column;
  if (column == c->columns) return GP_OK;
  return gp_fail(GP_EFORMAT, "%s:%ld: %zu columns, expected %zu as in the first line", c->path,
                 line, column, c->columns);
}

/* ---- the file ------------------------------------------------------------------------------ */

/* The text has one byte more than the file, so that the last field can be terminated in place. */
static gp_status read_text(csv *c) {
  gp_reader file;
  void *text = NULL;
  gp_status status = gp_reader_open(&file, c->path);
  if (!status) status = gp_alloc_array((size_t)file.size + 1, 1, &text);
  c->text = text;
  c->size = status ? 0 : (size_t)file.size;
  if (!status) status = gp_reader_get(&file, 0, c->text, c->size);
  gp_reader_close(&file);
  return status;
}

/* Room for all values before the first is read: every field but the last one ends with a separator
 * or with its line. So numbers are never copied, and hold little more than they need. */
static gp_status make_room(csv *c) {
  int64_t fields = 1;
  for (size_t i = c->at; i < c->size; i++)
    fields += c->text[i] == c->separator || c->text[i] == '\n';
  GP_TRY(gp_tensor_new(GP_F64, &(gp_shape){.rank = 1, .dim = {fields}}, &c->numbers));
  c->value = gp_tensor_data(c->numbers);
  return GP_OK;
}

/* A zero byte would end a field early and hide what follows, so it is looked for once. */
static gp_status parse(csv *c, bool header) {
  static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark of some spreadsheets */
  GP_TRY(read_text(c));
  if (c->size >= 3 && !memcmp(c->text, mark, 3)) c->at = 3;
  const char *zero = memchr(c->text, '\0', c->size);
  if (zero)
    return gp_fail(GP_EFORMAT, "%s: byte %zu is 0, expected text", c->path,
                   (size_t)(zero - c->text));
  if (header && find_line(c)) GP_TRY(read_line(c, true));
  GP_TRY(make_room(c));
  while (find_line(c)) GP_TRY(read_line(c, false));
  return c->values ? GP_OK : gp_fail(GP_EFORMAT, "%s: there are no rows of numbers", c->path);
}

/* [rows, columns] of the numbers; columns > 0, since there is a value. */
static gp_status make_tensor(const csv *c, gp_tensor **values) {
  gp_shape shape = {.rank = 2, .dim = {(int64_t)(c->values / c->columns), (int64_t)c->columns}};
  gp_meta meta;
  GP_TRY(gp_meta_make(GP_F64, &shape, &meta));
  return gp_tensor_view(c->numbers, &meta, values);
}

/* strtod_l instead of setlocale: the locale of a process belongs to the program around us. */
gp_status gp_csv_read(const char *path, const gp_csv_options *options, gp_tensor **values,
                      char ***names, size_t *count) {
  csv c = {.path = path,
           .separator = options->separator,
           .fills = options->fills,
           .missing = options->missing,
           .line = 1};
  c.locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  if (!c.locale) return gp_fail(GP_ENOMEM, "%s: cannot read: no memory for a locale", path);
  gp_status status = parse(&c, options->header);
  if (!status) status = make_tensor(&c, values);
  freelocale(c.locale);
  gp_free(c.text);
  gp_tensor_free(c.numbers);
  if (status) {
    gp_file_list_free(c.name, c.names);
    return status;
  }
  *names = c.name;
  *count = c.names;
  return GP_OK;
}
