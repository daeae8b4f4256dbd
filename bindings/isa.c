/* bindings/isa.c - compares the processor with what the compiler was told to use.
 *
 * A build for -march=native dies from SIGILL on an older machine, in the middle of some loop. This
 * file is compiled for the oldest processor and called before anything else runs. */
#include "isa.h"

#include <stddef.h>

#include "built_isa.h" /* GP_BUILT_ISA, GP_BUILT_MARCH: made by scripts/cmake/isa.cmake */

const char *gp_isa_march(void) { return GP_BUILT_MARCH; }

#define NAME(feature) " " feature
const char *gp_isa_built(void) { return "" GP_BUILT_ISA(NAME); }

const char *gp_isa_missing(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define CHECK(feature)                                                                             \
  if (!__builtin_cpu_supports(feature)) return feature;
  GP_BUILT_ISA(CHECK)
#endif
  return NULL;
}
