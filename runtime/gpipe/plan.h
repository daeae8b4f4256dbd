/* gpipe/plan.h - what one batch shape needs. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_PLAN_H
#define GP_PUBLIC_PLAN_H

#include "gpipe/pipeline.h"
#include "gpipe/trace.h"

/* Programs, memory and the lowered schedule. It belongs to its pipeline. */
typedef struct gp_plan gp_plan;

typedef enum gp_plan_kind {
  GP_PLAN_STEP,     /* forward, loss, backward as scheduled */
  GP_PLAN_SPLIT,    /* forward of all micro-batches; backward when its gradient is given */
  GP_PLAN_EVALUATE, /* forward and loss */
  GP_PLAN_FORWARD   /* forward only */
} gp_plan_kind;

/* A device as a plan sees it; it may not be there. */
typedef struct gp_plan_device_spec {
  int32_t space;       /* its memory: devices with one number read each other's; 0: the host's */
  bool packs;          /* its products take packed weights */
  bool parts;          /* it adds rows up by parts, on the way of what else they are read for */
  bool halves;         /* its updates write halves of the weights beside them */
  bool side;           /* it has a second queue of ops, for gradients of parameters */
  size_t scratch;      /* bytes that its libraries want beside, at most, for one op */
  size_t side_scratch; /* the same for ops of its second queue */
} gp_plan_device_spec;

/* The traced model for micro-batches of `rows` rows; there are `micros` of them. */
typedef struct gp_traced_shape {
  gp_trace *trace; /* taken */
  int64_t rows;
  int micros;
  gp_ref outputs[GP_MAX_BATCH_TENSORS]; /* what the model returns, in plans without a loss */
  int output_count;
  gp_ref loss_sum;        /* scalar; GP_NONE in plans without a loss */
  gp_ref loss_count;      /* integer scalar that depends on the targets alone, or GP_NONE */
  int64_t constant_count; /* of this micro-batch, where loss_count is GP_NONE */
} gp_traced_shape;

typedef struct gp_plan_spec {
  gp_plan_kind kind;
  const gp_schedule *schedule; /* placement and order */
  gp_traced_shape shapes[2];   /* larger micro-batches first; the second may have micros = 0 */
  bool sum_loss;               /* the loss is the sum itself: no division by the count */
} gp_plan_spec;

/* A plan for devices that need not be there: data only, which nobody can run. pipeline: what it
 * would be made from (devices, threads and the seed are not read; placement is). devices: as many
 * as it has. device: only its share is planned, of a synchronous schedule: its programs, tasks,
 * memory and channels; -1: all devices. Ownership:
 * traces are taken, also on failure; the plan is the caller's. Errors: as gp_plan_build. */
gp_status gp_plan_new(const gp_pipeline_spec *pipeline, const gp_plan_device_spec *devices,
                      int device, const gp_plan_spec *spec, gp_plan **plan);
void gp_plan_free(gp_plan *plan);
/* The bytes that runs of the plan want of a device's memory; 0 where its share is not planned. */
size_t gp_plan_bytes(const gp_plan *plan, int device);
/* Actions of a device with everything that was added to them. */
int gp_plan_task_count(const gp_plan *plan, int device);

/* Build a plan and take all the memory that its runs need. Ownership: traces are taken, also on
 * failure; the plan is the pipeline's until it is dropped or the pipeline closes. Errors:
 * GP_ESCHEDULE where the schedule does not fit the pipeline; those of the gradient rules. */
gp_status gp_plan_build(gp_pipeline *pipeline, const gp_plan_spec *spec, gp_plan **plan);
void gp_plan_drop(gp_pipeline *pipeline, gp_plan *plan);
/* Whether the pipeline has this plan; only the address is looked at. */
bool gp_pipeline_has_plan(const gp_pipeline *pipeline, const gp_plan *plan);
/* The bytes that the runs of such a plan would take on each device, with this mode: bytes[devices
 * of the pipeline]. Nothing is taken or kept. Ownership and errors: as above. */
gp_status gp_plan_measure(gp_pipeline *pipeline, const gp_plan_spec *spec, gp_remat remat,
                          size_t *bytes);
/* What a device has left for plans; SIZE_MAX where that is not known: on the host. Errors:
 * GP_EDEVICE. */
gp_status gp_pipeline_free_bytes(const gp_pipeline *pipeline, int device, size_t *bytes);

/* What crosses a cut: a value that one stage makes and others read. */
typedef struct gp_edge_info {
  const char *label; /* of the layer that makes it, borrowed from the plan */
  int from, to_count;
  const int32_t *to; /* reading stages, ascending; borrowed */
  bool backward;     /* a gradient */
  int slots;         /* values that may be under way at once */
  size_t bytes;      /* of one */
} gp_edge_info;

/* What a stage needs beside its parameters, on one of its devices. */
typedef struct gp_stage_info {
  int versions;         /* of the weights, the newest included */
  int kept, recomputed; /* micro-batches whose values are kept or made again at once */
  int carried;          /* for which I ran and W did not yet */
  size_t kept_bytes, recomputed_bytes, carried_bytes; /* of one micro-batch */
} gp_stage_info;

/* The lowered schedule of a plan, as text: compute, recomputation, updates, and sends and receives
 * of the values that cross devices (">3" where it is not the next stage). Writes into text[size];
 * returns the length that it needs without the end. */
size_t gp_plan_print(const gp_plan *plan, int device, char *text, size_t size);
int gp_plan_edge_count(const gp_plan *plan);
void gp_plan_edge_info(const gp_plan *plan, int edge, gp_edge_info *info);
void gp_plan_stage_info(const gp_plan *plan, int stage, int copy, gp_stage_info *info);
/* Multiplications and additions, and bytes moved, of an action (F, B, I, W or R) of a stage for one
 * of the larger micro-batches; zero where the plan does not run it. */
void gp_plan_cost(const gp_plan *plan, int stage, gp_act act, double *flop, double *bytes);

/* Of the k-th output of one larger micro-batch, borrowed from the plan; NULL: it has no such. */
const gp_meta *gp_plan_output_meta(const gp_plan *plan, int k);
/* The same of the gradient of the k-th input, which plans of two halves make; NULL of inputs that
 * hold integers and of those that no output depends on. */
const gp_meta *gp_plan_input_grad_meta(const gp_plan *plan, int k);

#endif
