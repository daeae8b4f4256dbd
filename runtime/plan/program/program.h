/* plan/program/program.h - a straight-line program with every operand resolved to (base, offset).
 *
 * A program is a node list ready to run: consecutive row-wise ops are grouped, so that a block of
 * rows passes through all of them while it is in the cache; values that live inside the program
 * only get offsets in a temporary area that its device reuses for every action.
 */
#ifndef GP_PLAN_PROGRAM_PROGRAM_H
#define GP_PLAN_PROGRAM_PROGRAM_H

#include "graph/graph.h"

/* What F or R fills for later tasks has three parts, by who reads it last: W, or B where I and W
 * are one program; I, where they are two; or R. Each is given back behind its last reader. Where
 * the backward pass directly follows R it may overwrite what R alone reads, so that belongs to the
 * other parts. */
enum { GP_PART_REST, GP_PART_HEAD, GP_PART_AGAIN, GP_PARTS };

/* What an operand's offset is relative to. The frame of an action holds one address per base. */
enum {
  GP_BASE_TEMP,                            /* temporary area of the device */
  GP_BASE_SAVED,                           /* this micro-batch's slots of kept values: + part */
  GP_BASE_AWAY = GP_BASE_SAVED + GP_PARTS, /* of values that go to the host's memory: + part */
  GP_BASE_RECOMPUTED = GP_BASE_AWAY + GP_PARTS,    /* slots of values that R made: + part */
  GP_BASE_CARRIED = GP_BASE_RECOMPUTED + GP_PARTS, /* slot of values that I made for W */
  GP_BASE_INVARIANT,                               /* what P made of this version of the weights */
  GP_BASE_PACKED,        /* packed weights of the stage, which all plans share */
  GP_BASE_HALF,          /* weights of the stage in halves, likewise */
  GP_BASE_CONSTANT_COPY, /* copies on the stage's device of constants, which lie on the host */
  GP_BASE_BUFFER,        /* buffers of the stage: of this copy of it */
  GP_BASE_GRAD,          /* gradients of the stage: of this copy of it */
  GP_BASE_EXTRA,         /* accumulators of parameters that another layer owns, likewise */
  GP_BASE_RECORD,        /* what F has recorded of this micro-batch for S (plan/records.h) */
  GP_BASE_LOSS, /* of the micro-batch, for the script: the sum, and what it is divided by */
  GP_BASE_COUNT,
  GP_BASE_OUTPUT, /* + k: the k-th output of the model, this micro-batch's rows */
  GP_BASE_INPUT_GRAD = GP_BASE_OUTPUT + GP_MAX_BATCH_TENSORS, /* + k: gradient of the k-th input */
  GP_BASE_INPUT = GP_BASE_INPUT_GRAD + GP_MAX_BATCH_TENSORS,  /* + k: the k-th input, likewise */
  GP_BASE_TARGET = GP_BASE_INPUT + GP_MAX_BATCH_TENSORS,      /* + k */
  GP_BASE_OUT_GRAD = GP_BASE_TARGET + GP_MAX_BATCH_TENSORS,   /* + k: gradient of the k-th output */
  GP_BASE_VALUE =
      GP_BASE_OUT_GRAD +
      GP_MAX_BATCH_TENSORS /* + s: parameters of stage s, in this version; then buffers of each
                            * stage; then edges, constants and crossings */
};

/* The base of an edge, a constant or a crossing (plan/memory/layout.h) in a model that is cut into
 * `stages` stages. Edges and constants are numbered through both sizes of micro-batches. The three
 * kinds take turns, because each grows after programs were built. */
static inline int32_t gp_base_of_edge(int32_t stages, int32_t edge) {
  return GP_BASE_VALUE + 2 * stages + 3 * edge;
}
static inline int32_t gp_base_of_constant(int32_t stages, int32_t constant) {
  return gp_base_of_edge(stages, constant) + 1;
}
static inline int32_t gp_base_of_crossing(int32_t stages, int32_t crossing) {
  return gp_base_of_edge(stages, crossing) + 2;
}

/* Slots of a task are numbered by their bases from GP_BASE_SAVED on; F or R fills all but the last.
 */
enum { GP_KEPT_BASES = GP_BASE_CARRIED - GP_BASE_SAVED, GP_SLOT_BASES };

/* Is it the base of a slot that F or R fills for later tasks? */
static inline bool gp_base_is_kept(int32_t base) {
  return base >= GP_BASE_SAVED && base < GP_BASE_CARRIED;
}
/* Does F fill it, and not R? */
static inline bool gp_base_is_saved(int32_t base) {
  return base >= GP_BASE_SAVED && base < GP_BASE_RECOMPUTED;
}
/* Does it go to the host's memory meanwhile? */
static inline bool gp_base_is_away(int32_t base) {
  return base >= GP_BASE_AWAY && base < GP_BASE_RECOMPUTED;
}
/* The part that lies at the base of a slot. */
static inline int gp_base_part(int32_t base) {
  return base < GP_BASE_CARRIED ? (base - GP_BASE_SAVED) % GP_PARTS : GP_PART_REST;
}

/* The sum of the parts of what F or R fills, one behind the other. */
static inline size_t gp_parts_sum(const size_t parts[GP_PARTS]) {
  size_t sum = 0;
  for (int part = 0; part < GP_PARTS; part++) sum += parts[part];
  return sum;
}

