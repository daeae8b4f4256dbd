/* base/status.h - how internal code fails: one text per thread, written where the fact is known. */
#ifndef GP_BASE_STATUS_H
#define GP_BASE_STATUS_H

#include "gpipe/status.h"

#if defined(__GNUC__)
#define GP_PRINTF(text, args) __attribute__((format(printf, text, args)))
#else
#define GP_PRINTF(text, args)
#endif

/* Set the calling thread's error text and return status, so that `return gp_fail(...)` reads
 * well. */
gp_status gp_fail(gp_status status, const char *format, ...) GP_PRINTF(2, 3);
/* Put "prefix: " before the calling thread's error text; returns status. For the layer that knows
 * the name. */
gp_status gp_fail_prefix(gp_status status, const char *prefix);
/* Set the text as it stands (a worker's text carried to the caller's thread). */
gp_status gp_fail_text(gp_status status, const char *text);

#define GP_TRY(call)                                                                               \
  do {                                                                                             \
    gp_status gp_try_status_ = (call);                                                             \
    if (gp_try_status_ != GP_OK) return gp_try_status_;                                            \
  } while (0)

/* For broken invariants only: unreachable from Lua or from a file. */
#define GP_ASSERT(condition) ((condition) ? (void)0 : gp_broken(#condition, __FILE__, __LINE__))
void gp_broken(const char *condition, const char *file, int line);

#endif
