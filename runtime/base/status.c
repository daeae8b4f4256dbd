/* base/status.c - the error text of each thread, and the names of the statuses.
 *
 * The text lives in a fixed thread-local buffer: reporting a failure must not need memory, because
 * running out of memory is one of the failures. Longer texts are cut. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_SIZE = 2048 }; /* holds a marked schedule grid of ordinary size */

static _Thread_local char error_text[TEXT_SIZE];

const char *gp_error_text(void) { return error_text; }

const char *gp_status_code(gp_status status) {
#define CODE(name, code, what) [GP_##name] = code,
  static const char *const codes[] = {GP_STATUS_LIST(CODE)};
#undef CODE
  _Static_assert(sizeof codes / sizeof *codes == GP_STATUS_COUNT, "a code for every status");
  return (unsigned)status < GP_STATUS_COUNT ? codes[status] : "unknown";
}

gp_status gp_fail_text(gp_status status, const char *text) {
  size_t length = strnlen(text, TEXT_SIZE - 1);
  memmove(error_text, text, length); /* text may be this very buffer */
  error_text[length] = '\0';
  return status;
}

gp_status gp_fail(gp_status status, const char *format, ...) {
  char text[TEXT_SIZE]; /* formatted apart: an argument may be the present text */
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return gp_fail_text(status, length < 0 ? format : text);
}

gp_status gp_fail_prefix(gp_status status, const char *prefix) {
  return gp_fail(status, "%s: %s", prefix, error_text);
}

/* End the process, the only place that does: a broken invariant means that nothing can be
 * trusted. */
void gp_broken(const char *condition, const char *file, int line) {
  char text[512];
  int length =
      snprintf(text, sizeof text, "gpipe: broken invariant at %s:%d: %s\n", file, line, condition);
  size_t bytes = length < (int)sizeof text ? (size_t)length : sizeof text - 1;
  ssize_t written = write(STDERR_FILENO, text, bytes);
  (void)written;
  __builtin_trap();
}
