/* device/cuda/gemm/choices.h - the choices that tuning measured, kept in a file between processes.
 *
 * Only tuning (GPIPE_GEMM_TUNE=1) reads and writes it, so that the next process makes the same
 * choices and gets the same bits, on the same kind of GPU with the same library. Without tuning,
 * the library's own first choice is used. */
#ifndef GP_DEVICE_CUDA_GEMM_CHOICES_H
#define GP_DEVICE_CUDA_GEMM_CHOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GP_GEMM_KIND = 16, GP_GEMM_CHOICE = 8 }; /* 64-bit words of each */

typedef struct gp_gemm_choice {
  int64_t kind[GP_GEMM_KIND];         /* of product, see gemm.c; the same on all GPUs of a model */
  uint64_t algorithm[GP_GEMM_CHOICE]; /* cublasLtMatmulAlgo_t; zeros: the product alone is faster */
} gp_gemm_choice;

/* Write the path of the file for a kind of GPU and a version of the library; false if there is no
 * place for one ($XDG_CACHE_HOME, $HOME). */
bool gp_gemm_choices_path(const char *gpu, size_t version, char *path, size_t size);
/* Fill in the algorithm for choice->kind; false if the file has none. Damaged lines are ignored. */
bool gp_gemm_choices_find(const char *path, gp_gemm_choice *choice);
/* Add the choice, unless the file has one for that kind. If the file cannot be written, do
 * nothing. */
void gp_gemm_choices_add(const char *path, const gp_gemm_choice *choice);

#endif
