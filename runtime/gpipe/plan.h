/* gpipe/plan.h - what one batch shape needs. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_PLAN_H
#define GP_PUBLIC_PLAN_H

#include "gpipe/host.h"
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

/* What a plan needs to know of a device; the device itself need not be there. */
typedef struct gp_plan_device_spec {
  int32_t space;  /* its memory space: devices with one number share it; 0: the host's */
  int32_t rank;   /* of the process that drives it: processes share no memory */
  bool packs;     /* its products take packed weights */
  bool parts;     /* it sums rows in parts, within kernels that read the rows anyway */
  bool halves;    /* its updates write halves of the weights beside them */
  bool shown;     /* it is one of those that GP_PLAN_SHOWN plans */
  size_t scratch; /* bytes of workspace that its libraries want for one op, at most */
  gp_host_link host;
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

/* A budget in place of bytes: as little as mode SELECTIVE. */
#define GP_BUDGET_SELECTS (SIZE_MAX - 1)

typedef struct gp_plan_spec {
  gp_plan_kind kind;
  const gp_schedule *schedule; /* placement and order */
  gp_traced_shape shapes[2];   /* larger micro-batches first; the second may have micros = 0 */
  bool sum_loss;               /* the loss is the sum itself: no division by the count */
  /* Per device of the pipeline: bytes that its stages may keep and have in work, for GP_REMAT_AUTO;
   * SIZE_MAX: no limit; 0: as little as mode
   * ALWAYS. NULL: none has one. Borrowed. */
  const size_t *budgets;
  /* Per stage: it keeps everything although the mode is GP_REMAT_SELECTIVE, or nothing of it goes
   * to the host's memory, because it would take more memory otherwise. NULL: no stage does.
   * Borrowed. */
  const bool *keeps;
  /* GP_REMAT_AUTO sends nothing to the host's memory; it makes no dear value again but with its
   * whole layer; it plans lists around its answer exactly and takes the best (plan/refine). */
  bool stays, whole, refine;
  const gp_remat *policy; /* the mode of this plan, in place of the pipeline's; NULL: that one */
} gp_plan_spec;

/* Make a plan for devices that need not be there: it is data only and cannot be run. pipeline: the
 * pipeline that it would belong to (devices, threads and the seed are not read; placement is).
 * devices: one for each device of the pipeline. device: plan only this device's share (its
 * programs, tasks, memory and channels), or one of the following.
 * Ownership: traces are taken, also on failure; the plan is the caller's. Errors: as
 * gp_plan_build. */
enum {
  GP_PLAN_ALL = -1,  /* all devices */
  GP_PLAN_SHOWN = -2 /* those that are shown; all where these cannot be planned alone */
};
gp_status gp_plan_new(const gp_pipeline_spec *pipeline, const gp_plan_device_spec *devices,
                      int device, const gp_plan_spec *spec, gp_plan **plan);
void gp_plan_free(gp_plan *plan);
/* Return the bytes of a device's memory that runs of the plan need; 0 if its share is not
 * planned. */
size_t gp_plan_bytes(const gp_plan *plan, int device);
/* Return the bytes of the host's memory in which what a device has saved waits for its backward
 * pass. */
size_t gp_plan_host_bytes(const gp_plan *plan, int device);
/* Compute the seconds of a step by the cost model: when the last device has run its tasks, with
 * copies to the host's memory and without what it takes to send values. Where one device's share is
 * planned, the others take no time. Errors: GP_ENOMEM. */
gp_status gp_plan_step_time(const gp_plan *plan, double *seconds);
/* X(NAME, text): the parts of a device's memory that a plan needs. SAVED to TRANSIENT are what is
 * alive at the worst moment, WASTE is what their layout takes beyond that. */
#define GP_PLAN_AREA_LIST(X)                                                                       \
  X(SAVED, "saved")           /* what F keeps for the backward pass */                             \
  X(RECOMPUTED, "recomputed") /* what R makes again */                                             \
  X(CARRIED, "carried")       /* what I leaves for W */                                            \
  X(TRANSIENT, "transient")   /* temporaries of one task */                                        \
  X(WASTE, "waste")                                                                                \
  X(EDGES, "edges")       /* values that cross cuts, and parameters of other devices */            \
  X(PREPARED, "prepared") /* what is made of the weights once per step */                          \
  X(CONSTANTS, "constants")                                                                        \
  X(STATES, "kernel states")                                                                       \
  X(VERSIONS, "versions")     /* older weights */                                                  \
  X(PARTIALS, "partial sums") /* of gradients, in the tree of sums */                              \
  X(STAGING, "staging")       /* batch and results, on a device with memory of its own */          \
  X(WORKSPACE, "workspace")                                                                        \
  X(PADDING, "padding") /* between these */
#define GP_PLAN_AREA_ENUM(name, text) GP_PLAN_##name,
typedef enum gp_plan_area { GP_PLAN_AREA_LIST(GP_PLAN_AREA_ENUM) GP_PLAN_AREA_COUNT } gp_plan_area;
#undef GP_PLAN_AREA_ENUM
/* Fill in the bytes of each area of a device; their sum is gp_plan_bytes, but for weights in halves
 * and padding between areas. shared: those that all plans of a pipeline use one after the other,
 * SAVED to WASTE, or 0. */
void gp_plan_areas(const gp_plan *plan, int device, size_t bytes[GP_PLAN_AREA_COUNT],
                   size_t *shared);

int gp_plan_devices(const gp_plan *plan); /* how many its schedule uses */
/* Count the tasks of a device: its actions, and what lowering added. */
int gp_plan_task_count(const gp_plan *plan, int device);

/* Build a plan and allocate all the memory that its runs need. Ownership: traces are taken, also on
 * failure; the plan is the pipeline's until it is dropped or the pipeline closes. Errors:
 * GP_ESCHEDULE if the schedule does not fit the pipeline; those of the gradient rules. */
gp_status gp_plan_build(gp_pipeline *pipeline, const gp_plan_spec *spec, gp_plan **plan);
void gp_plan_drop(gp_pipeline *pipeline, gp_plan *plan);
/* Tell whether the pipeline has this plan; compares addresses only. */
bool gp_pipeline_has_plan(const gp_pipeline *pipeline, const gp_plan *plan);
/* What the runs of a plan need on a device. */
typedef struct gp_plan_need {
  size_t bytes; /* all */
  size_t work;  /* what micro-batches keep, and temporaries */
  size_t grown; /* what the pipeline would hold more for it: packed weights, halves, extras */
  size_t host;  /* of the host's memory, in which saved values wait */
  double time;  /* seconds of a step by the cost model, the same for all devices */
} gp_plan_need;
/* Compute what the runs of such a plan would need on each device, with this mode: needs[devices of
 * the pipeline]. Allocates and keeps nothing. Ownership and errors: as above. */
gp_status gp_plan_measure(gp_pipeline *pipeline, const gp_plan_spec *spec, gp_remat remat,
                          gp_plan_need *needs);
/* X(NAME, text): what a pipeline holds on a device for all of its plans. */
#define GP_HELD_LIST(X)                                                                            \
  X(PARAMETERS, "parameters")                                                                      \
  X(GRADIENTS, "gradients")                                                                        \
  X(OPTIMIZER, "optimizer")                                                                        \
  X(BUFFERS, "buffers") /* twice: a failed step restores them */                                   \
  X(EXTRAS, "extra gradients")                                                                     \
  X(PACKED, "packed")                                                                              \
  X(HALVES, "halves")                                                                              \
  X(THREADS, "thread scratch")
#define GP_HELD_ENUM(name, text) GP_HELD_##name,
typedef enum gp_held { GP_HELD_LIST(GP_HELD_ENUM) GP_HELD_COUNT } gp_held;
#undef GP_HELD_ENUM
/* Fill in what a pipeline would hold on a device for a plan of gp_plan_new, with one thread and
 * without an optimizer; zeros if the device's share is not planned. */
void gp_plan_held(const gp_plan *plan, int device, size_t bytes[GP_HELD_COUNT]);
/* Fill in the bytes of each; measured: all that the pipeline has allocated on the device, for plans
 * too. */
void gp_pipeline_held(const gp_pipeline *pipeline, int device, size_t bytes[GP_HELD_COUNT],
                      size_t *measured);
/* Bytes of the host's memory that the pipeline has allocated for what a device saves. */
size_t gp_pipeline_on_host(const gp_pipeline *pipeline, int device);
/* Bytes of the work area that the pipeline's plans share on a device. */
size_t gp_pipeline_shared(const gp_pipeline *pipeline, int device);

/* List what is alive in the work area during each task of a device: moments[tasks][4], what is
 * saved, recomputed, carried and transient. Errors: GP_ENOMEM. */
gp_status gp_plan_alive(const gp_plan *plan, int device, size_t (*moments)[4]);

/* Return what a device has left for plans; SIZE_MAX if that is not known, as on the host.
 * Errors: GP_EDEVICE. */
gp_status gp_pipeline_free_bytes(const gp_pipeline *pipeline, int device, size_t *bytes);

/* A value that crosses a cut: one stage makes it and others read it. */
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
  int kept, recomputed; /* micro-batches whose values are kept, or recomputed, at once */
  int held;             /* recomputed ones of which F keeps something all the same */
  int carried;          /* micro-batches whose I ran and whose W did not yet */
  size_t kept_bytes, recomputed_bytes, held_bytes, carried_bytes; /* of one micro-batch */
  size_t away_bytes;     /* likewise: of what waits in the host's memory; 0: nothing does */
  int partials;          /* partial sums of its gradients that are alive at once */
  size_t owned_bytes;    /* of the gradients that it sums and updates */
  size_t gradient_bytes; /* of all gradients of the stage */
} gp_stage_info;

