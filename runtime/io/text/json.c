/* io/text/json.c - the strict JSON reader: scanning, numbers, strings with their escapes.
 *
 * Invariant: at <= size always, and every read of text[at] comes after a test of it. Nesting
 * follows the caller's own calls, so nothing here recurses. Source: RFC 8259. */
#include "io/text/json.h"

#include <stdio.h> /* snprintf */
#include <string.h>

/* ---- characters ---------------------------------------------------------------------------- */

/* strchr also finds the terminating 0, hence the test before it. */
static void skip_space(gp_json *json) {
  while (json->at < json->size && json->text[json->at] != '\0' &&
         strchr(" \t\r\n", json->text[json->at]))
    json->at++;
}

/* Describe the character at the cursor for a message. */
static const char *found(const gp_json *json, char text[32]) {
  if (json->at >= json->size) return "the end";
  unsigned char byte = (unsigned char)json->text[json->at];
  if (byte < 0x20 || byte >= 0x7f)
    snprintf(text, 32, "byte 0x%02x", byte);
  else
    snprintf(text, 32, "'%c'", byte);
  return text;
}

static gp_status unexpected(const gp_json *json, const char *wanted) {
  char text[32];
  return gp_fail(GP_EFORMAT, "JSON byte %zu: found %s, expected %s", json->at, found(json, text),
                 wanted);
}

/* ---- structure ----------------------------------------------------------------------------- */

gp_status gp_json_expect(gp_json *json, char wanted) {
  skip_space(json);
  char text[] = {'\'', wanted, '\'', '\0'};
  if (json->at >= json->size || json->text[json->at] != wanted) return unexpected(json, text);
  json->at++;
  return GP_OK;
}

/* A trailing comma is not detected here: the caller then expects a value, and fails there. */
gp_status gp_json_more(gp_json *json, bool first, char close, bool *more) {
  skip_space(json);
  char text[] = "',' or ' '";
  text[8] = close;
  if (json->at >= json->size) return unexpected(json, text);
  char here = json->text[json->at];
  *more = here != close;
  if (here == close || (!first && here == ',')) {
    json->at++;
    return GP_OK;
  }
  return first ? GP_OK : unexpected(json, text);
}

gp_status gp_json_end(gp_json *json) {
  skip_space(json);
  return json->at == json->size ? GP_OK : unexpected(json, "nothing more");
}

/* ---- numbers ------------------------------------------------------------------------------- */

static bool is_digit(const gp_json *json) {
  return json->at < json->size && json->text[json->at] >= '0' && json->text[json->at] <= '9';
}

/* Read a whole number, never through a double, which would round offsets beyond 2^53. */
gp_status gp_json_uint(gp_json *json, uint64_t *value) {
  skip_space(json);
  if (!is_digit(json)) return unexpected(json, "a whole number");
  size_t start = json->at;
  uint64_t sum = 0;
  for (; is_digit(json); json->at++) {
    uint64_t digit = (uint64_t)(json->text[json->at] - '0');
    if (sum > (UINT64_MAX - digit) / 10)
      return gp_fail(GP_EFORMAT, "JSON byte %zu: the number does not fit 64 bits", start);
    sum = sum * 10 + digit;
  }
  if (json->text[start] == '0' && json->at > start + 1)
    return gp_fail(GP_EFORMAT, "JSON byte %zu: a number must not start with 0", start);
  if (json->at < json->size && strchr(".eE", json->text[json->at]) && json->text[json->at])
    return unexpected(json, "a whole number without fraction and exponent");
  *value = sum;
  return GP_OK;
}

/* ---- strings ------------------------------------------------------------------------------- */

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Read four hexadecimal digits at the cursor. */
static gp_status read_hex(gp_json *json, uint32_t *code) {
  *code = 0;
  for (int i = 0; i < 4; i++, json->at++) {
    int digit = json->at < json->size ? hex_value(json->text[json->at]) : -1;
    if (digit < 0) return unexpected(json, "four hexadecimal digits");
    *code = *code * 16 + (uint32_t)digit;
  }
  return GP_OK;
}

/* Read the code point of a \u escape whose "\u" is consumed; a pair of surrogates is one. */
static gp_status read_code_point(gp_json *json, uint32_t *code) {
  size_t start = json->at;
  GP_TRY(read_hex(json, code));
  if (*code == 0) return gp_fail(GP_EFORMAT, "JSON byte %zu: a string holds \\u0000", start);
  if (*code < 0xd800 || *code > 0xdfff) return GP_OK;
  uint32_t low = 0;
  bool pair = *code < 0xdc00 && json->size - json->at >= 2 && json->text[json->at] == '\\' &&
              json->text[json->at + 1] == 'u';
  if (pair) {
    json->at += 2;
    GP_TRY(read_hex(json, &low));
  }
  if (low < 0xdc00 || low > 0xdfff)
    return gp_fail(GP_EFORMAT, "JSON byte %zu: a surrogate without its partner", start);
  *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
  return GP_OK;
}

/* Write UTF-8, which is never longer than the escape (six bytes give three, twelve four). */
static char *put_utf8(char *to, uint32_t code) {
  static const struct {
    uint32_t below;
    unsigned char lead;
  } forms[] = {{0x80, 0}, {0x800, 0xc0}, {0x10000, 0xe0}, {0x110000, 0xf0}};
  int more = 0;
  while (code >= forms[more].below) more++;
  *to++ = (char)(forms[more].lead | (code >> (6 * more)));
  while (more-- > 0) *to++ = (char)(0x80 | ((code >> (6 * more)) & 0x3f));
  return to;
}

