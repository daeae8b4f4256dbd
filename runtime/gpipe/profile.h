/* gpipe/profile.h - how long each instruction of a pipeline takes, measured on request. See gpipe.h
 * for what holds everywhere. */
#ifndef GP_PUBLIC_PROFILE_H
#define GP_PUBLIC_PROFILE_H

#include "gpipe/host.h"
#include "gpipe/pipeline.h"
#include "gpipe/run.h"
#include "gpipe/tensor.h"

/* What part of the work an entry belongs to: the passes; what depends on the weights alone; the
 * counts of losses; the end of a mini-batch; the check for values that are not finite; copies
 * between memory spaces. */
#define GP_PROFILE_LIST(X)                                                                         \
  X(FORWARD, "forward")                                                                            \
  X(BACKWARD, "backward")                                                                          \
  X(RECOMPUTE, "recompute")                                                                        \
  X(PREPARE, "prepare")                                                                            \
  X(COUNT, "count")                                                                                \
  X(UPDATE, "update")                                                                              \
  X(CHECK, "check")                                                                                \
  X(COPY, "copy")
#define GP_PROFILE_ENUM(name, text) GP_PROFILE_##name,
typedef enum gp_profile_phase { GP_PROFILE_LIST(GP_PROFILE_ENUM) } gp_profile_phase;
#undef GP_PROFILE_ENUM

const char *gp_profile_phase_name(gp_profile_phase phase);

enum { GP_PROFILE_TEXT = 64 };

/* One instruction, or one call of the engine's own work beside them. */
typedef struct gp_profile_entry {
  gp_profile_phase phase;
  const char *op;             /* of ops.def; "adamw", "norm", "zero", "copy" */
  char what[GP_PROFILE_TEXT]; /* the layer; for a copy, the device that it comes from; "" */
  gp_dtype dtype;             /* of its first operand, or of what is updated */
  bool in_action;             /* it is part of this action */
  gp_action action;
  double seconds;     /* without the overhead of timing */
  double bytes, flop; /* by the cost model; a copy counts its bytes once */
} gp_profile_entry;

/* Runs since the profile began, and what timing costs. */
typedef struct gp_profile_info {
  int runs;
  bool one_plan;   /* all of them ran the same plan */
  double overhead; /* seconds subtracted from each entry of a queue; the first device's */
} gp_profile_info;

/* Time every instruction from now on, one after the other: ops that otherwise run as a chain, or
 * within a replayed graph, are launched one by one. Values and gradients keep their bits. eager:
 * never run within a graph. Threads: the script's. Errors: GP_ESTATE while a profile or a stream is
 * open, or if the pipeline is lost or closed. */
gp_status gp_pipeline_profile_begin(gp_pipeline *pipeline, bool eager);
/* Stop, and wait for what was enqueued: the entries can then be read until the next profile or
 * gp_pipeline_profile_drop. An instruction that began and failed has no entry. Errors: GP_ESTATE
 * without a profile; GP_EDEVICE: there are no entries then. */
gp_status gp_pipeline_profile_end(gp_pipeline *pipeline, gp_profile_info *info);
size_t gp_pipeline_profile_count(const gp_pipeline *pipeline, int device);
void gp_pipeline_profile_entry(const gp_pipeline *pipeline, int device, size_t i,
                               gp_profile_entry *entry);
/* Forget the entries; end a profile that is open, and drain the stream that it holds. */
void gp_pipeline_profile_drop(gp_pipeline *pipeline);
/* Measure now what a device reaches at best, per second: FLOP of a large product in a dtype or,
 * with NULL, bytes that a copy of its memory reads and writes; 0 if it has no room for that.
 * Errors: GP_ESTATE while a profile or a stream is open. */
gp_status gp_pipeline_ceiling(gp_pipeline *pipeline, int device, const gp_dtype *product,
                              double *per_second);
/* Measure now how fast copies between a device and the host's memory are, the slower way of both;
 * *link receives no cap, and no bandwidth if the device computes in the host's memory or has no
 * room to measure. Errors: GP_ESTATE while a profile or a stream is open; what allocating fails
 * with. */
gp_status gp_pipeline_host_link(gp_pipeline *pipeline, int device, gp_host_link *link);
/* Tell whether the last run went as runs do from the third of their plan on (replayed, if the
 * device replays), so that its actions say what ops cost together. */
bool gp_pipeline_ran_warm(const gp_pipeline *pipeline);

#endif
