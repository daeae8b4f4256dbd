/* plan/remat/simulate.c - runs a list of steps without work and counts its bytes.
 *
 * A first pass from the front checks that each step finds what it reads. A second pass from the
 * back counts bytes, because only there it is known which values a later step reads. It knows
 * nothing of how lists are made. */
#include "plan/remat/chain.h"

#include "base/memory.h"

typedef struct simulation {
  const gp_remat_chain *chain;
  const gp_remat_list *list;
  int32_t *kept; /* per layer: the option that it keeps + 1; 0: none */
  bool *plain;   /* per value: is it there by itself, not as part of what a layer keeps? */
  size_t bytes;  /* alive at the point that the second pass has reached */
  size_t peak;   /* of the active micro-batch */
  size_t parked, away;
} simulation;

/* ---- does every step find what it reads? ----------------------------------------------------- */

static bool is_there(const simulation *s, int32_t value) {
  return s->plain[value] || (value > 0 && s->kept[value - 1]);
}

static gp_status refuse(int32_t step, int32_t layer, const char *why) {
  return gp_fail(GP_EINVAL, "remat: step %d, of layer %d: %s", (int)step, (int)layer, why);
}

static gp_status check_forward(simulation *s, int32_t at) {
  const gp_remat_step *step = &s->list->steps[at];
  const int32_t l = step->layer;
  if (!is_there(s, l)) return refuse(at, l, "its input is missing, expected it kept or made again");
  if (s->kept[l]) return refuse(at, l, "it is kept already, expected its backward first");
  if (step->act == GP_REMAT_KEEP) {
    if (step->option < 0 || step->option >= s->chain->layers[l].option_count)
      return refuse(at, l, "an option that it does not have, expected one of its own");
    const size_t away = s->chain->layers[l].options[step->option].away;
    if (away && at >= s->list->backward_begins)
      return refuse(at, l, "its values go to the host in a backward pass, expected them kept");
    s->away += away;
    s->kept[l] = step->option + 1;
  } else {
    s->plain[l + 1] = true;
  }
  if (step->act == GP_REMAT_FORWARD) s->plain[l] = false;
  return GP_OK;
}

static gp_status check_backward(simulation *s, int32_t at, int32_t next) {
  const gp_remat_step *step = &s->list->steps[at];
  const int32_t l = step->layer;
  if (at < s->list->backward_begins)
    return refuse(at, l, "a backward in the forward pass, expected none");
  if (l != next) return refuse(at, l, "a backward out of order, expected the last layer first");
  if (!s->kept[l] || s->kept[l] != step->option + 1)
    return refuse(at, l, "what its backward reads is missing, expected it kept as the step says");
  if (s->chain->layers[l].needs_input && !is_there(s, l))
    return refuse(at, l, "its backward reads its input, expected it kept or made again");
  s->kept[l] = 0;
  return GP_OK;
}

static gp_status check_steps(simulation *s) {
  const gp_remat_list *list = s->list;
  int32_t next = s->chain->count - 1, reached = -1;
  s->plain[0] = true;
  for (int32_t at = 0; at < list->count; at++) {
    const gp_remat_step *step = &list->steps[at];
    if (step->layer < 0 || step->layer >= s->chain->count || (unsigned)step->act >= GP_REMAT_ACTS)
      return refuse(at, step->layer, "no such step, expected a layer of the chain");
    if (at < list->backward_begins && step->layer > reached) reached = step->layer;
    if (step->act != GP_REMAT_BACKWARD)
      GP_TRY(check_forward(s, at));
    else
      GP_TRY(check_backward(s, at, next--));
  }
  if (reached + 1 < s->chain->count)
    return refuse(list->backward_begins, reached, "F ends here, expected the output first");
  if (next >= 0) return refuse(list->count, next, "its backward is missing, expected all of them");
  return GP_OK;
}

/* ---- bytes, from the back -------------------------------------------------------------------- */

