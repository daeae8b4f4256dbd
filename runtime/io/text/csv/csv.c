/* io/text/csv/csv.c - reads files of separated values as tensors.
 *
 * The file is read twice: first its lines and fields are counted, then they become numbers in their
 * final place. Numbers are read in the "C" locale whatever the script has set, and only in decimal
 * form: "nan", "inf" and hexadecimal are errors, because in such files they stand for missing
 * values. Every error names file:line and column. */
#include <locale.h>
#include <math.h>
#include <stdlib.h> /* strtod_l */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/data.h"
#include "io/grow.h"
#include "io/text/csv/fields.h"
#include "io/text/csv/words.h"
#include "io/text/utf8.h"

enum { SHOWN = 40 };                               /* bytes of a field that a message shows */
static const double MOST_EXACT = 9007199254740992; /* 2^53: whole numbers beyond it have gaps */

typedef struct csv {
  gp_csv_fields fields;
  const gp_csv_options *options;
  const gp_csv_column *column; /* [columns], borrowed */
  size_t columns;
  gp_csv_words *words; /* [columns], owned */
  char **name;         /* [names], owned: the header's */
  size_t names;
  int64_t rows, width[2]; /* columns of inputs and of targets */
  gp_tensor *part[2];     /* [rows, width] */
  locale_t locale;
} csv;

/* ---- messages ------------------------------------------------------------------------------ */

/* Fail with the column's name from the header, and with the usual reason if the first field is
 * wrong. */
static gp_status wrong_field(const csv *c, long line, size_t column, const char *wanted) {
  const char *name = column < c->names ? c->name[column] : NULL, *field = c->fields.field;
  bool first = !c->names && c->rows == 0;
  return gp_fail(GP_EFORMAT, "%s:%ld: column %zu%s%.40s%s is %s%.*s%s, expected %s%s",
                 c->fields.path, line, column + 1, name ? " (" : "", name ? name : "",
                 name ? ")" : "", *field ? "'" : "empty", SHOWN, field, *field ? "'" : "", wanted,
                 first ? " (does the first line hold names: header = true?)" : "");
}

static gp_tensor *part_of(const csv *c, const gp_csv_column *column) {
  return c->part[column->part == GP_CSV_TARGET];
}

/* ---- fields as numbers --------------------------------------------------------------------- */

/* Is the field a number? Its characters are checked first: strtod would also accept "inf", "nan(1)"
 * and "0x1p4". */
static bool is_number(const csv *c, double *value) {
  const char *field = c->fields.field;
  size_t length = c->fields.length;
  char *end;
  if (length == 0 || strspn(field, "+-.0123456789eE") != length) return false;
  *value = strtod_l(field, &end, c->locale);
  return end == field + length && isfinite(*value);
}

/* Is a target written as an id, yet too large to differ from its neighbours? */
static bool is_inexact_id(const csv *c, size_t column, double value) {
  const gp_csv_column *of = &c->column[column];
  return of->part == GP_CSV_TARGET && gp_tensor_meta(part_of(c, of))->dtype == GP_I64 &&
         fabs(value) >= MOST_EXACT && !strpbrk(c->fields.field, ".eE");
}

static gp_status read_word(csv *c, long line, size_t column, double *value) {
  uint32_t id;
  if (c->fields.length == 0) return wrong_field(c, line, column, "a word");
  if (is_number(c, value)) return wrong_field(c, line, column, "a word as in other lines");
  if (!gp_utf8_valid(c->fields.field, c->fields.length))
    return wrong_field(c, line, column, "text in UTF-8");
  GP_TRY(gp_csv_words_find(&c->words[column], c->fields.field, &id));
  if (id == GP_CSV_MOST_WORDS)
    return gp_fail(GP_EFORMAT,
                   "%s:%ld: column %zu has more than %d different words, expected "
                   "classes",
                   c->fields.path, line, column + 1, GP_CSV_MOST_WORDS);
  *value = id;
  return GP_OK;
}

static gp_status read_number(csv *c, long line, size_t column, double *value) {
  if (c->fields.length == 0 && c->options->fills) {
    *value = c->options->missing;
    return GP_OK;
  }
  if (!is_number(c, value)) return wrong_field(c, line, column, "a number");
  if (!isfinite((float)*value)) return wrong_field(c, line, column, "a number that f32 holds");
  if (is_inexact_id(c, column, *value))
    return wrong_field(c, line, column, "a whole number below 2^53 (or one with a point)");
  return GP_OK;
}

