/* graph/graph.h - a traced model as data: values, nodes in execution order, labels.
 *
 * The forward pass and its gradient are nodes of the same list (phase tells them apart), each
 * tagged with the layer of the outermost Sequential that it belongs to. Cutting a model into stages
 * is then only a matter of mapping layers to stages: nothing here knows about stages, devices or
 * threads.
 */
#ifndef GP_GRAPH_GRAPH_H
#define GP_GRAPH_GRAPH_H

#include "base/map.h"
#include "gpipe/trace.h"
#include "ops/op.h"

typedef enum gp_value_kind {
  GP_VALUE_NODE,     /* output of a node */
  GP_VALUE_INPUT,    /* index: which input of the micro-batch */
  GP_VALUE_TARGET,   /* index: which target of the micro-batch */
  GP_VALUE_OUT_GRAD, /* gradient of an output, given to pipe:backward */
  GP_VALUE_PARAM,    /* index into params */
  GP_VALUE_CONST,    /* index into constants */
  GP_VALUE_SLOT      /* gradient accumulator of (params[index], layer) */
} gp_value_kind;

typedef struct gp_value {
  gp_value_kind kind;
  gp_meta meta;
  gp_ref base;    /* the value in whose memory this one lies: itself unless a view */
  int32_t node;   /* the node that made it; -1 if none did */
  int32_t output; /* its number among that node's outputs */
  int32_t index;  /* see gp_value_kind */
  int32_t layer;  /* of the node, or of the accumulator */
} gp_value;

typedef enum gp_phase { GP_FORWARD, GP_BACKWARD } gp_phase;

typedef struct gp_node {
  gp_op op;
  gp_attrs attr;
  int n_in, n_out;
  gp_ref in[GP_MAX_INPUTS];
  gp_ref out; /* first output; the k-th is out + k */
  int32_t layer, label;
  gp_phase phase;
  bool accumulate; /* out[0] is added into the accumulator it lies in */
  bool snapshot;   /* copy of a buffer's contents: never recomputed */
  bool master;     /* a parameter, cast to the dtype that its readers compute in: see trace.c */
  bool late;       /* it depends on a buffer that forward writes, and is no part of F: see late.c */
  bool records;    /* a copy of what F makes, for late nodes */
} gp_node;

typedef struct gp_graph {
  gp_value *values;
  int32_t value_count;
  size_t value_room;
  gp_node *nodes;
  int32_t node_count;
  size_t node_room;
  char **labels;
  int32_t label_count;
  size_t label_room;
  gp_param **params;
  int32_t param_count;
  size_t param_room;
  gp_tensor **constants;
  int32_t constant_count;
  size_t constant_room;
  gp_map found;         /* for lookups while the graph grows: see gp_found */
  int32_t random_count; /* random ops so far */
  bool scaled;          /* all gradients are multiplied with the step block's scale */
  bool asks_inputs;     /* the script also wants gradients of the inputs */
  gp_ref input_grads[GP_MAX_BATCH_TENSORS]; /* these, without the scale; GP_NONE: no gradient */
} gp_graph;

/* What graph->found maps: numbers, or pairs of numbers. */
typedef enum gp_found {
  GP_FOUND_PARAM,    /* parameter -> its index */
  GP_FOUND_VALUE,    /* index of a parameter -> its value */
  GP_FOUND_CONSTANT, /* tensor -> its value */
  GP_FOUND_SLOT,     /* (index of a parameter, layer) -> its accumulator */
  GP_FOUND_CAST,     /* (value of a parameter, layer) -> its cast */
  GP_FOUND_PACK,     /* (gp_graph_pack_key, layer) -> the packed weight */
  GP_FOUND_TURN      /* (value of a weight, layer) -> its channels-last copy */
} gp_found;

/* Look up a number or a pair; -1 (for values: GP_NONE) if it is not there. */
static inline int32_t gp_graph_find(const gp_graph *graph, gp_found kind, uint64_t thing,
                                    int32_t part) {
  return gp_map_get(&graph->found, (gp_map_key){thing, (int32_t)kind, part});
}
static inline gp_status gp_graph_note(gp_graph *graph, gp_found kind, uint64_t thing, int32_t part,
                                      int32_t number) {
  return gp_map_put(&graph->found, (gp_map_key){thing, (int32_t)kind, part}, number);
}

/* The place of the next node. */
struct gp_builder {
  gp_graph *graph;
  int32_t layer, label;
  gp_phase phase;
};

