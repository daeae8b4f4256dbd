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

/* What the process has in memory, in bytes. resident = files + stacks + code + heap. */
typedef struct gp_resident_info {
  size_t resident;
  size_t files;     /* pages of the program, its libraries and mapped data */
  size_t stacks;    /* of all threads */
  size_t code;      /* made at run time, by libraries */
  size_t heap;      /* all else */
  size_t allocated; /* what is allocated from the C library, by the runtime, Lua and libraries. More
                       than heap where it was not touched yet, less where freed pages were kept */
  size_t runtime;   /* what the runtime allocated of it: gp_memory().live */
} gp_resident_info;

/* Linux; elsewhere all but `runtime` and `allocated` are 0. Reads /proc, which takes a
 * millisecond. */
gp_resident_info gp_resident(void);

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
