/* device/cpu/gemm_library.h - oneDNN's f32 product, found at run time.
 *
 * Nothing links oneDNN: a machine without it runs our own kernel, and a script that neither
 * multiplies nor makes a pipeline does not load 40 MB. */
#ifndef GP_DEVICE_CPU_GEMM_LIBRARY_H
#define GP_DEVICE_CPU_GEMM_LIBRARY_H

#include "device/cpu/gemm.h"

/* Whether the calling thread may use the library: loads it at the first call of the process and
 * holds it to one thread per call. False: use our own kernel. Errors: GP_ENOMEM; a later call tries
 * again. Best called first while no other thread asks for memory: what lacks while the library
 * starts ends the process (headroom.h covers the calling thread only). */
gp_status gp_gemm_library_prepare(bool *usable);
/* The product, with k > 0 and checked arguments, where it is usable. Errors: GP_ENOMEM for its
 * workspace; GP_EDEVICE. */
gp_status gp_gemm_library_run(const gp_gemm *g, const float *a, const float *b, float *c);

#endif