/* Get a value: from an f32, or from the eight bytes that will hold an id. */
static double get(const gp_tensor *tensor, int64_t at) {
  double value;
  if (gp_tensor_meta(tensor)->dtype != GP_I64) return ((float *)gp_tensor_data(tensor))[at];
  memcpy(&value, (char *)gp_tensor_data(tensor) + 8 * at, sizeof value);
  return value;
}

static void set(gp_tensor *tensor, int64_t at, double value) {
  if (gp_tensor_meta(tensor)->dtype == GP_I64)
    memcpy((char *)gp_tensor_data(tensor) + 8 * at, &value, sizeof value);
  else
    ((float *)gp_tensor_data(tensor))[at] = (float)value;
}

static int64_t place_of(const csv *c, const gp_csv_column *column, int64_t row) {
  return row * c->width[column->part == GP_CSV_TARGET] + column->place;
}

static gp_status read_field(csv *c, long line, size_t column) {
  const gp_csv_column *of = &c->column[column];
  double value;
  if (of->part == GP_CSV_SKIP) return GP_OK;
  GP_TRY(of->words ? read_word(c, line, column, &value) : read_number(c, line, column, &value));
  set(part_of(c, of), place_of(c, of, c->rows), value);
  return GP_OK;
}

/* ---- lines --------------------------------------------------------------------------------- */

static gp_status check_width(const csv *c, long line, size_t width) {
  if (width == c->columns) return GP_OK;
  return gp_fail(GP_EFORMAT, "%s:%ld: %zu columns, expected %zu as in the first line",
                 c->fields.path, line, width, c->columns);
}

/* Read one line: count it, and with `values` also keep its values. */
static gp_status read_line(csv *c, bool values) {
  long line = c->fields.line;
  size_t column = 0;
  for (bool last = false; !last; column++) {
    GP_TRY(gp_csv_next(&c->fields, &last));
    if (values && column < c->columns) GP_TRY(read_field(c, line, column));
  }
  if (values) GP_TRY(check_width(c, line, column)); /* so that the file's first fault is reported */
  c->rows++;
  return GP_OK;
}

/* Read the fields of the next line that is not blank; none at the end of the file. */
static gp_status read_texts(gp_csv_fields *f, char ***text, size_t *count, size_t *room) {
  bool found, last = false;
  GP_TRY(gp_csv_line(f, &found));
  while (found && !last) {
    GP_TRY(gp_csv_next(f, &last));
    GP_GROW(*text, *count, *room);
    GP_TRY(gp_copy_string(f->field, &(*text)[*count]));
    ++*count;
  }
  return GP_OK;
}

/* ---- the table ----------------------------------------------------------------------------- */

static gp_status walk(csv *c, bool values) {
  bool found;
  c->rows = 0;
  for (;;) {
    GP_TRY(gp_csv_line(&c->fields, &found));
    if (!found) return GP_OK;
    GP_TRY(read_line(c, values));
  }
}

static gp_status to_first_row(csv *c) {
  bool found;
  GP_TRY(gp_csv_rewind(&c->fields));
  if (!c->options->header) return GP_OK;
  GP_TRY(gp_csv_line(&c->fields, &found));
  for (bool last = !found; !last;) GP_TRY(gp_csv_next(&c->fields, &last));
  return GP_OK;
}

static gp_status make_parts(csv *c, bool ids) {
  for (size_t i = 0; i < c->columns; i++)
    if (c->column[i].part != GP_CSV_SKIP) c->width[c->column[i].part == GP_CSV_TARGET]++;
  for (int part = 0; part < 2; part++) {
    gp_shape shape = {.rank = 2, .dim = {c->rows, c->width[part]}};
    GP_TRY(gp_tensor_new(part && ids ? GP_I64 : GP_F32, &shape, &c->part[part]));
  }
  return GP_OK;
}

/* Number the ids by the sorted words, whatever the order of the rows. */
static gp_status sort_classes(csv *c, size_t column) {
  const gp_csv_column *of = &c->column[column];
  gp_tensor *tensor = part_of(c, of);
  void *memory = NULL;
  GP_TRY(gp_alloc_array(c->words[column].count, sizeof(uint32_t), &memory));
  uint32_t *rank = memory;
  gp_csv_words_ranks(&c->words[column], rank);
  for (int64_t row = 0; row < c->rows; row++) {
    int64_t at = place_of(c, of, row);
    set(tensor, at, rank[(size_t)get(tensor, at)]);
  }
  gp_free(memory);
  return GP_OK;
}