/* Print the lowered schedule of a plan: compute, recomputation, updates, and sends and receives of
 * the values that cross devices (">3" if it is not the next stage). Writes into text[size]; returns
 * the length that it needs without the terminating 0. */
size_t gp_plan_print(const gp_plan *plan, int device, char *text, size_t size);
/* Print what each task of a device waits for, reads, adds to and writes, a line per task; *length:
 * as above. Errors: GP_ENOMEM. */
gp_status gp_plan_page(const gp_plan *plan, int device, char *text, size_t size, size_t *length);
/* Print what GPUs of two ranks send each other, in this order: a line per directed pair of devices;
 * *length: as above. Errors: GP_ENOMEM. */
gp_status gp_plan_transfers(const gp_plan *plan, char *text, size_t size, size_t *length);
int gp_plan_edge_count(const gp_plan *plan);
void gp_plan_edge_info(const gp_plan *plan, int edge, gp_edge_info *info);
void gp_plan_stage_info(const gp_plan *plan, int stage, int copy, gp_stage_info *info);
/* Count multiplications and additions, and bytes moved, of an action (F, B, I, W or R) of a stage
 * for one of the larger micro-batches; zero if the plan does not run it. */
void gp_plan_cost(const gp_plan *plan, int stage, gp_act act, double *flop, double *bytes);
/* Count how often such an action waits for the same action of the other replicas, in its middle. */
int gp_plan_gathers(const gp_plan *plan, int stage, gp_act act);
/* Call f for each op of that task, in its order. */
void gp_plan_each_op(const gp_plan *plan, int stage, gp_act act,
                     void (*f)(void *context, const char *op, double flop, double bytes),
                     void *context);

