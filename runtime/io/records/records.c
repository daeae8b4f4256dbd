/* io/records/records.c - a file of records, read in blocks, each time from where the last read
 * ended.
 *
 * The file is read and not mapped, because a run that resumes truncates it while others read.
 * Invariant: `offset` lies right after a newline, and the columns hold the lines before it. */
#include "io/records/records.h"

#include <errno.h>
#include <stdio.h> /* snprintf */
#include <string.h>
#include <sys/stat.h>

#include "io/file/reader.h"
#include "io/grow.h"

enum { BLOCK = 1 << 20 };

/* ---- columns -------------------------------------------------------------------------------- */

static bool is_named(const gp_records_column_data *column, const char *name, size_t length) {
  return column->length == length && memcmp(column->name, name, length) == 0;
}

static bool find(const gp_records *r, const char *name, size_t length, size_t *at) {
  for (size_t i = 0; i < r->columns; i++) {
    if (!is_named(&r->column[i], name, length)) continue;
    *at = i;
    return true;
  }
  return false;
}

bool gp_records_seek(gp_records *r, const char *name, size_t length, size_t *at) {
  *at = r->asked < r->columns ? r->asked : 0;
  if (!(r->columns && is_named(&r->column[*at], name, length)) && !find(r, name, length, at))
    return false;
  r->asked = *at + 1;
  return true;
}

gp_status gp_records_place(gp_records *r, const char *name, size_t length, size_t *at) {
  if (r->guess >= r->columns) r->guess = 0;
  *at = r->guess;
  if ((r->columns && is_named(&r->column[r->guess], name, length)) || find(r, name, length, at)) {
    r->guess = *at + 1;
    return GP_OK;
  }
  if (r->columns == GP_RECORDS_COLUMNS)
    return gp_fail(GP_EFORMAT, "more than %d names of values", GP_RECORDS_COLUMNS);
  GP_GROW(r->column, r->columns, r->columns_room);
  gp_records_column_data *made = &r->column[r->columns];
  *made = (gp_records_column_data){.length = length};
  GP_TRY(gp_copy_string(name, &made->name));
  *at = r->columns++;
  r->guess = r->columns;
  return GP_OK;
}

