/* plan/shape.h - the model for one number of rows in a micro-batch: its stages and their
 * programs. */
#ifndef GP_PLAN_SHAPE_H
#define GP_PLAN_SHAPE_H

#include "graph/stages.h"
#include "gpipe/schedule.h"
#include "plan/program/program.h"

/* The copy of a constant, on a device that works in memory of its own. */
typedef struct gp_constant_copy {
  gp_ref value;
  size_t offset; /* among those of the stage */
} gp_constant_copy;

/* Programs of one stage for one number of rows: [0] keeps what the mode says, and makes the rest
 * again; [1] keeps everything. */
enum { GP_BY_MODE, GP_KEEPS_ALL, GP_VARIANTS };
typedef struct gp_stage_programs {
  gp_program *forward[GP_VARIANTS], *backward[GP_VARIANTS];
  gp_program *input[GP_VARIANTS], *weight[GP_VARIANTS]; /* where it runs I and W apart */
  gp_program *recompute;
  gp_program *count;      /* last stage: what the loss is divided by */
  gp_program *prepare;    /* what depends on parameters only */
  gp_program *late;       /* what only leads to buffers, where it is parted from F (records.h) */
  size_t invariant_bytes; /* of what prepare makes, without packed weights, which all plans share */
  gp_constant_copy *constants;
  int32_t constant_count;
  size_t constant_bytes;
  size_t state_bytes; /* of the states of CPU kernels */
  size_t saved_bytes[GP_VARIANTS][GP_PARTS], recomputed_bytes[GP_PARTS], carried_bytes;
  size_t away_bytes[GP_PARTS]; /* of what goes to the host, by mode: not among saved_bytes */
  size_t record_bytes;         /* of what F records for late */
} gp_stage_programs;

enum { GP_STAGE_PROGRAM_KINDS = 12 };
/* List the programs that a stage has; returns how many. */
int gp_stage_programs_list(const gp_stage_programs *programs,
                           gp_program *list[GP_STAGE_PROGRAM_KINDS]);
/* The program of an action, by what is kept (GP_BY_MODE ..); NULL: the stage has none. */
gp_program *gp_stage_program_of(const gp_stage_programs *programs, gp_act op, int kept);

/* A parameter that a stage reads and that lies on another device. */
typedef struct gp_crossing {
  int32_t param, stage; /* param: in the layout */
  bool half;            /* the stage reads its halves alone, which its owner keeps */
} gp_crossing;

/* Edges, ascending. */
typedef struct gp_edge_list {
  int32_t *edges;
  int32_t count;
} gp_edge_list;

typedef struct gp_shape_plan {
  int64_t rows;
  int32_t micros;
  gp_trace *trace;
  gp_stages *stages;
  gp_stage_programs *programs; /* per stage */
  gp_edge_list *touched;       /* see gp_shape_touched */
  gp_crossing *crossings;
  int32_t crossing_count;
  const struct gp_shape_plan *larger; /* whose packed weights serve these too; or NULL */
  bool own_edges;                     /* its edges are not those of the larger micro-batches */
  bool tied;                          /* a parameter has accumulators beside its main one */
  int32_t first_edge;     /* number of its first edge: 0, or behind those of the larger ones */
  int32_t first_constant; /* likewise for its constants */
  gp_ref loss, count;     /* copies that are exported; GP_NONE */
  gp_ref outputs[GP_MAX_BATCH_TENSORS]; /* likewise, in plans without a loss */
  int output_count;
  /* In plans of two halves, the gradients of the inputs, made by backward actions of stage 0;
   * GP_NONE if there is none. */
  gp_ref input_grads[GP_MAX_BATCH_TENSORS];
  int input_grad_count;
  int64_t constant_count;
} gp_shape_plan;

/* The edges that an action (F, B, I, W or R) of a stage touches. */
enum { GP_TOUCHING_OPS = GP_ACT_R + 1 };
static inline const gp_edge_list *gp_shape_touched(const gp_shape_plan *shape, int32_t stage,
                                                   gp_act act) {
  return &shape->touched[stage * GP_TOUCHING_OPS + (int32_t)act];
}

#endif
