/* io/corpus/jsonl.c - lines of JSON: all are checked once, then read row by row.
 *
 * The file stays mapped and unchanged; a row is copied before it is decoded, because decoding
 * writes into the text. Loading reads every row in the same way, so a row that was good then is
 * good later. */
#include <locale.h>
#include <math.h>
#include <stdlib.h> /* strtod_l */
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "gpipe/corpus.h"
#include "gpipe/data.h"
#include "io/grow.h"
#include "io/text/json.h"

enum { SHOWN = 40 }; /* characters of a number that a message shows */

typedef struct field {
  char *name;
  gp_jsonl_kind kind;
  bool known;   /* some row has been read */
  bool whole;   /* for lists: all rows hold whole numbers */
  bool present; /* in the current row */
} field;

struct gp_jsonl {
  char *path;
  gp_tensor *file;
  const char *text;
  size_t size;
  uint64_t *start; /* [rows] the byte where each row begins */
  size_t rows;
  field *field; /* [fields] */
  size_t fields;
  locale_t locale; /* "C" */
  char *row;       /* [row_room] the current row */
  size_t row_room;
  double *list; /* all lists of the current row, one after the other */
  size_t listed, list_room;
  bool loaded; /* while false, elements of lists are checked but not kept */
};

/* The state of reading one row. */
typedef struct reading {
  gp_jsonl *file;
  gp_jsonl_value *value; /* [fields] */
  size_t at;             /* the field */
} reading;

/* ---- values -------------------------------------------------------------------------------- */

/* Read a whole number; one beyond 64 bits is treated like any other number. */
static bool to_integer(const char *text, size_t length, int64_t *value) {
  bool negative = text[0] == '-';
  *value = 0;
  for (size_t i = negative; i < length; i++) {
    int digit = text[i] - '0';
    if (__builtin_mul_overflow(*value, 10, value) ||
        __builtin_sub_overflow(*value, digit, value)) /* there is one more value below zero */
      return false;
  }
  return negative || !__builtin_mul_overflow(*value, -1, value);
}

static gp_status read_number(gp_json *json, gp_jsonl *f, gp_jsonl_value *value) {
  const char *text;
  char *end;
  size_t length;
  bool whole;
  GP_TRY(gp_json_number(json, &text, &length, &whole));
  value->kind =
      whole && to_integer(text, length, &value->integer) ? GP_JSONL_INTEGER : GP_JSONL_NUMBER;
  value->number = strtod_l(text, &end, f->locale);
  if (isfinite((float)value->number)) return GP_OK;
  return gp_fail(GP_EFORMAT, "JSON byte %zu: the number %.*s%s is beyond what f32 holds",
                 json->at - length, length > SHOWN ? SHOWN : (int)length, text,
                 length > SHOWN ? "..." : "");
}

static gp_status read_element(gp_json *json, void *context) {
  reading *r = context;
  gp_jsonl *f = r->file;
  gp_jsonl_value element;
  GP_TRY(read_number(json, f, &element));
  if (f->loaded) {
    GP_GROW(f->list, f->listed, f->list_room);
    f->list[f->listed++] = element.number;
  }
  r->value[r->at].count++;
  bool exact = element.kind == GP_JSONL_INTEGER && element.integer < (1LL << 53) &&
               element.integer > -(1LL << 53);
  r->value[r->at].whole &= exact;
  return GP_OK;
}

/* Read a list. The array moves while it grows, so the value stores in `integer` where its list
 * begins. */
static gp_status read_list(gp_json *json, reading *r) {
  r->value[r->at].kind = GP_JSONL_LIST;
  r->value[r->at].integer = (int64_t)r->file->listed;
  r->value[r->at].whole = true;
  return gp_json_array(json, read_element, r);
}

