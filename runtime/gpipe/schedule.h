/* gpipe/schedule.h - lists of actions, verified ones, and what lowering adds to them. See gpipe.h
 * for what holds everywhere. */
#ifndef GP_PUBLIC_SCHEDULE_H
#define GP_PUBLIC_SCHEDULE_H

#include "gpipe/status.h"

/* X(NAME, text): what an action does, and its letters in the text form, which is that of
 * torch.distributed.pipelining's CSV. Compute first; then what lowering adds; U is an update, and
 * its micro is the number of the update. REDUCE to CLIP end a synchronous mini-batch, each once a
 * stage and in this order: the gradients of a stage's copies are added, then those of a
 * parameter that several layers use; the stage's part of the norm of all gradients is taken; all
 * are scaled when every part is there. A plan adds C, which counts what the loss is divided by, P,
 * which prepares weights, and S, which writes buffers for a micro-batch after all forward passes;
 * and, once a device: SEND hands to other devices what
 * they read of this one once per step; VOTE reports the device's norms and failures; DECIDE, on one
 * device, collects the votes and says whether and how all stages are updated. IDLE is an empty
 * cell. */
#define GP_ACT_LIST(X)                                                                             \
  X(F, "F")                                                                                        \
  X(B, "B")                                                                                        \
  X(I, "I")                                                                                        \
  X(W, "W")                                                                                        \
  X(R, "R")                                                                                        \
  X(U, "U")                                                                                        \
  X(C, "C")                                                                                        \
  X(P, "P")                                                                                        \
  X(S, "S")                                                                                        \
  X(SEND, "SEND")                                                                                  \
  X(VOTE, "VOTE")                                                                                  \
  X(DECIDE, "DECIDE")                                                                              \
  X(SEND_F, "SEND_F")                                                                              \
  X(RECV_F, "RECV_F")                                                                              \
  X(SEND_B, "SEND_B")                                                                              \
  X(RECV_B, "RECV_B")                                                                              \
  X(REDUCE, "REDUCE_GRAD")                                                                         \
  X(TIE, "REDUCE_TIED")                                                                            \
  X(NORM, "NORM")                                                                                  \
  X(CLIP, "CLIP")                                                                                  \
  X(UNSHARD, "UNSHARD")                                                                            \
  X(RESHARD, "RESHARD")                                                                            \
  X(IDLE, "")
#define GP_ACT_ENUM(name, text) GP_ACT_##name,
typedef enum gp_act { GP_ACT_LIST(GP_ACT_ENUM) GP_ACT_COUNT } gp_act;
#undef GP_ACT_ENUM

const char *gp_act_name(gp_act act); /* its letters */

typedef struct gp_action {
  uint8_t op;      /* gp_act */
  bool joined;     /* one action together with the next one: "(0F4;3B1)" */
  int32_t stage;   /* -1 in an empty cell */
  int32_t micro;   /* -1 where there is none (gp_act_has_micro) */
  int32_t version; /* of the weights: after so many updates; -1: not said */
} gp_action;

/* Lists of actions under construction, one per device: 16 bytes an action. */
typedef struct gp_rows gp_rows;

gp_status gp_rows_new(int device_count, gp_rows **rows);
void gp_rows_free(gp_rows *rows);
int gp_rows_device_count(const gp_rows *rows);
/* Append one action. Errors: GP_ERANGE for a device that is not there; GP_ENOMEM. */
gp_status gp_rows_add(gp_rows *rows, int device, const gp_action *action);
/* Append what a text holds, "0F0,0F1,(0F2;3B0)OVERLAP_F_B,,0B1,2F5@3". Errors: GP_ESCHEDULE, with
 * the number of actions before the faulty one in *position (optional). */
gp_status gp_rows_read(gp_rows *rows, int device, const char *text, int *position);
/* Append the lists of one mini-batch of so many micro-batches once for each of `steps` mini-batches
 * of a stream, with an update of each stage behind the last of its gradients. rows: as many devices
 * as `of`, another object. Errors: GP_ERANGE; GP_ENOMEM. */
gp_status gp_rows_repeat(gp_rows *rows, const gp_rows *of, int micros, int steps);
/* Actions of a device, valid until the next change. */
const gp_action *gp_rows_get(const gp_rows *rows, int device, int *count);
/* Write the text of actions[count] into text[size]; returns the length it needs without the end. */
size_t gp_rows_print(const gp_action *actions, int count, char *text, size_t size);

