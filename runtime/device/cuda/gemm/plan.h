/* device/cuda/gemm/plan.h - one kind of product as cuBLASLt sees it: descriptors and an algorithm.
 *
 * gemm.c keeps plans and finds them again; plan.c makes and runs one; epilogue.c says what is done
 * to the result on the way; tune.c chooses among algorithms by the clock. */
#ifndef GP_DEVICE_CUDA_GEMM_PLAN_H
#define GP_DEVICE_CUDA_GEMM_PLAN_H

#include <cublasLt.h>

#include "device/cuda/gemm/gemm.h"

/* What all products of a device share. The workspace is used by one product after the other: all
 * run on the compute stream. */
typedef struct gp_gemm_tools {
  cublasLtHandle_t handle;
  void *workspace;
  size_t workspace_bytes;
  unsigned epilogues; /* bit e: epilogue e may be asked of the library */
  bool tuning;        /* choose algorithms by the clock: faster, but other bits from run to run */
} gp_gemm_tools;

typedef struct gp_gemm_plan {
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, d; /* of the library's operands; see gp_gemm_plan_build */
  cublasLtMatmulAlgo_t algorithm;
  float milliseconds; /* of a run, where that was measured */
} gp_gemm_plan;

/* Make the descriptors and ask for algorithms. alignment: bytes by which all operands are aligned.
 * Errors: GP_EUNSUPPORTED, GP_EDEVICE. */
gp_status gp_gemm_plan_build(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                             int64_t alignment, gp_gemm_plan *plan);
void gp_gemm_plan_free(gp_gemm_plan *plan); /* what it holds */
gp_status gp_gemm_plan_run(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                           const gp_gemm_plan *plan);

/* Put the fastest of the found algorithms into the plan. Waits; allocates for the time being.
 * Errors:
 * GP_EUNSUPPORTED where an epilogue takes longer than a plain product and a pass of its own. */
gp_status gp_gemm_plan_tune(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                            const cublasLtMatmulHeuristicResult_t *found, int count,
                            gp_gemm_plan *plan);

/* The epilogues that this GPU gains from, or those that the environment names. */
unsigned gp_gemm_epilogues(const gp_gpu *gpu, bool tuning);
bool gp_gemm_epilogue_fits(const gp_gemm_tools *tools, const gp_gpu_gemm *gemm);
/* Set the epilogue and its operands; row_type: of a bias or of sums. */
cublasStatus_t gp_gemm_epilogue_set(const gp_gpu_gemm *gemm, int32_t row_type,
                                    cublasLtMatmulDesc_t product);
/* The addresses of a run. */
cublasStatus_t gp_gemm_epilogue_point(const gp_gpu_gemm *gemm, cublasLtMatmulDesc_t product);

/* GP_OK, or the failure of a call, with a text that names the product. */
gp_status gp_gemm_check(gp_gpu *gpu, const gp_gpu_gemm *gemm, cublasStatus_t status);
/* GP_EUNSUPPORTED: the epilogue is not to be had, or does not pay. */
gp_status gp_gemm_refuse(const gp_gpu *gpu, const gp_gpu_gemm *gemm);
/* Set an attribute; the first refusal stays in *status. */
void gp_gemm_set(cublasStatus_t *status, cublasLtMatmulDesc_t product,
                 cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes);
size_t gp_gemm_element(gp_dtype dtype); /* bytes */

#endif
