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
  gp_ref base;    /* the value whose memory this one lies in: itself unless a view */
  int32_t node;   /* producer; -1 when not a node's output */
  int32_t output; /* which output of it */
  int32_t index;  /* see gp_value_kind */
  int32_t layer;  /* of the producer, or of the accumulator */
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
  bool snapshot;   /* copy of a buffer as it was: never recomputed */
  bool master;     /* a parameter, cast to the dtype that its readers compute in: see trace.c */
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
  gp_map found;         /* what is looked up while the graph grows: by gp_found */
  int32_t random_count; /* random ops so far */
  bool scaled;          /* gradients are multiplied with the step block's scale, all of them */
  bool asks_inputs;     /* gradients of the inputs are wanted too */
  gp_ref input_grads[GP_MAX_BATCH_TENSORS]; /* those, without the scale; GP_NONE: none flows */
} gp_graph;

/* What graph->found knows: numbers of things and pairs of them. */
typedef enum gp_found {
  GP_FOUND_PARAM,    /* parameter -> its index */
  GP_FOUND_VALUE,    /* index of a parameter -> its value */
  GP_FOUND_CONSTANT, /* tensor -> its value */
  GP_FOUND_SLOT,     /* (index of a parameter, layer) -> its accumulator */
  GP_FOUND_CAST,     /* (value of a parameter, layer) -> its cast */
  GP_FOUND_PACK      /* (gp_graph_pack_key, layer) -> the packed one */
} gp_found;

/* The number of a thing, or of a pair; -1 (of values: GP_NONE) where there is none. */
static inline int32_t gp_graph_find(const gp_graph *graph, gp_found kind, uint64_t thing,
                                    int32_t part) {
  return gp_map_get(&graph->found, (gp_map_key){thing, (int32_t)kind, part});
}
static inline gp_status gp_graph_note(gp_graph *graph, gp_found kind, uint64_t thing, int32_t part,
                                      int32_t number) {
  return gp_map_put(&graph->found, (gp_map_key){thing, (int32_t)kind, part}, number);
}

/* Where the next node goes. */
struct gp_builder {
  gp_graph *graph;
  int32_t layer, label;
  gp_phase phase;
};

struct gp_trace {
  _Atomic int references;
  bool training;
  gp_dtype half; /* what parameters are read in; F32: as they are */
  gp_graph graph;
  struct gp_builder at;
  gp_ref *param_refs; /* per param: the current value; GP_NONE: read it anew */
  gp_ref *boundary;   /* per value: its contiguous copy for other layers, or GP_NONE */
  int32_t boundary_room, param_refs_room;
  int32_t input_count, target_count;
};

void gp_graph_free(gp_graph *graph); /* what it holds; not the struct */
/* Append a value that no node makes; base is itself. */
gp_status gp_graph_value(gp_graph *graph, gp_value_kind kind, const gp_meta *meta, int32_t index,
                         gp_ref *ref);
gp_status gp_graph_label(gp_graph *graph, const char *text, int32_t *label);
gp_status gp_graph_param(gp_graph *graph, gp_param *param, int32_t *index); /* retained, unique */
/* The value of kind PARAM for params[index]; one each. */
gp_status gp_graph_param_value(gp_graph *graph, int32_t index, gp_ref *ref);
/* Append a constant; the graph takes the tensor, also on failure. */
gp_status gp_graph_constant(gp_graph *graph, gp_tensor *tensor, gp_ref *ref);
/* The accumulator of (param, layer), made when missing. */
gp_status gp_graph_slot(gp_graph *graph, int32_t param, int32_t layer, gp_ref *slot);

static inline const gp_value *gp_graph_at(const gp_graph *graph, gp_ref ref) {
  return &graph->values[ref];
}
static inline gp_ref gp_graph_base(const gp_graph *graph, gp_ref ref) {
  return graph->values[ref].base;
}

/* What a gradient starts from: a scalar sum times loss_seed, or the gradient of an output given by
 * the caller (receives its value). */
typedef struct gp_gradient_root {
  gp_ref value;
  int32_t layer; /* that the seed belongs to: the loss's own, whose stage knows the count */
  bool is_loss;
  double factor;   /* loss without a count: its constant weight (0: use the step's 1 / count) */
  gp_ref out_grad; /* receives the GP_VALUE_OUT_GRAD value when !is_loss; GP_NONE: unneeded */
} gp_gradient_root;

/* Append the gradient of all roots together with respect to every parameter that is not frozen,
 * and to the inputs of floats where graph->asks_inputs (those belong to layer 0). Contributions are
 * folded per (value, reading layer), layers descending; parameters accumulate per (param,
 * layer). */
gp_status gp_graph_gradient(gp_graph *graph, gp_gradient_root *roots, int count);

/* Make one op of neighbours in a layer where that saves passes over memory (fuse.c). After the
 * gradient, before packing; refs of values that leave the graph stay. */
gp_status gp_graph_fuse(gp_graph *graph);
/* After fusing, where sums of rows by parts are wanted: see parts.c. Other bits. */
gp_status gp_graph_split_norms(gp_graph *graph);

/* What stays as it is while values are put into other orders. */
typedef struct gp_arrange_spec {
  const int32_t *stage_of; /* per layer: what another stage reads is not touched */
  const gp_ref *fixed;     /* values that leave the graph; GP_NONE among them is none */
  int32_t fixed_count;
} gp_arrange_spec;

/* Let chains of elementwise ops keep the order that their inputs lie in where that saves copies
 * (arrange.c). After fusing, before packing; refs of values stay. */
gp_status gp_graph_arrange(gp_graph *graph, const gp_arrange_spec *spec);

/* Let linears and convolutions read their weights packed, made once per change of them (pack.c).
 * Before the cut. */
gp_status gp_graph_pack(gp_graph *graph);
/* Names what the op packs of a weight: the value of the parameter and the form. */
uint64_t gp_graph_pack_key(gp_ref weight, gp_op op, const gp_attrs *attrs);

/* What one node costs, from shapes alone. */
gp_cost gp_node_cost(const gp_graph *graph, const gp_node *node);

/* Mark in keep[node] the nodes that the given values need, and what those need. */
gp_status gp_graph_reach(const gp_graph *graph, const gp_ref *roots, int32_t count, bool *keep);

#endif