/* A limit that keeps products of counts far from overflow. */
enum { GP_MOST_REPLICAS = 1024 };

/* Lists of actions per device, verified: complete, in a possible order, on the right devices. */
typedef struct gp_schedule gp_schedule;

typedef struct gp_schedule_spec {
  const gp_rows *rows;
  int stage_count, copy_count; /* copy_count: devices per stage: 1 or 2 for each replica */
  /* Replicas of one schedule, each with devices of its own: replica r has the copies from r *
   * copy_count / replicas on, and runs the micro-batches from r * replica_micros on, of each batch
   * where there is one. 0 or 1: no replicas, and replica_micros is not read. */
  int replicas, replica_micros;
  const int32_t *placement; /* stage after stage: copy_count devices each */
  int batch;                /* micro-batches per update; 0: synchronous */
  int micro_count;          /* how many there must be; 0: as many as there are */
} gp_schedule_spec;

/* What is wrong with a schedule: see verify in docs/schedules.md for the checks. */
typedef struct gp_schedule_fault {
  const char *check;
  int device, position; /* of the action, from 0; -1: none */
} gp_schedule_fault;

/* Verify; fault (optional) receives what the text says. Ownership: actions are copied. Errors:
 * GP_ESCHEDULE, the text prints the grid with the faulty action marked. */
gp_status gp_schedule_new(const gp_schedule_spec *spec, gp_schedule **schedule,
                          gp_schedule_fault *fault);
void gp_schedule_free(gp_schedule *schedule);
/* Make a schedule of this one's forward passes alone, or (backward) of its forward passes first and
 * then its backward passes. */
gp_status gp_schedule_part(const gp_schedule *schedule, bool backward, gp_schedule **part);
int gp_schedule_device_count(const gp_schedule *schedule);
/* Actions of a device as they were given. */
const gp_action *gp_schedule_get(const gp_schedule *schedule, int device, int *count);

/* Resources that a schedule may take; negative fields (or NULL) are not checked. */
typedef struct gp_schedule_limits {
  int capacity;             /* messages a channel holds before its sender blocks; 0: rendezvous */
  int versions;             /* of a stage's weights alive at once, the newest included */
  int buffers;              /* per stage; micro-batch i takes number i mod buffers */
  const int32_t *peak_live; /* per device: activations of a (stage, micro-batch) alive at once */
} gp_schedule_limits;

/* Check the limits. Errors: GP_ESCHEDULE, as gp_schedule_new. */
gp_status gp_schedule_limit(const gp_schedule *schedule, const gp_schedule_limits *limits,
                            gp_schedule_fault *fault);
/* Find the smallest capacity with which the schedule ends, and the smallest with which (at unit
 * costs) it is as fast as with any. There is a channel per edge, direction and pair of devices.
 * Cost: a run per guess. */
gp_status gp_schedule_capacity(const gp_schedule *schedule, int *works, int *full_speed);
/* The most activations alive at once, per device and [stage][copy]. */
gp_status gp_schedule_peaks(const gp_schedule *schedule, int32_t *per_device, int32_t *per_stage);
/* The same of micro-batches whose I has run and whose W has not: what one leaves for the other. */
gp_status gp_schedule_carried(const gp_schedule *schedule, int32_t *per_device, int32_t *per_stage);
/* What a device's stages hold at the same time, in micro-batches: a row for each moment that is not
 * exceeded in every number by another one. Stage after stage, those of the device alone, four
 * numbers: what lives from F on, whatever runs again; what F or R leaves (or, away, what of it is
 * on the device while the host's memory holds the rest); the part of it that W does not read; and
 * what I leaves for W. */
typedef struct gp_held_moments {
  int32_t *rows;
  int32_t count, width;
} gp_held_moments;
enum { GP_HELD_NUMBERS = 4 };
gp_status gp_schedule_moments(const gp_schedule *schedule, int device, bool away,
                              gp_held_moments *held);
void gp_held_moments_free(gp_held_moments *held); /* what it holds; not the struct */
/* Where the activations of a stage lie: slot[stage][micro], and count[stage][copy] of them. */
gp_status gp_schedule_slots(const gp_schedule *schedule, int32_t *slot, int32_t *count);
/* The most versions of the weights alive at once, live[stage][copy]; 1 in a synchronous
 * schedule. */