static void forget(gp_records *r) {
  for (size_t i = 0; i < r->columns; i++) {
    gp_free(r->column[i].name);
    gp_free(r->column[i].step);
    gp_free(r->column[i].value);
  }
  r->columns = r->lines = r->count = r->damaged = r->tail_size = r->guess = r->asked = 0;
  r->offset = 0;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static bool is_blank(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (!memchr(" \t\r", text[i], 3)) return false;
  return true;
}

/* Take a line. A damaged one is counted and skipped; a failure of the reader itself ends
 * reading. */
static gp_status take_line(gp_records *r, char *text, size_t size) {
  r->lines++;
  if (is_blank(text, size)) return GP_OK;
  gp_status status = gp_records_line(r, text, size);
  if (status == GP_OK) r->count++;
  if (status != GP_EFORMAT || r->columns == GP_RECORDS_COLUMNS) return status;
  if (!r->damaged++)
    snprintf(r->damage, sizeof r->damage, "%s:%zu: %s", r->path, r->lines, gp_error_text());
  return GP_OK;
}

/* Take the whole lines of text[size]; *used receives the number of their bytes. */
static gp_status take_lines(gp_records *r, char *text, size_t size, size_t *used) {
  *used = 0;
  while (*used < size) {
    char *end = memchr(text + *used, '\n', size - *used);
    if (!end) break;
    size_t length = (size_t)(end - text) - *used;
    GP_TRY(take_line(r, text + *used, length));
    *used += length + 1;
  }
  return GP_OK;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Remember the last bytes of the whole lines. Call it before they are taken, which overwrites
 * them. */
static void note_tail(gp_records *r, const char *text, size_t size) {
  const char *end = size ? memrchr(text, '\n', size) : NULL;
  if (!end) return;
  size_t whole = (size_t)(end - text) + 1;
  r->tail_size = whole < GP_RECORDS_TAIL ? whole : GP_RECORDS_TAIL;
  memcpy(r->tail, end + 1 - r->tail_size, r->tail_size);
}

/* Are the bytes before `offset` still the same? */
static gp_status is_same(const gp_records *r, const gp_reader *file, bool *same) {
  char now[GP_RECORDS_TAIL];
  *same = file->size >= r->offset;
  if (!*same || !r->tail_size) return GP_OK;
  GP_TRY(gp_reader_get(file, r->offset - r->tail_size, now, r->tail_size));
  *same = memcmp(now, r->tail, r->tail_size) == 0;
  return GP_OK;
}

/* Read blocks. If a block ends within a line, the next begins at that line, with twice the room if
 * it held no whole line. */
static gp_status read_blocks(gp_records *r, const gp_reader *file) {
  void *block = NULL;
  size_t room = BLOCK;
  gp_status status = gp_alloc(room, &block);
  while (!status && r->offset < file->size) {
    uint64_t left = file->size - r->offset;
    size_t size = left < room ? (size_t)left : room, used = 0;
    status = gp_reader_get(file, r->offset, block, size);
    if (!status) note_tail(r, block, size);
    if (!status) status = take_lines(r, block, size, &used);
    r->offset += used;
    if (status || used) continue;
    if (size == left) break; /* half a line at the end */
    if (room >= GP_RECORDS_LINE) {
      status = gp_fail(GP_EFORMAT, "line %zu is longer than %d bytes", r->lines + 1, (int)room);
    } else {
      status = gp_resize_array(room, room * 2, 1, &block);
      room *= 2;
    }
  }
  gp_free(block);
  return status;
}

static gp_status read_file(gp_records *r, const gp_reader *file, bool *anew) {
  bool same;
  GP_TRY(is_same(r, file, &same));
  *anew = !same;
  if (!same) forget(r);
  gp_status status = read_blocks(r, file);
  return status == GP_EFORMAT ? gp_fail_prefix(status, r->path) : status;
}

/* Is there no file at all? Then nothing was logged yet. */
static bool is_missing(const char *path) {
  struct stat info;
  return stat(path, &info) != 0 && errno == ENOENT;
}

gp_status gp_records_update(gp_records *r, bool *anew) {
  *anew = false;
  if (is_missing(r->path)) {
    *anew = r->offset > 0;
    forget(r);
    return GP_OK;
  }
  gp_reader file;
  gp_status status = gp_reader_open(&file, r->path);
  if (!status) status = read_file(r, &file, anew);
  gp_reader_close(&file);
  return status;
}

/* ---- making, asking ------------------------------------------------------------------------- */

gp_status gp_records_new(const char *path, gp_records **records) {
  void *memory = NULL;
  GP_TRY(gp_alloc(sizeof **records, &memory));
  gp_records *r = memory;
  gp_status status = gp_copy_string(path, &r->path);
  if (!status) {
    r->locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!r->locale) status = gp_fail(GP_ENOMEM, "%s: no memory for a locale", path);
  }
  if (status) {
    gp_records_free(r);
    return status;
  }
  *records = r;
  return GP_OK;
}

void gp_records_free(gp_records *r) {
  if (!r) return;
  forget(r);
  if (r->locale) freelocale(r->locale);
  gp_free(r->column);
  gp_free(r->pending);
  gp_free(r->path);
  gp_free(r);
}

size_t gp_records_damage(const gp_records *r, const char **text) {
  *text = r->damage;
  return r->damaged;
}

size_t gp_records_count(const gp_records *r) { return r->count; }
size_t gp_records_columns(const gp_records *r) { return r->columns; }
const char *gp_records_name(const gp_records *r, size_t at) { return r->column[at].name; }

bool gp_records_find(const gp_records *r, const char *name, size_t *column) {
  return find(r, name, strlen(name), column);
}

size_t gp_records_column(const gp_records *r, size_t at, const double **steps,
                         const double **values) {
  *steps = r->column[at].step;
  *values = r->column[at].value;
  return r->column[at].count;
}
