/* gpipe/status.h - how a call says that it failed. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_STATUS_H
#define GP_PUBLIC_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(NAME, code, meaning). One list makes the enum, the names and the codes that Lua sees. */
/* clang-format off */
#define GP_STATUS_LIST(X)                                                      \
  X(OK,           "ok",          "no error")                                   \
  X(EINVAL,       "invalid",     "an argument is not what the function takes") \
  X(ESHAPE,       "shape",       "shapes do not fit")                          \
  X(EDTYPE,       "dtype",       "dtypes do not fit")                          \
  X(ERANGE,       "range",       "a value is outside its range")               \
  X(ENOMEM,       "memory",      "memory could not be allocated")                    \
  X(EIO,          "io",          "the operating system refused an input or output operation") \
  X(EFORMAT,      "format",      "a file is not what it should be")            \
  X(EDEVICE,      "device",      "a device is missing or failed")              \
  X(ESTATE,       "state",       "the object is in the wrong state for this call") \
  X(EUNSUPPORTED, "unsupported", "this build cannot do that")                  \
  X(ESCHEDULE,    "schedule",    "a schedule is not valid")                    \
  X(EFINITE,      "finite",      "a value is not finite")                      \
  X(EINTERRUPT,   "interrupt",   "the user interrupted")                       \
  X(EINJECTED,    "injected",    "a test asked for this failure")             \
  X(ETIMEOUT,     "timeout",     "no progress was made for as long as is allowed")
/* clang-format on */

#define GP_STATUS_ENUM(name, code, what) GP_##name,
typedef enum gp_status { GP_STATUS_LIST(GP_STATUS_ENUM) GP_STATUS_COUNT } gp_status;
#undef GP_STATUS_ENUM

/* Text of the calling thread's last failure, "who: what is, what was wanted"; valid until its next
 * one. */
const char *gp_error_text(void);
/* "shape", "memory", ...: what Lua gets as `code`. */
const char *gp_status_code(gp_status status);

#endif
