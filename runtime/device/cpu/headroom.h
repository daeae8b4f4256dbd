/* device/cpu/headroom.h - let a C++ library start where memory is short, without ending the
 * process.
 *
 * C++ answers a failed allocation with an exception, and one that reaches C code ends the process.
 * Between begin and end, memory is set aside that the library's `operator new` falls back on. Only
 * one thread at a time may be between begin and end. */
#ifndef GP_DEVICE_CPU_HEADROOM_H
#define GP_DEVICE_CPU_HEADROOM_H

#include "base/status.h"

/* Make sure that `bytes` can be allocated now, and protect allocations until the end. Errors:
 * GP_ENOMEM; do not call end then. */
gp_status gp_headroom_begin(size_t bytes);
void gp_headroom_end(void);

#endif