gp_status gp_schedule_versions(const gp_schedule *schedule, int32_t *live);
int gp_schedule_stage_count(const gp_schedule *schedule);
int gp_schedule_micro_count(const gp_schedule *schedule);
int gp_schedule_copy_count(const gp_schedule *schedule);

/* Passes that make rows (new, the caller's) of a schedule:
 *   - comms adds the sends and receives of every edge that crosses devices and has none, where
 *     torch.distributed.pipelining puts them; empty cells delay receives and are dropped;
 *   - merged makes B of each I that its W directly follows, and drops empty cells;
 *   - compute drops sends, receives, shards and reductions. */
gp_status gp_schedule_comms(const gp_schedule *schedule, gp_rows **rows);
gp_status gp_schedule_merged(const gp_schedule *schedule, gp_rows **rows);
gp_status gp_schedule_compute(const gp_schedule *schedule, gp_rows **rows);
/* Count the steps it takes when each device does one action a step, as in torch's dry run. step
 * (optional) receives the step of each action, device after device. Cost: steps x devices. */
gp_status gp_schedule_steps(const gp_schedule *schedule, int32_t *step, int *steps);

/* ---- lowering ------------------------------------------------------------------------------ */

/* X(NAME, text): what is recomputed instead of kept, and its name in scripts, the mode that keeps
 * most first. SELECTIVE makes again what is cheap, each value just before its reader. EXCEPT_LAST
 * recomputes nothing where backward directly follows forward. AUTO spends a budget of memory where
 * it saves most time. BY_LAYER says it layer by layer. */
#define GP_REMAT_LIST(X)                                                                           \
  X(NEVER, "never")                                                                                \
  X(SELECTIVE, "selective")                                                                        \
  X(EXCEPT_LAST, "except_last")                                                                    \
  X(ALWAYS, "always")                                                                              \
  X(AUTO, "auto")                                                                                  \
  X(OFFLOAD, "offload")                                                                            \
  X(BY_LAYER, "by layer")
#define GP_REMAT_ENUM(name, text) GP_REMAT_##name,
typedef enum gp_remat { GP_REMAT_LIST(GP_REMAT_ENUM) GP_REMAT_COUNT } gp_remat;
#undef GP_REMAT_ENUM

/* X(NAME, text): what one layer does. RECOMPUTE keeps its input and makes all of it again; what an
 * OFFLOAD layer saves waits in the host's memory. */
#define GP_LAYER_REMAT_LIST(X)                                                                     \
  X(KEEP, "keep")                                                                                  \
  X(SELECTIVE, "selective")                                                                        \
  X(RECOMPUTE, "recompute")                                                                        \
  X(OFFLOAD, "offload")
#define GP_LAYER_REMAT_ENUM(name, text) GP_LAYER_##name,
typedef enum gp_layer_remat {
  GP_LAYER_REMAT_LIST(GP_LAYER_REMAT_ENUM) GP_LAYER_REMAT_COUNT
} gp_layer_remat;
#undef GP_LAYER_REMAT_ENUM

/* Where a synchronous schedule updates: not at all (the script does), after a barrier over all
 * devices, or stage by stage as soon as its own gradients are there. */
typedef enum gp_update_mode { GP_UPDATE_NONE, GP_UPDATE_BARRIER, GP_UPDATE_FREE } gp_update_mode;

/* tied: a parameter is used by layers of several stages, or by several of one. norm: updates wait
 * for the norm of all gradients, or for its being finite. clip: they are scaled when it is known.
 * All three concern the end of a synchronous mini-batch of all stages together: without a barrier
 * none of them is added, but norm to the updates of a stream with replicas, which check together
 * what each stage has. */
typedef struct gp_lower_options {
  gp_remat remat;
  gp_update_mode update;
  bool tied, norm, clip;
} gp_lower_options;

/* A schedule (new, the caller's) with what lowering adds for every model: recomputation, weight
 * gradients in ascending order, reductions, norms and scales of gradients, updates; NULL: the
 * schedule's own actions are as they would be. Errors: GP_ESCHEDULE where weight gradients cannot
 * be added in ascending order. */
gp_status gp_schedule_lowered(const gp_schedule *schedule, const gp_lower_options *options,
                              gp_schedule **made);

#endif