/* Read one escape, whose backslash is consumed; *to advances past the decoded bytes. */
static gp_status read_escape(gp_json *json, char **to) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  char c = json->at < json->size ? json->text[json->at] : '\0';
  const char *name = c ? strchr(names, c) : NULL;
  if (name) {
    json->at++;
    *(*to)++ = values[name - names];
    return GP_OK;
  }
  if (c != 'u') return unexpected(json, "an escape: one of \"\\/bfnrtu");
  json->at++;
  uint32_t code;
  GP_TRY(read_code_point(json, &code));
  *to = put_utf8(*to, code);
  return GP_OK;
}

/* Read a string and decode it in place; writing never overtakes reading. */
gp_status gp_json_string(gp_json *json, const char **text) {
  skip_space(json);
  if (json->at >= json->size || json->text[json->at] != '"') return unexpected(json, "a string");
  char *start = json->text + ++json->at, *to = start;
  for (;;) {
    if (json->at >= json->size) return unexpected(json, "the end of a string");
    char c = json->text[json->at];
    if ((unsigned char)c < 0x20) return unexpected(json, "an escape for a control character");
    json->at++;
    if (c == '"') break;
    if (c == '\\')
      GP_TRY(read_escape(json, &to));
    else
      *to++ = c;
  }
  *to = '\0'; /* at the closing quote or before it */
  *text = start;
  return GP_OK;
}

gp_status gp_json_key(gp_json *json, const char **key) {
  GP_TRY(gp_json_string(json, key));
  return gp_json_expect(json, ':');
}

/* ---- other values -------------------------------------------------------------------------- */

char gp_json_peek(gp_json *json) {
  skip_space(json);
  return json->at < json->size ? json->text[json->at] : '\0';
}

bool gp_json_word(gp_json *json, const char *word) {
  skip_space(json);
  size_t length = strlen(word);
  if (json->size - json->at < length || memcmp(json->text + json->at, word, length) != 0)
    return false;
  json->at += length;
  return true;
}

gp_status gp_json_bool(gp_json *json, bool *value) {
  *value = gp_json_word(json, "true");
  return *value || gp_json_word(json, "false") ? GP_OK : unexpected(json, "true or false");
}

/* Digits after the cursor, at least one. */
static gp_status skip_digits(gp_json *json) {
  if (!is_digit(json)) return unexpected(json, "a digit");
  while (is_digit(json)) json->at++;
  return GP_OK;
}

static bool skip_one_of(gp_json *json, const char *set) {
  bool found_one = json->at < json->size && json->text[json->at] != '\0' &&
                   strchr(set, json->text[json->at]) != NULL;
  json->at += found_one;
  return found_one;
}

gp_status gp_json_number(gp_json *json, const char **text, size_t *length, bool *whole) {
  skip_space(json);
  size_t start = json->at;
  skip_one_of(json, "-");
  size_t digits = json->at;
  if (!is_digit(json)) return unexpected(json, "a value");
  GP_TRY(skip_digits(json));
  if (json->text[digits] == '0' && json->at > digits + 1)
    return gp_fail(GP_EFORMAT, "JSON byte %zu: a number must not start with 0", digits);
  *whole = true;
  if (skip_one_of(json, ".")) {
    *whole = false;
    GP_TRY(skip_digits(json));
  }
  if (skip_one_of(json, "eE")) {
    *whole = false;
    skip_one_of(json, "+-");
    GP_TRY(skip_digits(json));
  }
  *text = json->text + start;
  *length = json->at - start;
  return GP_OK;
}

static gp_status skip_scalar(gp_json *json) {
  const char *text;
  size_t length;
  bool whole;
  if (gp_json_peek(json) == '"') return gp_json_string(json, &text);
  if (gp_json_word(json, "true") || gp_json_word(json, "false") || gp_json_word(json, "null"))
    return GP_OK;
  return gp_json_number(json, &text, &length, &whole);
}

/* Skip a value. A stack of closing characters replaces recursion; its size limits the depth. */
gp_status gp_json_skip(gp_json *json) {
  char close[GP_JSON_DEPTH];
  int depth = 0;
  bool first = true;
  do {
    bool more = true;
    if (depth) GP_TRY(gp_json_more(json, first, close[depth - 1], &more));
    first = false;
    if (!more) {
      depth--;
      continue;
    }
    const char *key;
    if (depth && close[depth - 1] == '}') GP_TRY(gp_json_key(json, &key));
    char open = gp_json_peek(json);
    if (open != '{' && open != '[') {
      GP_TRY(skip_scalar(json));
      continue;
    }
    if (depth == GP_JSON_DEPTH)
      return gp_fail(GP_EFORMAT, "JSON byte %zu: values lie deeper than %d levels", json->at,
                     GP_JSON_DEPTH);
    close[depth++] = open == '{' ? '}' : ']';
    json->at++;
    first = true;
  } while (depth);
  return GP_OK;
}

gp_status gp_json_object(gp_json *json, const gp_json_field *fields, size_t count, void *context) {
  GP_TRY(gp_json_expect(json, '{'));
  for (bool first = true, more;; first = false) {
    GP_TRY(gp_json_more(json, first, '}', &more));
    if (!more) return GP_OK;
    const char *key;
    GP_TRY(gp_json_key(json, &key));
    size_t i = 0;
    while (i < count && strcmp(fields[i].key, key) != 0) i++;
    GP_TRY(i < count ? fields[i].read(json, context) : gp_json_skip(json));
  }
}

gp_status gp_json_array(gp_json *json, gp_status (*read)(gp_json *, void *), void *context) {
  GP_TRY(gp_json_expect(json, '['));
  for (bool first = true, more;; first = false) {
    GP_TRY(gp_json_more(json, first, ']', &more));
    if (!more) return GP_OK;
    GP_TRY(read(json, context));
  }
}
