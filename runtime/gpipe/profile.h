/* gpipe/profile.h - how long each instruction of a pipeline takes, measured on request. See gpipe.h
 * for what holds everywhere. */
#ifndef GP_PUBLIC_PROFILE_H
#define GP_PUBLIC_PROFILE_H

#include "gpipe/pipeline.h"
#include "gpipe/run.h"
#include "gpipe/tensor.h"

/* What an entry is part of: the passes; what depends on the weights alone; the counts of losses;
 * what ends a mini-batch; what looks for values that are not finite; copies between memories. */
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

/* One instruction, or one call of what the engine does beside them. */
typedef struct gp_profile_entry {
  gp_profile_phase phase;
  const char *op;             /* of ops.def; "adamw", "norm", "zero", "copy" */
  char what[GP_PROFILE_TEXT]; /* the layer; of a copy the device that it comes from; "" */
  gp_dtype dtype;             /* of its first operand, or of what is updated */
  bool in_action;             /* it is part of this action */
  gp_action action;
  double seconds;     /* without what timing adds */
  double bytes, flop; /* by the cost model; a copy counts its bytes once */
} gp_profile_entry;

/* Runs since the profile began, and what timing costs. */
typedef struct gp_profile_info {
  int runs;
  bool one_plan;   /* all of them ran the same plan */
  double overhead; /* seconds that were taken off each entry of a queue; of the first device */
} gp_profile_info;

/* Time every instruction from now on, one after the other: ops that run as a chain elsewhere, or
 * within a replayed graph, are apart. Values and gradients keep their bits. eager: never within a
 * graph. Threads: the script's. Errors: GP_ESTATE while a profile or a stream is open, or where the
 * pipeline is lost or closed. */
gp_status gp_pipeline_profile_begin(gp_pipeline *pipeline, bool eager);
/* Stop, and wait for what was enqueued: the entries can be read then, until the next profile or
 * gp_pipeline_profile_drop. What was begun and failed has none. Errors: GP_ESTATE without a
 * profile; GP_EDEVICE: there are no entries then. */
gp_status gp_pipeline_profile_end(gp_pipeline *pipeline, gp_profile_info *info);
size_t gp_pipeline_profile_count(const gp_pipeline *pipeline, int device);
void gp_pipeline_profile_entry(const gp_pipeline *pipeline, int device, size_t i,
                               gp_profile_entry *entry);
/* Forget the entries; end a profile that is under way, and drain a stream that it holds. */
void gp_pipeline_profile_drop(gp_pipeline *pipeline);
/* What a device reaches at best, measured now: FLOP of a large product in a dtype, or, with NULL,
 * bytes that a copy of its memory reads and writes, in a second; 0 where it has no room for that.
 * Errors: GP_ESTATE while a profile or a stream is open. */
gp_status gp_pipeline_ceiling(gp_pipeline *pipeline, int device, const gp_dtype *product,
                              double *per_second);
/* Did the last run go as runs do from the third of their plan on (replayed, where the device
 * replays), so that its actions say what ops cost together? */
bool gp_pipeline_ran_warm(const gp_pipeline *pipeline);

#endif
