/* device/cuda/gemm/plan.h - one kind of product as cuBLASLt sees it: descriptors and algorithms.
 *
 * gemm.c keeps plans and finds them again; plan.c makes one and runs it; layout.c describes the
 * product to the library; epilogue.c says what is done to the result on the way; tune.c orders
 * algorithms by the clock; own.cu computes what the library refuses. */
#ifndef GP_DEVICE_CUDA_GEMM_PLAN_H
#define GP_DEVICE_CUDA_GEMM_PLAN_H

#include <cublasLt.h>

#include "device/cuda/gemm/choices.h"
#include "device/cuda/gemm/gemm.h"

/* What all products on a GPU share. */
typedef struct gp_gemm_tools {
  cublasLtHandle_t handle; /* NULL: the library does not start, see refusal */
  cublasStatus_t refusal;
  size_t workspace_bytes; /* of every stream of products (gp_gpu.gemm_workspace) */
  unsigned epilogues;     /* bit e: epilogue e may be asked of the library */
  bool tuning;            /* choose algorithms by the clock: faster, but other bits */
  char *choices;          /* path of the file of such choices; NULL: none */
} gp_gemm_tools;

typedef enum gp_gemm_way {
  GP_GEMM_LIBRARY, /* by cuBLASLt */
  GP_GEMM_OWN,     /* it refuses the product: by a kernel of ours */
  GP_GEMM_APART    /* what follows the product is refused, or does not pay: the caller does it */
} gp_gemm_way;

/* Who put the candidates in order. */
typedef enum gp_gemm_judge { GP_GEMM_GUESS, GP_GEMM_CLOCK, GP_GEMM_FILE } gp_gemm_judge;

enum { GP_GEMM_CANDIDATES = 8 };

/* All that an algorithm depends on; whole words, so that kinds can be compared as memory. */
typedef struct gp_gemm_kind {
  int64_t field[GP_GEMM_KIND];
} gp_gemm_kind;

/* Without the GPU's number: what the same product has on every GPU of one model. */
gp_gemm_kind gp_gemm_kind_of(const gp_gpu *gpu, const gp_gpu_gemm *gemm);
/* The bytes by which every operand is aligned, at most 16: what vector loads ask for. */
int64_t gp_gemm_alignment(const gp_gpu_gemm *gemm);

/* Settled when it is built, and again where a run is refused: then the next candidate is the one,
 * and after the last a smaller workspace, and after that a way without the library. */
typedef struct gp_gemm_plan {
  gp_gemm_way way;
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t a, b, d; /* of the library's operands; see make_layouts */
  int64_t alignment;              /* bytes by which all operands are aligned */
  size_t workspace_bytes;         /* that the candidates may use */
  cublasLtMatmulAlgo_t candidates[GP_GEMM_CANDIDATES];
  int count, at; /* candidates[at] is taken */
  gp_gemm_judge judge;
  const char *refused_at; /* what was refused first; NULL: nothing */
  cublasStatus_t refusal; /* the library's answer, or success: it was not asked */
} gp_gemm_plan;

/* Make the descriptors and ask for algorithms. A refusal is no error but a way. Errors:
 * GP_EDEVICE where the GPU is lost; then there is nothing to free. */
gp_status gp_gemm_plan_build(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                             gp_gemm_plan *plan);
void gp_gemm_plan_free(gp_gemm_plan *plan); /* what it holds */
/* Enqueue the product by the plan's way, which changes where that is refused. Errors:
 * GP_EUNSUPPORTED: apart; GP_EDEVICE. */
gp_status gp_gemm_plan_run(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                           gp_gemm_plan *plan);
/* Tell reports (gp_gpu_note_path) by which way, and why not by a faster one. */
void gp_gemm_plan_note(gp_gpu *gpu, const gp_gpu_gemm *gemm, const gp_gemm_plan *plan);
/* One try, by one algorithm. */
cublasStatus_t gp_gemm_plan_try(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                                const gp_gemm_plan *plan, const cublasLtMatmulAlgo_t *algorithm);
/* GP_OK where only the library refused: it leaves no error of CUDA behind. Else the driver's error,
 * or that a capture is spoilt. */
gp_status gp_gemm_alive(gp_gpu *gpu);

/* Order the candidates by the clock, or take what it chose before (choices.h). Waits; allocates for
 * the time being; where it cannot, the library's order stays. No candidate is left where the
 * epilogue takes longer than a plain product and a pass of its own. Errors: GP_EDEVICE. */
gp_status gp_gemm_plan_tune(gp_gpu *gpu, const gp_gemm_tools *tools, const gp_gpu_gemm *gemm,
                            gp_gemm_plan *plan);

/* The epilogues that this GPU gains from, or those that the environment names. */
unsigned gp_gemm_epilogues(const gp_gpu *gpu, bool tuning);
bool gp_gemm_epilogue_fits(const gp_gemm_tools *tools, const gp_gpu_gemm *gemm);
/* Fill in the plan's descriptors. */
cublasStatus_t gp_gemm_describe_product(const gp_gpu *gpu, const gp_gpu_gemm *gemm,
                                        gp_gemm_plan *plan);
/* Set the epilogue and its operands; row_type: of a bias or of sums. */
cublasStatus_t gp_gemm_epilogue_set(const gp_gpu_gemm *gemm, int32_t row_type,
                                    cublasLtMatmulDesc_t product);
/* The addresses of a run. */
cublasStatus_t gp_gemm_epilogue_point(const gp_gpu_gemm *gemm, cublasLtMatmulDesc_t product);

/* GP_EUNSUPPORTED: the epilogue is not to be had, or does not pay. */
gp_status gp_gemm_refuse(const gp_gpu *gpu, const gp_gpu_gemm *gemm);
/* Set an attribute; the first refusal stays in *status. */
void gp_gemm_set(cublasStatus_t *status, cublasLtMatmulDesc_t product,
                 cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes);
size_t gp_gemm_element(gp_dtype dtype); /* bytes */

#endif
