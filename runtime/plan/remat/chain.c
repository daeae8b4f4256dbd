/* plan/remat/chain.c - checks chains, and builds lists step by step. */
#include "plan/remat/chain.h"

#include "base/memory.h"

void gp_remat_list_free(gp_remat_list *list) {
  gp_free(list->steps);
  *list = (gp_remat_list){0};
}

gp_status gp_remat_append(gp_remat_list *list, size_t *room, gp_remat_step step) {
  GP_TRY(gp_grow_array((size_t)list->count, room, sizeof step, (void **)&list->steps));
  list->steps[list->count++] = step;
  return GP_OK;
}

int64_t gp_remat_layer_time(const gp_remat_layer *layer) {
  int64_t least = INT64_MAX;
  for (int32_t o = 0; o < layer->option_count; o++) {
    const int64_t time = layer->options[o].forward + layer->options[o].backward;
    if (time < least) least = time;
  }
  return least;
}

int64_t gp_remat_exposed(const gp_remat_chain *chain, size_t away) {
  const double most = 1e15; /* eleven days */
  int64_t forward = 0, backward = 0;
  if (!away) return 0;
  for (int32_t l = 0; l < chain->count; l++) {
    forward += chain->layers[l].forward;
    backward += chain->layers[l].options[0].backward;
  }
  const double copy = 1e9 * (chain->link.latency + (double)away / chain->link.bandwidth);
  const int64_t each = (int64_t)(copy < most ? copy : most) + 1;
  return (each > forward ? each - forward : 0) + (each > backward ? each - backward : 0);
}

/* Add to the sums of all times and all sizes; false if one does not fit. */
static bool add(int64_t *time, size_t *bytes, int64_t more_time, size_t more_bytes) {
  return !__builtin_add_overflow(*time, more_time, time) &&
         !__builtin_add_overflow(*bytes, more_bytes, bytes);
}

static gp_status check_layer(const gp_remat_layer *layer, int32_t l, int64_t *time, size_t *bytes) {
  if (layer->option_count < 1 || !layer->options)
    return gp_fail(GP_EINVAL, "remat: layer %d has no option, expected at least one", (int)l);
  if (layer->forward < 0)
    return gp_fail(GP_EINVAL, "remat: layer %d takes %lld ns, expected 0 or more", (int)l,
                   (long long)layer->forward);
  bool fits = add(time, bytes, layer->forward, layer->forward_extra) &&
              add(time, bytes, 0, layer->output) && add(time, bytes, 0, layer->gradient);
  for (int32_t o = 0; o < layer->option_count; o++) {
    const gp_remat_option *option = &layer->options[o];
    if (option->forward < 0 || option->backward < 0)
      return gp_fail(GP_EINVAL, "remat: option %d of layer %d takes %lld ns, expected 0 or more",
                     (int)o, (int)l,
                     (long long)(option->forward < 0 ? option->forward : option->backward));
    if (option->kept + option->away < layer->output)
      return gp_fail(GP_EINVAL,
                     "remat: option %d of layer %d keeps %zu bytes, expected its output of %zu at "
                     "least",
                     (int)o, (int)l, option->kept, layer->output);
    fits = fits && add(time, bytes, option->forward, option->kept) &&
           add(time, bytes, option->backward, option->forward_extra) &&
           add(time, bytes, 0, option->backward_extra) && add(time, bytes, 0, option->away);
  }
  if (fits) return GP_OK;
  return gp_fail(GP_EINVAL, "remat: the sums up to layer %d overflow, expected 63 bits", (int)l);
}

gp_status gp_remat_chain_check(const gp_remat_chain *chain) {
  if (!chain->layers || chain->count < 1 || chain->count > GP_REMAT_LAYERS)
    return gp_fail(GP_EINVAL, "remat: a chain of %d layers, expected 1 to %d", (int)chain->count,
                   (int)GP_REMAT_LAYERS);
  int64_t time = 0;
  size_t bytes = 0;
  if (!add(&time, &bytes, 0, chain->input) || !add(&time, &bytes, 0, chain->input_gradient))
    return gp_fail(GP_EINVAL, "remat: the input's sizes overflow, expected 63 bits");
  for (int32_t l = 0; l < chain->count; l++)
    GP_TRY(check_layer(&chain->layers[l], l, &time, &bytes));
  /* A layer runs forward at most once per layer behind it, and sums of a few lists must fit. */
  const int64_t most = INT64_MAX / 8 / (chain->count + 1);
  if (time > most || bytes > GP_REMAT_BYTES)
    return gp_fail(GP_EINVAL, "remat: %lld ns and %zu bytes in all, expected at most %lld and %zu",
                   (long long)time, bytes, (long long)most, GP_REMAT_BYTES);
  return GP_OK;
}

gp_status gp_remat_check_in_flight(int32_t in_flight) {
  if (in_flight >= 1 && in_flight <= GP_REMAT_IN_FLIGHT) return GP_OK;
  return gp_fail(GP_EINVAL, "remat: %d micro-batches in flight, expected 1 to %d", (int)in_flight,
                 (int)GP_REMAT_IN_FLIGHT);
}
