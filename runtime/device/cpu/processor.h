/* device/cpu/processor.h - whose processor this is, for kernels that choose sizes by it.
 *
 * What is chosen by it may change the speed of a kernel and never its bits: a run that moves to
 * another machine of the same instruction set is to go on as it began. */
#ifndef GP_DEVICE_CPU_PROCESSOR_H
#define GP_DEVICE_CPU_PROCESSOR_H

#include <stdbool.h>

static inline bool gp_processor_is_intel(void) {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

#endif
