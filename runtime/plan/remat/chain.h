/* plan/remat/chain.h - the layers of a stage as costs and bytes, and what a micro-batch does with
 * them: a list of forward and backward passes of layers.
 *
 * Value b is what layer b reads and layer b - 1 makes; value 0 is the input of the chain. Gradient
 * b is the gradient of value b. A micro-batch parks what it keeps between the end of its forward
 * pass F and the begin of its backward pass B; everything else is transient, and the device pays
 * for it once, whatever the number of micro-batches in flight.
 *
 * Source: shared/reference/rematerialization-and-memory.md, sections 2.2 and 3.1. */
#ifndef GP_PLAN_REMAT_CHAIN_H
#define GP_PLAN_REMAT_CHAIN_H

#include "base/status.h"
#include "gpipe/host.h"

/* More layers would take gigabytes of tables; nested layers count as one. All sizes of a chain
 * together, times the micro-batches in flight, fit 63 bits. */
enum { GP_REMAT_LAYERS = 2048, GP_REMAT_IN_FLIGHT = 1 << 14 };
static const size_t GP_REMAT_BYTES = (size_t)1 << 48;

/* One way to keep what the backward pass of a layer reads. */
typedef struct gp_remat_option {
  int64_t forward, backward; /* ns; backward includes what is computed again inside the layer */
  size_t kept;               /* bytes from the forward to the backward, the layer's output included,
                                its input not */
  size_t forward_extra, backward_extra; /* transient bytes */
  /* Bytes that wait in the host's memory instead, beside what is kept; 0: none. Such an option is
   * for the forward pass F alone, and the layer's last one. */
  size_t away;
} gp_remat_option;

typedef struct gp_remat_layer {
  int64_t forward;                /* ns of a forward pass that keeps nothing */
  size_t forward_extra;           /* its transient bytes */
  size_t output;                  /* bytes of the value that it makes */
  size_t gradient;                /* bytes of the gradient of that value */
  bool needs_input;               /* its backward reads the value that it was given */
  int32_t option_count;           /* at least 1 */
  const gp_remat_option *options; /* borrowed; the first one keeps all */
} gp_remat_layer;

typedef struct gp_remat_chain {
  const gp_remat_layer *layers; /* borrowed */
  int32_t count;
  gp_host_link link; /* its bytes are for all micro-batches in flight */
  const bool *goes;  /* per layer: F keeps it by the option with `away`, if it keeps it; NULL: no
                       layer. Borrowed. */
  size_t input;      /* bytes of value 0 */
  size_t input_gradient; /* bytes of gradient 0; 0 on the first stage */
} gp_remat_chain;

typedef enum gp_remat_act {
  GP_REMAT_FORWARD,    /* runs a layer, keeps nothing, and drops its input */
  GP_REMAT_CHECKPOINT, /* runs a layer, keeps nothing but its input, which will be read again */
  GP_REMAT_KEEP,       /* runs a layer and keeps what an option says until its backward */
  GP_REMAT_BACKWARD,   /* reads that and drops it */
  GP_REMAT_ACTS
} gp_remat_act;

typedef struct gp_remat_step {
  gp_remat_act act;
  int32_t layer;
  int32_t option; /* of KEEP and BACKWARD; 0 otherwise */
} gp_remat_step;

/* What a micro-batch does, in order. A value lives until the last step that reads it, so the input
 * of a layer that is kept lives on only if a later step reads it. */
typedef struct gp_remat_list {
  gp_remat_step *steps;
  int32_t count;
  int32_t backward_begins; /* the steps before it belong to F, the others to B */
  int64_t time;            /* ns of all steps */
  size_t parked; /* bytes that live on between F and B, its input included if read again */
  size_t away;   /* bytes that wait in the host's memory */
  size_t peak;   /* bytes at the worst moment: what the others in flight park, and what this
                  micro-batch has alive. Exact, but for what goes to the host's memory: that of two
                  micro-batches is taken to be on the device. */
} gp_remat_list;

typedef struct gp_remat_cost {
  int64_t time;
  int64_t exposed;           /* ns of that: waits for copies to and from the host's memory */
  size_t parked, away, peak; /* as above */
  size_t active;             /* bytes of the active micro-batch at its worst moment */
} gp_remat_cost;

void gp_remat_list_free(gp_remat_list *list); /* what it holds; not the struct */

/* Check a chain: layers, options, no negative time, no option that keeps less than the output, and
 * sums that fit. Errors: GP_EINVAL naming the layer. */
gp_status gp_remat_chain_check(const gp_remat_chain *chain);
gp_status gp_remat_check_in_flight(int32_t in_flight);

/* Run a list without work: add up its times and count its bytes, exactly and independently of how
 * the list was made. Only steps, count and backward_begins are read.
 * Errors: GP_EINVAL naming the step that reads what is not there, keeps a layer twice or runs a
 * backward out of order. */
gp_status gp_remat_simulate(const gp_remat_chain *chain, const gp_remat_list *list,
                            int32_t in_flight, gp_remat_cost *cost);

/* ---- internal -------------------------------------------------------------------------------- */

static inline size_t gp_remat_value(const gp_remat_chain *chain, int32_t b) {
  return b ? chain->layers[b - 1].output : chain->input;
}

static inline size_t gp_remat_gradient(const gp_remat_chain *chain, int32_t b) {
  return b ? chain->layers[b - 1].gradient : chain->input_gradient;
}

/* The layers first .. end - 1 as a chain of their own. */
static inline gp_remat_chain gp_remat_part(const gp_remat_chain *chain, int32_t first,
                                           int32_t end) {
  return (gp_remat_chain){.layers = chain->layers + first,
                          .count = end - first,
                          .link = chain->link,
                          .goes = chain->goes ? chain->goes + first : NULL,
                          .input = gp_remat_value(chain, first),
                          .input_gradient = gp_remat_gradient(chain, first)};
}

/* The least time that a layer's forward and backward can take. */
int64_t gp_remat_layer_time(const gp_remat_layer *layer);

/* The ns for which a stage waits if so many bytes of each micro-batch go to the host and back. One
 * copy runs beside each F, and one beside each backward pass, which is taken to run nothing again.
 */
int64_t gp_remat_exposed(const gp_remat_chain *chain, size_t away);

/* Add a step to a list with room for *room of them. */
gp_status gp_remat_append(gp_remat_list *list, size_t *room, gp_remat_step step);

#endif