static gp_status read_value(gp_json *json, reading *r) {
  gp_jsonl_value *value = &r->value[r->at];
  bool yes;
  switch (gp_json_peek(json)) {
  case '"': value->kind = GP_JSONL_TEXT; return gp_json_string(json, &value->text);
  case '[': return read_list(json, r);
  case 't':
  case 'f':
    value->kind = GP_JSONL_BOOL;
    GP_TRY(gp_json_bool(json, &yes));
    value->integer = yes;
    return GP_OK;
  case 'n':
  case '{':
    return gp_fail(GP_EFORMAT,
                   "JSON byte %zu: field '%s' is %s, expected a number, a text, true or false, or "
                   "a list of numbers",
                   json->at, r->file->field[r->at].name,
                   gp_json_peek(json) == 'n' ? "null" : "an object");
  default: return read_number(json, r->file, value);
  }
}

/* ---- rows ---------------------------------------------------------------------------------- */

static const char *const kinds[] = {[GP_JSONL_INTEGER] = "a whole number",
                                    [GP_JSONL_NUMBER] = "a number",
                                    [GP_JSONL_BOOL] = "true or false",
                                    [GP_JSONL_TEXT] = "a text",
                                    [GP_JSONL_LIST] = "a list of numbers"};

static bool is_number(gp_jsonl_kind kind) { return kind <= GP_JSONL_NUMBER; }

/* Determine the kind that a field has in all rows, including this one. */
static gp_status join_kind(field *f, const gp_jsonl_value *value) {
  gp_jsonl_kind kind = f->known ? f->kind : value->kind;
  if (is_number(kind) && is_number(value->kind))
    kind = value->kind > kind ? value->kind : kind;
  else if (kind != value->kind)
    return gp_fail(GP_EFORMAT, "field '%s' is %s, expected %s as in the first row", f->name,
                   kinds[value->kind], kinds[kind]);
  f->whole = (!f->known || f->whole) && value->whole;
  f->kind = kind;
  f->known = true;
  return GP_OK;
}

/* Read the fields of a row. If a key comes twice, the last one counts, as in other JSON readers. */
static gp_status read_fields(gp_json *json, reading *r) {
  gp_jsonl *f = r->file;
  GP_TRY(gp_json_expect(json, '{'));
  for (bool first = true, more;; first = false) {
    const char *key;
    GP_TRY(gp_json_more(json, first, '}', &more));
    if (!more) return gp_json_end(json);
    GP_TRY(gp_json_key(json, &key));
    for (r->at = 0; r->at < f->fields && strcmp(f->field[r->at].name, key) != 0;) r->at++;
    if (r->at == f->fields) {
      GP_TRY(gp_json_skip(json));
      continue;
    }
    r->value[r->at] = (gp_jsonl_value){0};
    f->field[r->at].present = true;
    GP_TRY(read_value(json, r));
  }
}

static gp_status read_row(gp_jsonl *f, size_t start, size_t size, gp_jsonl_value *values) {
  if (size + 1 > f->row_room) {
    void *row = f->row;
    GP_TRY(gp_resize_array(f->row_room, size + size / 2 + 256, 1, &row));
    f->row = row;
    f->row_room = size + size / 2 + 256;
  }
  memcpy(f->row, f->text + start, size);
  f->row[size] = '\0';
  f->listed = 0;
  for (size_t i = 0; i < f->fields; i++) f->field[i].present = false;
  gp_json json = {.text = f->row, .size = size};
  reading r = {f, values, 0};
  GP_TRY(read_fields(&json, &r));
  for (size_t i = 0; i < f->fields; i++)
    if (!f->field[i].present) return gp_fail(GP_EFORMAT, "field '%s' is missing", f->field[i].name);
  return GP_OK;
}

static size_t row_size(const gp_jsonl *f, size_t start) {
  const char *end = memchr(f->text + start, '\n', f->size - start);
  return end ? (size_t)(end - f->text) - start : f->size - start;
}

static bool is_blank(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (!memchr(" \t\r", text[i], 3)) return false;
  return true;
}

/* ---- loading ------------------------------------------------------------------------------- */

