/* plan/remat/repeat.c - which ranges of a chain are the same layer by layer, as the blocks of a
 * transformer are. */
#include "plan/remat/table.h"

#include "base/memory.h"

static bool is_same_option(const gp_remat_option *a, const gp_remat_option *b) {
  return a->forward == b->forward && a->backward == b->backward && a->kept == b->kept &&
         a->forward_extra == b->forward_extra && a->backward_extra == b->backward_extra &&
         a->away == b->away;
}

/* Are two layers equal, and the gradients that they make? The size of their inputs counts only
 * inside a range, where it is the output of an equal layer. */
static bool is_same(const gp_remat_chain *chain, int32_t i, int32_t j) {
  const gp_remat_layer *a = &chain->layers[i], *b = &chain->layers[j];
  bool same = a->forward == b->forward && a->forward_extra == b->forward_extra &&
              a->output == b->output && a->gradient == b->gradient &&
              a->needs_input == b->needs_input && a->option_count == b->option_count &&
              gp_remat_gradient(chain, i) == gp_remat_gradient(chain, j);
  for (int32_t o = 0; same && o < a->option_count; o++)
    same = is_same_option(&a->options[o], &b->options[o]);
  return same;
}

/* run[i][j]: so many layers from i on are the same as those from j on. */
static void find_runs(const gp_remat_chain *chain, int32_t *run) {
  const int32_t layers = chain->count;
  for (int32_t i = layers - 1; i >= 0; i--)
    for (int32_t j = layers - 1; j >= i; j--) {
      const size_t at = (size_t)i * (size_t)layers + (size_t)j;
      const int32_t rest = j + 1 < layers ? run[at + (size_t)layers + 1] : 0;
      run[at] = is_same(chain, i, j) ? rest + 1 : 0;
    }
}

gp_status gp_remat_find_repeats(const gp_remat_chain *chain, int32_t **same) {
  const size_t layers = (size_t)chain->count;
  int32_t *run, *found;
  GP_TRY(gp_alloc_array(layers * layers, sizeof *run, (void **)&run));
  const gp_status status = gp_alloc_array(layers * layers, sizeof *found, (void **)&found);
  if (status) return gp_free(run), status;
  find_runs(chain, run);
  for (size_t first = 0; first < layers; first++) {
    size_t like = 0; /* a longer range has fewer that are like it */
    for (size_t n = 1; first + n <= layers; n++) {
      while (run[like * layers + first] < (int32_t)n) like++;
      found[first * layers + n - 1] = (int32_t)like;
    }
  }
  gp_free(run);
  *same = found;
  return GP_OK;
}