typedef struct gp_place {
  int32_t base; /* -1: not placed, local to a program */
  size_t offset;
} gp_place;

/* The state of a CPU kernel (ops/op.h). It belongs to the node: instructions of several programs
 * share it. */
typedef struct gp_instr_state {
  size_t bytes;  /* 0: none */
  size_t offset; /* in the states of the stage (memory/states.c) */
  bool first;    /* it is the first of the instructions that share the state */
} gp_instr_state;

/* A gradient of a stage that a program adds to. */
typedef struct gp_gradient_part {
  int32_t base; /* GP_BASE_GRAD or GP_BASE_EXTRA */
  size_t offset, bytes;
} gp_gradient_part;

typedef struct gp_instr {
  gp_op op;
  int32_t node;   /* in the graph */
  bool opens;     /* first of its program to add to a gradient: may write it instead */
  int32_t gather; /* number + 1 of what it gathers from all replicas (plan/gathers.h); 0: nothing */
  gp_instr_state state;
  gp_place in[GP_MAX_INPUTS], out[GP_MAX_OUTPUTS];
  unsigned ahead; /* bit k: out[k] is no kept value, but lies where one will (memory/temp.c) */
  bool phases;    /* on CPU devices it converts its operands first (ops/half/half.h) */
  gp_call call;   /* without addresses: those of a run are the worker's (engine/run/execute.c) */
  gp_cut cut;
} gp_instr;

enum { GP_SHARED_ALIGNMENT = 64 }; /* bytes: gp_program.shared_bytes begin at a multiple */

/* Does an instruction of a forward program make, as output k, a value that is kept? */
static inline bool gp_instr_keeps(const gp_instr *instr, int k) {
  return gp_base_is_saved(instr->out[k].base) && !(instr->ahead >> k & 1);
}

/* Instructions handed to the threads together. Chained: a piece is a block of rows that passes
 * through all of them. Side by side: they are independent, and the pieces of each follow those of
 * the one before. */
typedef struct gp_group {
  int32_t first, count;
  int64_t pieces;
  bool side_by_side;
} gp_group;

typedef struct gp_program {
  const gp_graph *graph; /* borrowed */
  gp_instr *instrs;
  int32_t instr_count;
  gp_group *groups;
  int32_t group_count;
  gp_gradient_part *opened; /* what instructions that open write, by base and offset */
  int32_t opened_count;
  int32_t gather_count; /* instructions that other replicas take part in */
  size_t temp_bytes;    /* size of its temporary area */
  size_t shared_bytes;  /* behind it, in the host's memory: for instructions with phases */
  size_t scratch_bytes; /* per thread */
} gp_program;

/* Notes per value of the graph, all zero between two programs, so that building a program costs
 * what it holds and not what the graph holds. A node that a program executes several times makes a
 * new instance of its values each time; notes of a value concern the instance at hand. */
typedef struct gp_program_notes {
  int32_t *span;    /* of a base value that lies in the temporary area: number + 1 */
  int32_t *readers; /* of a base value: reads left */
  int32_t *group;   /* of a base value: the group that wrote it last, number + 1 */
} gp_program_notes;
gp_status gp_program_notes_new(const gp_graph *graph, gp_program_notes *notes);
void gp_program_notes_free(gp_program_notes *notes); /* what they hold; not the struct */

typedef struct gp_program_spec {
  const gp_graph *graph;
  const int32_t *nodes; /* in execution order; a node may occur several times */
  int32_t node_count;
  const gp_place *places;  /* per value, read at base values: of what lies outside of the program */
  gp_program_notes *notes; /* as long as the graph's values */
  bool separate; /* one instruction after the other, so that every result can be checked */
  /* It is a backward program. No later one reads the slots of its micro-batch, except the values of
   * `later`: a value that dies in this one can be overwritten. What it makes again of the forward
   * pass is its own, even where an earlier program has left the same value in a slot. */
  bool frees;
  const bool *later;          /* per base value; optional: none */
  size_t room[GP_KEPT_BASES]; /* bytes of these slots that temporaries may use */
} gp_program_spec;

/* Does an output lie in the program's temporary area? */
static inline bool gp_program_makes_temp(const gp_program_spec *spec, const gp_node *node,
                                         gp_ref out) {
  const int32_t area = spec->places[out].base;
  if (area < 0) return true;
  return spec->frees && node->phase == GP_FORWARD && gp_base_is_kept(area);
}

gp_status gp_program_build(const gp_program_spec *spec, gp_program **program);
void gp_program_free(gp_program *program);
int64_t gp_instr_pieces(const gp_instr *instr); /* pieces for the threads */

/* Reorder a backward node list so that row-wise chains stay together (plan/program/order.c). */
gp_status gp_program_order(const gp_graph *graph, int32_t *nodes, int32_t count);
/* Find the instructions that may write gradients instead of adding to them
 * (plan/program/opens.c). */
gp_status gp_program_find_opening(gp_program *program);
/* Give every value that has no place outside an offset in the temporary area, or the place of a
 * kept value that dies, and resolve all operands (plan/memory/temp.c). reads: per instruction and
 * output, how often the program reads what is made there. The notes hold the readers of what it
 * finds outside. */
gp_status gp_program_place_temps(gp_program *program, const gp_program_spec *spec,
                                 const int32_t *reads);

#endif
