/* device/cpu/processor.h - whose processor this is, for kernels that choose sizes by it.
 *
 * What is chosen by it changes speed and not bits, but for the f32 products of large weights: those
 * are ours (panels.h) or the library's, whose bits depend on the machine anyway. */
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
