/* base/interrupt.c - one flag that a signal handler sets and that running steps read.
 *
 * A lock-free atomic is the only kind of state that a handler may share with threads. */
#include <stdatomic.h>

#include "gpipe/process.h"

_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a signal handler needs a lock-free flag");

static atomic_bool requested;

void gp_interrupt_request(void) { atomic_store(&requested, true); }

void gp_interrupt_clear(void) { atomic_store(&requested, false); }

bool gp_interrupt_pending(void) { return atomic_load(&requested); }
