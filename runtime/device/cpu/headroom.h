/* device/cpu/headroom.h - let a C++ library start where memory is short, without ending the
 * process.
 *
 * C++ answers a failed allocation with an exception, and one that reaches C code ends the process.
 * Between begin and end, memory is set aside that the library's `operator new` falls back on. Only
 * one thread may be between the two at a time. */
#ifndef GP_DEVICE_CPU_HEADROOM_H
#define GP_DEVICE_CPU_HEADROOM_H

#include "base/status.h"

/* Make sure that `bytes` can be had now, and protect allocations until the end. Errors: GP_ENOMEM,
 * and then there is nothing to end. */
gp_status gp_headroom_begin(size_t bytes);
void gp_headroom_end(void);

#endif
