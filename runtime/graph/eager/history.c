/* graph/eager/history.c - what eager ops leave behind for their gradient.
 *
 * Nothing is computed for gradients while ops run: an application keeps its inputs and outputs, and
 * only the pass back (backward.c) asks the op's rule what it needs of them. So it keeps more alive
 * than a rule may want, until the last value that came from it is collected.
 */
#include "graph/eager/history.h"

#include <stdatomic.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "graph/param.h"
#include "ops/op.h"

static _Atomic uint64_t applications;

static gp_kept keep(gp_tensor *tensor) {
  return (gp_kept){gp_tensor_retain(tensor), gp_tensor_writes(tensor)};
}

static void keep_input(gp_history *h, int i, const gp_history_input *input) {
  h->in[i] = *input;
  h->read[i] = keep(input->tensor);
  if (input->leaf) gp_param_retain(input->leaf);
  if (input->history) gp_history_retain(input->history);
}

gp_status gp_history_record(const gp_applied *a, gp_history **history) {
  gp_history *made;
  *history = NULL;
  if (!gp_dtype_is_float(gp_tensor_meta(a->outputs[0])->dtype)) return GP_OK;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  *made = (gp_history){.references = 1,
                       .serial = atomic_fetch_add(&applications, 1),
                       .op = a->op,
                       .attrs = *a->attrs,
                       .random = a->random,
                       .n_in = a->n_in,
                       .n_out = a->n_out,
                       .first = GP_NONE};
  for (int i = 0; i < a->n_in; i++) keep_input(made, i, &a->inputs[i]);
  for (int k = 0; k < a->n_out; k++) made->made[k] = keep(a->outputs[k]);
  *history = made;
  return GP_OK;
}

gp_param *gp_history_viewed(const gp_history *h) {
  for (; h; h = h->in[0].history) {
    if (!(gp_op_get(h->op)->flags & GP_OP_VIEW)) return NULL;
    if (!gp_tensor_overlaps(h->made[0].tensor, h->read[0].tensor)) return NULL;
    if (h->in[0].leaf) return h->in[0].leaf;
  }
  return NULL;
}

gp_history *gp_history_retain(gp_history *history) {
  atomic_fetch_add(&history->references, 1);
  return history;
}

/* Put the history before `list` if this was its last reference. */
static gp_history *drop(gp_history *history, gp_history *list) {
  if (!history || atomic_fetch_sub(&history->references, 1) > 1) return list;
  history->next = list;
  return history;
}

/* Free with a list instead of recursion: a script's loop may be a million applications long. */
void gp_history_free(gp_history *history) {
  gp_history *list = drop(history, NULL);
  while (list) {
    gp_history *h = list;
    list = h->next;
    for (int i = 0; i < h->n_in; i++) {
      gp_tensor_free(h->read[i].tensor);
      gp_param_free(h->in[i].leaf);
      list = drop(h->in[i].history, list);
    }
    for (int k = 0; k < h->n_out; k++) gp_tensor_free(h->made[k].tensor);
    gp_free(h);
  }
}

gp_status gp_leaf_new(gp_tensor *tensor, gp_param **leaf) {
  const gp_meta *meta = gp_tensor_meta(tensor);
  const gp_param_spec spec = {.dtype = meta->dtype, .shape = meta->shape, .borrowed = true};
  GP_TRY(gp_param_new(&spec, leaf));
  gp_param_hold(*leaf, tensor);
  return GP_OK;
}
