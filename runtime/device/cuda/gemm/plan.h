/* device/cuda/gemm/plan.h - one kind of product as cuBLASLt sees it: descriptors and algorithms.
 *
 * gemm.c keeps plans and finds them again; plan.c makes one and runs it; layout.c describes the
 * product to the library; epilogue.c says what a product does to its result; own.cu computes
 * what the library refuses. */
#ifndef GP_DEVICE_CUDA_GEMM_PLAN_H
#define GP_DEVICE_CUDA_GEMM_PLAN_H

#include <cublasLt.h>

#include "device/cuda/gemm/gemm.h"

/* What all products on a GPU share. */
typedef struct gp_gemm_tools {
  cublasLtHandle_t handle; /* NULL: the library did not start, see refusal */
  cublasStatus_t refusal;
  size_t workspace_bytes; /* of each logical device (gp_gpu.gemm_workspace) */
  unsigned epilogues;     /* bit e: the library may compute epilogue e */
} gp_gemm_tools;

typedef enum gp_gemm_way {
  GP_GEMM_LIBRARY, /* by cuBLASLt */
  GP_GEMM_OWN,     /* by our own kernel: cuBLASLt refuses the product */
  GP_GEMM_APART    /* the caller computes what follows: that is refused or left out */
} gp_gemm_way;

enum { GP_GEMM_CANDIDATES = 8 };

/* The bytes to which every operand is aligned, at most 16: vector loads need it. */
int64_t gp_gemm_alignment(const gp_gpu_gemm *gemm);

/* Decided by build, and again when a run is refused: then the plan takes the next candidate, after
 * the last one a smaller workspace, and after that a way without the library. */
typedef struct gp_gemm_plan {
  gp_gemm_way way;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, d; /* of the library's operands; see make_layouts */
  int64_t alignment;              /* bytes to which all operands are aligned */
  size_t workspace_bytes;         /* bytes that the candidates may use */
  cublasLtMatmulAlgo_t candidates[GP_GEMM_CANDIDATES];
  int count, at;          /* candidates[at] is used */
  const char *refused_at; /* what the library refused first; NULL: nothing */
  cublasStatus_t refusal; /* the library's answer; success if it was not asked */
} gp_gemm_plan;

/* Make the descriptors and ask for algorithms. A refusal is no error: the plan takes another way.
 * Errors: GP_EDEVICE if the GPU is lost; then there is nothing to free. */
gp_status gp_gemm_plan_build(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                             gp_gemm_plan *plan);
void gp_gemm_plan_free(gp_gemm_plan *plan); /* free what the plan holds */
/* Enqueue the product by the plan's way; if that is refused, change the way. Errors:
 * GP_EUNSUPPORTED: the way is GP_GEMM_APART; GP_EDEVICE. */
gp_status gp_gemm_plan_run(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                           gp_gemm_plan *plan);
/* Note for reports (gp_gpu_note_path) the way, and why it is not a faster one. */
void gp_gemm_plan_note(gp_gpu *gpu, const gp_gpu_gemm *gemm, const gp_gemm_plan *plan);

/* The epilogues that make this GPU faster, or those that the environment names. */
unsigned gp_gemm_epilogues(const gp_gpu *gpu);
bool gp_gemm_epilogue_fits(const gp_gemm_tools *tools, const gp_gpu_gemm *gemm);
/* Fill in the plan's descriptors. */
cublasStatus_t gp_gemm_describe_product(const gp_gpu *gpu, const gp_gpu_gemm *gemm,
                                        gp_gemm_plan *plan);
/* Set the epilogue and its operands; row_type: the type of a bias or of sums. */
cublasStatus_t gp_gemm_epilogue_set(const gp_gpu_gemm *gemm, int32_t row_type,
                                    cublasLtMatmulDesc_t product);
/* Set the epilogue's addresses for a run. */
cublasStatus_t gp_gemm_epilogue_point(const gp_gpu_gemm *gemm, cublasLtMatmulDesc_t product);

/* Return GP_EUNSUPPORTED: the epilogue is refused, or left out. */
gp_status gp_gemm_refuse(const gp_gpu *gpu, const gp_gpu_gemm *gemm);
/* Set an attribute; *status keeps the first refusal. */
void gp_gemm_set(cublasStatus_t *status, cublasLtMatmulDesc_t product,
                 cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes);
size_t gp_gemm_element(gp_dtype dtype); /* bytes */

#endif
