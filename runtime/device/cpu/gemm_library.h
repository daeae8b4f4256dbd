/* device/cpu/gemm_library.h - oneDNN's f32 product, found at run time.
 *
 * The build does not link oneDNN: a machine without it runs our own kernel, and a script that
 * neither multiplies nor makes a pipeline does not load 40 MB. */
#ifndef GP_DEVICE_CPU_GEMM_LIBRARY_H
#define GP_DEVICE_CPU_GEMM_LIBRARY_H

#include "device/cpu/gemm.h"

/* Load the library at the first call of the process, hold it to one thread per call, and say
 * whether the calling thread may use it. False: use our own kernel. Errors: GP_ENOMEM; a later call
 * tries again. Call it first while no other thread allocates: if memory runs out while the library
 * starts, the process ends (headroom.h protects the calling thread only). */
gp_status gp_gemm_library_prepare(bool *usable);
/* Compute the product, with k > 0 and checked arguments, if the library is usable. Errors:
 * GP_ENOMEM if its workspace cannot be allocated; GP_EDEVICE. */
gp_status gp_gemm_library_run(const gp_gemm *g, const float *a, const float *b, float *c);

#endif
