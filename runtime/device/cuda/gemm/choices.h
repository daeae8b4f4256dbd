/* device/cuda/gemm/choices.h - what the clock chose, kept in a file from process to process.
 *
 * Only tuning (GPIPE_GEMM_TUNE=1) reads and writes it: the same choices and so the same bits the
 * next time, on the same kind of GPU with the same library. Without tuning the library's own first
 * choice counts, as ever. */
#ifndef GP_DEVICE_CUDA_GEMM_CHOICES_H
#define GP_DEVICE_CUDA_GEMM_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GP_GEMM_KIND = 16, GP_GEMM_CHOICE = 8 }; /* 64-bit words of a kind, of an algorithm */

typedef struct gp_gemm_choice {
  int64_t kind[GP_GEMM_KIND];         /* of product, see gemm.c; the same on all GPUs of a kind */
  uint64_t algorithm[GP_GEMM_CHOICE]; /* cublasLtMatmulAlgo_t; zeros: the product alone is faster */
} gp_gemm_choice;

/* Write the path of the file for a kind of GPU and a version of the library; false where there is
 * no place for one ($XDG_CACHE_HOME, $HOME). */
bool gp_gemm_choices_path(const char *gpu, size_t version, char *path, size_t size);
/* Fill in the algorithm for choice->kind; false: the file has none. Lines that are damaged do not
 * count. */
bool gp_gemm_choices_find(const char *path, gp_gemm_choice *choice);
/* Add it, unless the file has one for that kind. Where nothing can be written nothing happens. */
void gp_gemm_choices_add(const char *path, const gp_gemm_choice *choice);

#endif
