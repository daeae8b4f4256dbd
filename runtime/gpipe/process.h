/* gpipe/process.h - memory, machine and interrupts of the process. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_PROCESS_H
#define GP_PUBLIC_PROCESS_H

#include "gpipe/status.h"

typedef struct gp_memory_info {
  size_t live, peak;    /* bytes of everything the runtime holds */
  uint64_t allocations; /* calls so far: flat while a pipeline steps */
} gp_memory_info;

gp_memory_info gp_memory(void);
/* Let the n-th allocation from now on fail (1 is the next one; 0 turns it off). For tests. */
void gp_memory_fail_at(uint64_t n);

typedef struct gp_machine {
  int cores;        /* cores this process may use: affinity mask and cgroup quota */
  size_t memory;    /* bytes this process may use: RAM and cgroup limit */
  size_t available; /* bytes that it may still take, by the system's estimate and ulimit */
  const char *isa;  /* "avx512", "avx2", "baseline" */
  char model[64];   /* processor name */
} gp_machine;

gp_machine gp_machine_info(void);

/* Ask running steps to stop between two actions, and take the request back. Threads: any; the
 * request is async-signal-safe. */
void gp_interrupt_request(void);
void gp_interrupt_clear(void);
bool gp_interrupt_pending(void);

#endif