/* A step reads a value: it is alive before the step, by itself unless a layer keeps it. */
static void read_value(simulation *s, int32_t value) {
  if (s->plain[value] || (value > 0 && s->kept[value - 1])) return;
  s->plain[value] = true;
  s->bytes += gp_remat_value(s->chain, value);
}

static void reach(simulation *s, size_t bytes) {
  if (bytes > s->peak) s->peak = bytes;
}

static void count_step(simulation *s, const gp_remat_step *step) {
  const int32_t l = step->layer;
  const gp_remat_layer *layer = &s->chain->layers[l];
  const gp_remat_option *option = &layer->options[step->option];
  switch (step->act) {
  case GP_REMAT_BACKWARD: /* gradient l is alive behind it, gradient l + 1 before it */
    s->bytes += option->kept + layer->gradient;
    s->kept[l] = step->option + 1;
    if (layer->needs_input) read_value(s, l);
    reach(s, s->bytes + option->backward_extra);
    s->bytes -= gp_remat_gradient(s->chain, l);
    return;
  case GP_REMAT_KEEP:
    read_value(s, l);
    reach(s, s->bytes + option->forward_extra);
    s->bytes -= option->kept;
    s->kept[l] = 0;
    return;
  default:
    if (!s->plain[l + 1]) s->bytes += layer->output;
    s->plain[l + 1] = false;
    read_value(s, l);
    reach(s, s->bytes + layer->forward_extra);
    s->bytes -= layer->output;
  }
}

static void count_bytes(simulation *s) {
  const gp_remat_list *list = s->list;
  for (int32_t v = 0; v <= s->chain->count; v++) s->plain[v] = false;
  s->bytes = s->chain->input_gradient;
  for (int32_t at = list->count - 1; at >= 0; at--) {
    count_step(s, &list->steps[at]);
    if (at != list->backward_begins) continue;
    s->bytes -= gp_remat_gradient(s->chain, s->chain->count); /* it comes with B */
    s->parked = s->bytes;
  }
}

static int64_t time_of(const gp_remat_chain *chain, const gp_remat_step *step) {
  const gp_remat_layer *layer = &chain->layers[step->layer];
  switch (step->act) {
  case GP_REMAT_BACKWARD: return layer->options[step->option].backward;
  case GP_REMAT_KEEP: return layer->options[step->option].forward;
  default: return layer->forward;
  }
}

static gp_status run(simulation *s, int32_t in_flight, gp_remat_cost *cost) {
  GP_TRY(check_steps(s));
  count_bytes(s);
  *cost = (gp_remat_cost){.parked = s->parked, .away = s->away, .active = s->peak};
  for (int32_t at = 0; at < s->list->count; at++)
    if (__builtin_add_overflow(cost->time, time_of(s->chain, &s->list->steps[at]), &cost->time))
      return gp_fail(GP_EINVAL, "remat: the times of %d steps overflow, expected 63 bits",
                     (int)s->list->count);
  cost->exposed = gp_remat_exposed(s->chain, s->away);
  cost->time += cost->exposed;
  cost->peak = (size_t)(in_flight - 1) * s->parked + s->peak + 2 * s->away;
  return GP_OK;
}

gp_status gp_remat_simulate(const gp_remat_chain *chain, const gp_remat_list *list,
                            int32_t in_flight, gp_remat_cost *cost) {
  GP_TRY(gp_remat_chain_check(chain));
  GP_TRY(gp_remat_check_in_flight(in_flight));
  simulation s = {.chain = chain, .list = list};
  const size_t layers = (size_t)chain->count;
  GP_TRY(gp_alloc_array(layers, sizeof *s.kept, (void **)&s.kept));
  gp_status status = gp_alloc_array(layers + 1, sizeof *s.plain, (void **)&s.plain);
  if (!status) status = run(&s, in_flight, cost);
  gp_free(s.kept);
  gp_free(s.plain);
  return status;
}