/* A value that a task of a larger micro-batch leaves for later ones: what F saves, what R makes
 * again, and what I leaves for W. Texts are borrowed from the plan. */
typedef struct gp_saved_info {
  int stage, layer;       /* layer: from 0; the loss counts as one more */
  const char *label, *op; /* of the layer and the op that make it */
  char shape[96];         /* "f32 32x128" */
  size_t bytes;
  gp_act maker, last;                /* F, R or I; the action that reads it last, or the maker */
  bool away;                         /* it waits in the host's memory */
  const char *reader, *reader_label; /* the first op that reads it there, and its layer; or NULL */
} gp_saved_info;
typedef void (*gp_saved_visit)(void *context, const gp_saved_info *info);
/* Call visit for each such value of a training plan, stage after stage, in the order in which they
 * are made. Errors: GP_ENOMEM. */
gp_status gp_plan_each_left(const gp_plan *plan, gp_saved_visit visit, void *context);

/* What a layer adds to its stage, for one of the larger micro-batches. */
typedef struct gp_layer_info {
  size_t kept_bytes; /* of what its forward makes and a backward reads, if nothing is recomputed */
  size_t carried_bytes; /* of what its I leaves for W, where its stage runs these apart */
  double flop, bytes;   /* of its forward; bytes are those moved */
  bool reads_input;     /* its backward reads what earlier layers of its stage made, or the batch */
} gp_layer_info;

/* Fill infos[count] for the layers from the first on; the loss counts as one more layer. Layers
 * whose stage is not planned have zeros. Errors: GP_ENOMEM. */
gp_status gp_plan_layers(const gp_plan *plan, gp_layer_info *infos, int count);

/* Return the meta of the k-th output of a larger micro-batch, borrowed from the plan; NULL if there
 * is no such output. */
const gp_meta *gp_plan_output_meta(const gp_plan *plan, int k);
/* The same for the gradient of the k-th input, which GP_PLAN_SPLIT makes; NULL for inputs that hold
 * integers and for those that no output depends on. */
const gp_meta *gp_plan_input_grad_meta(const gp_plan *plan, int k);

#endif
