/* io/records/line.c - one record: a JSON object whose numbers go to the columns with their names.
 *
 * The text comes from outside: the strict reader of io/text checks all of it. Values stay pending
 * until the whole line is read, so that half of a damaged line is never added. */
#include <math.h>
#include <stdio.h>  /* snprintf */
#include <stdlib.h> /* strtod_l */
#include <string.h>

#include "io/grow.h"
#include "io/records/records.h"
#include "io/text/json.h"

/* ---- numbers -------------------------------------------------------------------------------- */

/* Powers of ten that a double holds exactly. */
static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Read a number of digits and a point, at most 2^53 without the point: then both the digits and the
 * power of ten are exact, and one division rounds once, as strtod would. Source: Clinger, How to
 * read floating point numbers accurately, 1990. */
static bool read_short(const char *text, size_t length, double *value) {
  uint64_t digits = 0;
  size_t at = text[0] == '-', point = length;
  if (length - at > 17) return false;
  for (size_t i = at; i < length; i++) {
    if (text[i] == '.')
      point = i + 1;
    else if (text[i] >= '0' && text[i] <= '9')
      digits = digits * 10 + (uint64_t)(text[i] - '0');
    else
      return false;
  }
  if (digits > (UINT64_C(1) << 53)) return false;
  double whole = (double)digits / powers[length - point];
  *value = at ? -whole : whole;
  return true;
}

static gp_status read_number(gp_json *json, const gp_records *r, double *value) {
  const char *text;
  char *end;
  size_t length;
  bool whole;
  GP_TRY(gp_json_number(json, &text, &length, &whole));
  if (!read_short(text, length, value)) *value = strtod_l(text, &end, r->locale);
  return GP_OK;
}

/* ---- values --------------------------------------------------------------------------------- */

static gp_status add(gp_records *r, const char *name, double value) {
  GP_GROW(r->pending, r->n_pending, r->pending_room);
  gp_records_pending *pending = &r->pending[r->n_pending];
  GP_TRY(gp_records_place(r, name, strlen(name), &pending->column));
  pending->value = value;
  r->column[pending->column].last_pending = r->n_pending++;
  return GP_OK;
}

static bool starts_number(char c) { return c == '-' || (c >= '0' && c <= '9'); }

/* Read a number, true, false or null; for any other value *is_value is false and it is skipped. */
static gp_status read_value(gp_json *json, const gp_records *r, double *value, bool *is_value) {
  char first = gp_json_peek(json);
  bool yes;
  *is_value = true;
  if (starts_number(first)) return read_number(json, r, value);
  if (first == 't' || first == 'f') {
    GP_TRY(gp_json_bool(json, &yes));
    *value = yes;
    return GP_OK;
  }
  *value = (double)NAN;
  if (first == 'n' && gp_json_word(json, "null")) return GP_OK;
  *is_value = false;
  return gp_json_skip(json);
}

/* The pending value with this name; NULL if the line has none. */
static gp_records_pending *pending_of(gp_records *r, const char *name) {
  size_t column;
  if (!gp_records_seek(r, name, strlen(name), &column)) return NULL;
  const size_t at = r->column[column].last_pending;
  return at < r->n_pending && r->pending[at].column == column ? &r->pending[at] : NULL;
}

/* Read {"loss": "nan"}: it says what the null under that name was. */
static gp_status read_nonfinite(gp_json *json, gp_records *r) {
  GP_TRY(gp_json_expect(json, '{'));
  for (bool first = true, more;; first = false) {
    const char *key, *text;
    GP_TRY(gp_json_more(json, first, '}', &more));
    if (!more) return GP_OK;
    GP_TRY(gp_json_key(json, &key));
    GP_TRY(gp_json_string(json, &text));
    double value = strcmp(text, "inf") == 0    ? (double)INFINITY
                   : strcmp(text, "-inf") == 0 ? -(double)INFINITY
                                               : (double)NAN;
    gp_records_pending *pending = pending_of(r, key);
    if (pending) pending->value = value;
  }
}

/* Read a list. The key lies before it in the text, so decoding does not overwrite the key. */
static gp_status read_list(gp_json *json, gp_records *r, const char *key) {
  GP_TRY(gp_json_expect(json, '['));
  int place = 0;
  for (bool first = true, more;; first = false) {
    char name[128];
    double value;
    bool is_value;
    GP_TRY(gp_json_more(json, first, ']', &more));
    if (!more) return GP_OK;
    GP_TRY(read_value(json, r, &value, &is_value));
    int length = snprintf(name, sizeof name, "%s[%d]", key, ++place);
    bool fits = length > 0 && (size_t)length < sizeof name && place <= GP_RECORDS_ELEMENTS;
    if (is_value && fits) GP_TRY(add(r, name, value));
  }
}

/* ---- the line ------------------------------------------------------------------------------- */

/* Read one key and its value; *step receives the step. */
static gp_status read_field(gp_json *json, gp_records *r, double *step) {
  const char *key;
  double value;
  bool is_value;
  GP_TRY(gp_json_key(json, &key));
  char first = gp_json_peek(json);
  if (first == '[') return read_list(json, r, key);
  if (first == '{' && strcmp(key, "nonfinite") == 0) return read_nonfinite(json, r);
  GP_TRY(read_value(json, r, &value, &is_value));
  if (!is_value) return GP_OK;
  if (strcmp(key, "step") == 0) {
    *step = value;
    return GP_OK;
  }
  return add(r, key, value);
}

static gp_status read_fields(gp_json *json, gp_records *r, double *step) {
  GP_TRY(gp_json_expect(json, '{'));
  for (bool first = true, more;; first = false) {
    GP_TRY(gp_json_more(json, first, '}', &more));
    if (!more) return gp_json_end(json);
    GP_TRY(read_field(json, r, step));
  }
}

static gp_status append(gp_records_column_data *column, double step, double value) {
  GP_GROW(column->step, column->count, column->steps_room);
  GP_GROW(column->value, column->count, column->values_room);
  column->step[column->count] = step;
  column->value[column->count++] = value;
  return GP_OK;
}

gp_status gp_records_line(gp_records *r, char *text, size_t size) {
  gp_json json = {.text = text, .size = size};
  double step = (double)NAN;
  r->n_pending = r->guess = 0;
  GP_TRY(read_fields(&json, r, &step));
  if (!isfinite(step)) return gp_fail(GP_EFORMAT, "the record has no step");
  for (size_t i = 0; i < r->n_pending; i++)
    GP_TRY(append(&r->column[r->pending[i].column], step, r->pending[i].value));
  return GP_OK;
}