struct gp_trace {
  _Atomic int references;
  bool training;
  gp_dtype half; /* the dtype in which parameters are read; F32: their own */
  gp_graph graph;
  struct gp_builder at;
  gp_ref *param_refs; /* per param: the current value; GP_NONE: read it anew */
  gp_ref *boundary;   /* per value: its contiguous copy for other layers, or GP_NONE */
  int32_t boundary_room, param_refs_room;
  int32_t input_count, target_count;
};

void gp_graph_free(gp_graph *graph); /* frees its contents, not the struct */
/* Mix what the graph computes into a hash: ops, attributes, shapes, constants. */
uint64_t gp_graph_hash(const gp_graph *graph, uint64_t hash);
/* Append a value that no node makes; its base is itself. */
gp_status gp_graph_value(gp_graph *graph, gp_value_kind kind, const gp_meta *meta, int32_t index,
                         gp_ref *ref);
gp_status gp_graph_label(gp_graph *graph, const char *text, int32_t *label);
gp_status gp_graph_param(gp_graph *graph, gp_param *param, int32_t *index); /* retained, unique */
/* The value of kind PARAM for params[index]; each has one. */
gp_status gp_graph_param_value(gp_graph *graph, int32_t index, gp_ref *ref);
/* Append a constant; the graph takes the tensor, even on failure. */
gp_status gp_graph_constant(gp_graph *graph, gp_tensor *tensor, gp_ref *ref);
/* The accumulator of (param, layer), made if it is missing. */
gp_status gp_graph_slot(gp_graph *graph, int32_t param, int32_t layer, gp_ref *slot);

static inline const gp_value *gp_graph_at(const gp_graph *graph, gp_ref ref) {
  return &graph->values[ref];
}
static inline gp_ref gp_graph_base(const gp_graph *graph, gp_ref ref) {
  return graph->values[ref].base;
}

/* Where a gradient starts: at a scalar sum times loss_seed, or at an output's gradient, which the
 * caller gives (receives its value). */
typedef struct gp_gradient_root {
  gp_ref value;
  int32_t layer; /* of the seed: the loss's own layer, whose stage knows the count */
  bool is_loss;
  double factor;   /* loss without a count: its constant weight (0: use the step's 1 / count) */
  gp_ref out_grad; /* receives the GP_VALUE_OUT_GRAD value when !is_loss; GP_NONE: unneeded */
} gp_gradient_root;

/* Append the gradient of all roots together with respect to every parameter that is not frozen, and
 * also to float inputs if graph->asks_inputs is set (those gradients belong to layer 0).
 * Contributions are folded per (value, reading layer), layers descending; parameters accumulate per
 * (param, layer). */
gp_status gp_graph_gradient(gp_graph *graph, gp_gradient_root *roots, int count);

/* Fuse neighbours in a layer into one op where that saves passes over memory (fuse.c). selects:
 * what is cheap may run again without what made its input. Call it after the gradient and before
 * packing; refs of values that leave the graph stay valid. No bit changes. */
gp_status gp_graph_fuse(gp_graph *graph, bool selects);
/* Call it after fusing, if sums of rows by parts are wanted: see parts.c. It changes bits. */
gp_status gp_graph_split_norms(gp_graph *graph);

/* What must not change while values are put into other orders. */
typedef struct gp_arrange_spec {
  const int32_t *stage_of; /* per layer: values that another stage reads keep their order */
  const gp_ref *fixed;     /* values that leave the graph; GP_NONE entries are ignored */
  int32_t fixed_count;
} gp_arrange_spec;

/* Let chains of elementwise ops keep the order of their inputs where that saves copies (arrange.c).
 * Call it after fusing and before packing; refs of values stay valid. */
gp_status gp_graph_arrange(gp_graph *graph, const gp_arrange_spec *spec);

/* Let linears and convolutions read packed weights, made once per change of the weights (pack.c).
 * Call it before the cut. */
gp_status gp_graph_pack(gp_graph *graph);
/* The key of a packed weight: the parameter's value and the form. */
uint64_t gp_graph_pack_key(gp_ref weight, gp_op op, const gp_attrs *attrs);

/* What one node costs, from shapes alone. */
gp_cost gp_node_cost(const gp_graph *graph, const gp_node *node);

/* Set keep[node] for the nodes that the given values need, and for all nodes that those need. */
gp_status gp_graph_reach(const gp_graph *graph, const gp_ref *roots, int32_t count, bool *keep);

#endif