static bool are_whole(const gp_tensor *tensor) {
  for (int64_t i = 0; i < gp_tensor_numel(tensor); i++) {
    double value = get(tensor, i);
    if (value != floor(value) || fabs(value) > MOST_EXACT) return false;
  }
  return true;
}

/* Turn the eight bytes of each target into an id in place, or into an f32 in another tensor. */
static gp_status settle_targets(csv *c) {
  gp_tensor *y = c->part[1], *values;
  int64_t count = gp_tensor_numel(y);
  if (gp_tensor_meta(y)->dtype != GP_I64) return GP_OK;
  if (are_whole(y)) {
    for (int64_t i = 0; i < count; i++) ((int64_t *)gp_tensor_data(y))[i] = (int64_t)get(y, i);
    return GP_OK;
  }
  GP_TRY(gp_tensor_new(GP_F32, &gp_tensor_meta(y)->shape, &values));
  for (int64_t i = 0; i < count; i++) set(values, i, get(y, i));
  gp_tensor_free(y);
  c->part[1] = values;
  return GP_OK;
}

static gp_status read_table(csv *c, bool ids) {
  void *memory = NULL;
  size_t room = 0;
  if (c->options->header) GP_TRY(read_texts(&c->fields, &c->name, &c->names, &room));
  GP_TRY(gp_alloc_array(c->columns, sizeof *c->words, &memory));
  c->words = memory;
  GP_TRY(walk(c, false));
  if (c->rows == 0) return gp_fail(GP_EFORMAT, "%s: there are no rows of values", c->fields.path);
  GP_TRY(make_parts(c, ids));
  GP_TRY(to_first_row(c));
  GP_TRY(walk(c, true));
  for (size_t i = 0; i < c->columns; i++)
    if (c->words[i].count) GP_TRY(sort_classes(c, i));
  return settle_targets(c);
}

/* ---- public -------------------------------------------------------------------------------- */

/* Pass the results to the caller, who now owns the words of the columns. */
static void give(csv *c, gp_csv_table *table) {
  table->x = c->part[0];
  table->y = c->part[1];
  c->part[0] = c->part[1] = NULL;
  for (size_t i = 0; i < c->columns; i++) {
    table->words[i] = c->words[i].word;
    table->word_count[i] = c->words[i].count;
    c->words[i].word = NULL;
    c->words[i].count = 0;
  }
}

static void clear(csv *c) {
  for (size_t i = 0; c->words && i < c->columns; i++) gp_csv_words_free(&c->words[i]);
  gp_free(c->words);
  gp_file_list_free(c->name, c->names);
  gp_tensor_free(c->part[0]);
  gp_tensor_free(c->part[1]);
  gp_csv_close(&c->fields);
}

/* Read a table. It uses strtod_l instead of setlocale, because the host program owns the locale. */
gp_status gp_csv_read(const char *path, const gp_csv_options *options, const gp_csv_column *columns,
                      size_t count, bool ids, gp_csv_table *table) {
  csv c = {.options = options, .column = columns, .columns = count};
  c.locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  if (!c.locale) return gp_fail(GP_ENOMEM, "%s: cannot read: no memory for a locale", path);
  gp_status status = gp_csv_open(&c.fields, path, options->separator);
  if (!status) status = read_table(&c, ids);
  if (!status) give(&c, table);
  freelocale(c.locale);
  clear(&c);
  return status;
}

gp_status gp_csv_head(const char *path, char separator, char ***first, size_t *first_count,
                      char ***second, size_t *second_count) {
  gp_csv_fields fields;
  char **line[2] = {NULL, NULL};
  size_t count[2] = {0, 0};
  gp_status status = gp_csv_open(&fields, path, separator);
  for (int i = 0; i < 2 && !status; i++) {
    size_t room = 0;
    status = read_texts(&fields, &line[i], &count[i], &room);
  }
  gp_csv_close(&fields);
  if (!status && count[0] == 0)
    status = gp_fail(GP_EFORMAT, "%s: there are no rows of values", path);
  if (status) {
    for (int i = 0; i < 2; i++) gp_file_list_free(line[i], count[i]);
    return status;
  }
  *first = line[0], *first_count = count[0];
  *second = line[1], *second_count = count[1];
  return GP_OK;
}
