/* io/text/json.h - a strict JSON reader that returns one token at a time.
 *
 * The headers that we read come from outside, may be 100 MB long and hold 64-bit offsets. A
 * library's tree would take many times the memory of the text and time to build, would read numbers
 * as doubles or signed integers, and has no limit on depth: so this reader takes tokens from the
 * text in place. It allocates nothing and its stack use is constant. Strings are decoded inside the
 * text (they only shrink) and stay valid as long as the text does. Every error is GP_EFORMAT and
 * names the byte. */
#ifndef GP_IO_TEXT_JSON_H
#define GP_IO_TEXT_JSON_H

#include "base/status.h"

typedef struct gp_json {
  char *text; /* borrowed; strings in it are overwritten by their decoded form */
  size_t size, at;
} gp_json;

/* Skip white space and consume the expected character: '{', '[' or ':'. */
gp_status gp_json_expect(gp_json *json, char wanted);
/* Inside an object or array: consume the comma (unless first) or the closing character. */
gp_status gp_json_more(gp_json *json, bool first, char close, bool *more);
/* Read a string, NUL-terminated in place. A \u0000 in it is an error: names are C strings. */
gp_status gp_json_string(gp_json *json, const char **text);
/* Read a key and its colon. */
gp_status gp_json_key(gp_json *json, const char **key);
/* Read a number without sign, fraction and exponent that fits 64 bits. */
gp_status gp_json_uint(gp_json *json, uint64_t *value);
/* Check that only white space is left. */
gp_status gp_json_end(gp_json *json);

/* The first character of the next value; 0 at the end. */
char gp_json_peek(gp_json *json);
/* Consume true, false or null if it comes next. */
bool gp_json_word(gp_json *json, const char *word);
gp_status gp_json_bool(gp_json *json, bool *value);
/* Read the text of any number; whole: it has neither fraction nor exponent. */
gp_status gp_json_number(gp_json *json, const char **text, size_t *length, bool *whole);
/* Check and skip any value. Errors: also for one nested deeper than GP_JSON_DEPTH. */
enum { GP_JSON_DEPTH = 100 };
gp_status gp_json_skip(gp_json *json);

/* The function that reads the value of a key. */
typedef struct gp_json_field {
  const char *key;
  gp_status (*read)(gp_json *json, void *context);
} gp_json_field;

/* Read a whole object: call the functions of these keys and skip the others. */
gp_status gp_json_object(gp_json *json, const gp_json_field *fields, size_t count, void *context);
/* Read a whole array, each element with `read`. */
gp_status gp_json_array(gp_json *json, gp_status (*read)(gp_json *, void *), void *context);

#endif