static gp_status index_rows(gp_jsonl *f, gp_jsonl_value *values) {
  size_t lines = 1, line = 1;
  for (size_t i = 0; i < f->size; i++) lines += f->text[i] == '\n';
  void *start = NULL;
  GP_TRY(gp_alloc_array(lines, sizeof *f->start, &start));
  f->start = start;
  size_t mark = f->size >= 3 && !memcmp(f->text, "\xef\xbb\xbf", 3) ? 3 : 0; /* byte order */
  for (size_t at = mark; at < f->size; line++) {
    size_t size = row_size(f, at);
    if (!is_blank(f->text + at, size)) {
      gp_status status = read_row(f, at, size, values);
      for (size_t i = 0; i < f->fields && !status; i++)
        status = join_kind(&f->field[i], &values[i]);
      if (status == GP_EFORMAT)
        return gp_fail(GP_EFORMAT, "%s:%zu: byte %zu of the file and on: %s", f->path, line, at,
                       gp_error_text());
      GP_TRY(status);
      f->start[f->rows++] = at;
    }
    at += size + 1;
  }
  return f->rows ? GP_OK : gp_fail(GP_EFORMAT, "%s: there are no rows", f->path);
}

static gp_status copy_names(gp_jsonl *f, const char *const *names, size_t count) {
  void *memory = NULL;
  GP_TRY(gp_alloc_array(count, sizeof *f->field, &memory));
  f->field = memory;
  for (; f->fields < count; f->fields++)
    GP_TRY(gp_copy_string(names[f->fields], &f->field[f->fields].name));
  return GP_OK;
}

static gp_status load(gp_jsonl *f, const char *path, const char *const *names, size_t count) {
  void *values = NULL;
  GP_TRY(gp_copy_string(path, &f->path));
  f->locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  if (!f->locale) return gp_fail(GP_ENOMEM, "%s: no memory for a locale", path);
  GP_TRY(copy_names(f, names, count));
  GP_TRY(gp_file_map(path, &f->file));
  f->text = gp_tensor_data(f->file);
  f->size = (size_t)gp_tensor_numel(f->file);
  GP_TRY(gp_text_check(path, f->file));
  GP_TRY(gp_alloc_array(count, sizeof(gp_jsonl_value), &values));
  gp_status status = index_rows(f, values);
  gp_free(values);
  f->loaded = true;
  return status;
}

gp_status gp_jsonl_load(const char *path, const char *const *names, size_t count, gp_jsonl **file) {
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof **file, &memory));
  gp_status status = load(memory, path, names, count);
  if (status) {
    gp_jsonl_free(memory);
    return status;
  }
  *file = memory;
  return GP_OK;
}

void gp_jsonl_free(gp_jsonl *f) {
  if (!f) return;
  for (size_t i = 0; i < f->fields; i++) gp_free(f->field[i].name);
  if (f->locale) freelocale(f->locale);
  gp_tensor_free(f->file);
  gp_free(f->path);
  gp_free(f->field);
  gp_free(f->start);
  gp_free(f->row);
  gp_free(f->list);
  gp_free(f);
}

/* ---- reading ------------------------------------------------------------------------------- */

size_t gp_jsonl_rows(const gp_jsonl *f) { return f->rows; }
gp_jsonl_kind gp_jsonl_field_kind(const gp_jsonl *f, size_t i) { return f->field[i].kind; }

gp_status gp_jsonl_read(gp_jsonl *f, size_t row, gp_jsonl_value *values) {
  if (row >= f->rows)
    return gp_fail(GP_ERANGE, "%s: row %zu (from 0), expected at most %zu", f->path, row,
                   f->rows - 1);
  GP_TRY(gp_file_unchanged(f->path, (int64_t)f->size));
  size_t start = (size_t)f->start[row];
  gp_status status = read_row(f, start, row_size(f, start), values);
  if (status) return gp_fail_prefix(status, f->path);
  for (size_t i = 0; i < f->fields; i++) {
    if (values[i].kind == GP_JSONL_LIST) values[i].list = f->list + values[i].integer;
    values[i].whole = f->field[i].whole;
  }
  return GP_OK;
}
