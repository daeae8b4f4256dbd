/* io/text/csv/fields.c - cuts a file into lines and fields. */
#include "io/text/csv/fields.h"

#include <string.h>

#include "io/grow.h"
#include "io/safetensors/foreign.h"

enum { PIECE = 1 << 18, LONGEST = 1 << 20 }; /* bytes read at once; most bytes of a field */

/* ---- bytes --------------------------------------------------------------------------------- */

/* What is a file with zero bytes? UTF-16 and UTF-32 begin with a mark; others are recognised by
 * their first bytes. */
static const char *kind_of(const gp_csv_fields *f) {
  if (f->next > PIECE || f->end < 2) return NULL;
  if (!memcmp(f->buffer, "\xff\xfe", 2) || !memcmp(f->buffer, "\xfe\xff", 2) ||
      (f->end > 3 && !memcmp(f->buffer, "\0\0\xfe\xff", 4)))
    return "text in UTF-16 or UTF-32 (save it as UTF-8)";
  return gp_foreign_name(f->buffer, f->end);
}

/* Refuse zero bytes: one would end a field early and hide what follows. */
static gp_status check_text(const gp_csv_fields *f, size_t from) {
  const char *zero = memchr(f->buffer + from, '\0', f->end - from);
  if (!zero) return GP_OK;
  const char *kind = kind_of(f);
  if (kind) return gp_fail(GP_EFORMAT, "%s: it is %s, expected a table as text", f->path, kind);
  return gp_fail(GP_EFORMAT, "%s: byte %llu is 0, expected text", f->path,
                 (unsigned long long)(f->next - (uint64_t)(f->buffer + f->end - zero)));
}

/* Read the next piece of the file over the bytes that were used. */
static gp_status read_piece(gp_csv_fields *f) {
  memmove(f->buffer, f->buffer + f->at, f->end - f->at);
  f->end -= f->at;
  f->at = 0;
  uint64_t left = f->file.size - f->next;
  size_t from = f->end, bytes = left < PIECE - from ? (size_t)left : PIECE - from;
  GP_TRY(gp_reader_get(&f->file, f->next, f->buffer + from, bytes));
  f->end += bytes;
  f->next += bytes;
  return check_text(f, from);
}

/* Look at the next byte, or at the one after it (ahead 0 or 1); -1 at the end of the file and after
 * a failure. */
static int peek(gp_csv_fields *f, size_t ahead) {
  if (f->at + ahead >= f->end) {
    if (f->failure || f->next >= f->file.size) return -1;
    f->failure = read_piece(f);
    if (f->failure || f->at + ahead >= f->end) return -1;
  }
  return (unsigned char)f->buffer[f->at + ahead];
}

/* Is it a blank? A tab is none if it is the separator. */
static bool is_blank(const gp_csv_fields *f, int byte) {
  return byte == ' ' || (byte == '\t' && f->separator != '\t');
}

static void skip_blanks(gp_csv_fields *f) {
  while (is_blank(f, peek(f, 0))) f->at++;
}

/* Is this the end of a line? A line ends with LF, with CR LF, or with the file. */
static bool is_end_of_line(gp_csv_fields *f) {
  int byte = peek(f, 0);
  if (byte == '\r') {
    int after = peek(f, 1);
    return after == '\n' || after < 0;
  }
  return byte == '\n' || byte < 0;
}

static void leave_line(gp_csv_fields *f) {
  if (peek(f, 0) == '\r') f->at++;
  if (peek(f, 0) == '\n') f->at++;
  f->line++;
}

/* ---- fields -------------------------------------------------------------------------------- */

static gp_status keep(gp_csv_fields *f, int byte) {
  if (f->length + 1 >= LONGEST)
    return gp_fail(GP_EFORMAT, "%s:%ld: a field of more than %d bytes", f->path, f->line, LONGEST);
  GP_GROW(f->field, f->length + 1, f->room);
  f->field[f->length++] = (char)byte;
  return GP_OK;
}

/* End the field: move past its separator, or past the line's end. */
static gp_status leave_field(gp_csv_fields *f, bool *last) {
  f->field[f->length] = '\0';
  *last = is_end_of_line(f);
  if (f->failure) return f->failure;
  if (*last) {
    leave_line(f);
    return f->failure;
  }
  if (peek(f, 0) != f->separator)
    return gp_fail(GP_EFORMAT, "%s:%ld: text after a quoted field, expected '%c'", f->path, f->line,
                   f->separator);
  f->at++;
  return GP_OK;
}

/* Read a field in quotes, whose first quote is consumed; a doubled quote stands for one. */
static gp_status quoted_field(gp_csv_fields *f, bool *last) {
  long first_line = f->line;
  for (int byte; (byte = peek(f, 0)) >= 0; f->at++) {
    if (byte == '"') {
      f->at++;
      if (peek(f, 0) != '"') {
        skip_blanks(f);
        return leave_field(f, last);
      }
    }
    if (byte == '\n') f->line++;
    GP_TRY(keep(f, byte));
  }
  if (f->failure) return f->failure;
  return gp_fail(GP_EFORMAT, "%s:%ld: a quoted field has no end", f->path, first_line);
}

gp_status gp_csv_next(gp_csv_fields *f, bool *last) {
  f->length = 0;
  GP_GROW(f->field, f->length, f->room); /* an empty field is a text too */
  skip_blanks(f);
  if (peek(f, 0) == '"') {
    f->at++;
    return quoted_field(f, last);
  }
  while (!is_end_of_line(f) && peek(f, 0) != f->separator) {
    GP_TRY(keep(f, peek(f, 0)));
    f->at++;
  }
  while (f->length > 0 && is_blank(f, f->field[f->length - 1])) f->length--;
  return leave_field(f, last);
}

gp_status gp_csv_line(gp_csv_fields *f, bool *found) {
  for (;;) {
    skip_blanks(f);
    *found = peek(f, 0) >= 0;
    if (!*found || !is_end_of_line(f)) return f->failure;
    leave_line(f);
  }
}

/* ---- the file ------------------------------------------------------------------------------ */

gp_status gp_csv_rewind(gp_csv_fields *f) {
  static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark of some spreadsheets */
  f->at = f->end = 0;
  f->next = 0;
  f->line = 1;
  f->failure = read_piece(f);
  if (!f->failure && f->end >= 3 && !memcmp(f->buffer, mark, 3)) f->at = 3;
  return f->failure;
}

gp_status gp_csv_open(gp_csv_fields *f, const char *path, char separator) {
  void *memory = NULL;
  *f = (gp_csv_fields){.path = path, .separator = separator, .file = {.fd = -1}};
  GP_TRY(gp_reader_open(&f->file, path));
  GP_TRY(gp_alloc(PIECE, &memory));
  f->buffer = memory;
  return gp_csv_rewind(f);
}

void gp_csv_close(gp_csv_fields *f) {
  gp_reader_close(&f->file);
  gp_free(f->buffer);
  gp_free(f->field);
  f->buffer = f->field = NULL;
}
