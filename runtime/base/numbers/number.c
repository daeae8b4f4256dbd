/* base/numbers/number.c - see number.h.
 *
 * A script may call os.setlocale("de_DE"), and strtod then reads "0.5" as 0. The locale of a
 * process belongs to the program around us, so numbers are read in a locale of our own. */
#include "base/numbers/number.h"

#include <locale.h>
#include <pthread.h>
#include <stdlib.h>

static locale_t plain;

static void open_locale(void) { plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0); }

double gp_number_read(const char *text, char **end) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_locale);
  return plain ? strtod_l(text, end, plain) : strtod(text, end);
}
