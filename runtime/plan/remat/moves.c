/* plan/remat/moves.c - see moves.h. */
#include "plan/remat/moves.h"

static size_t most(size_t a, size_t b) { return a > b ? a : b; }

gp_remat_moves gp_remat_moves_again(const gp_remat_chain *chain, gp_remat_range range) {
  return (gp_remat_moves){.chain = chain,
                          .range = range,
                          .input = range.owned ? gp_remat_value(chain, range.first) : 0,
                          .gradient = gp_remat_gradient(chain, range.end),
                          .stop = range.first};
}

gp_remat_moves gp_remat_moves_stage(const gp_remat_chain *chain, gp_remat_range range) {
  gp_remat_moves moves = gp_remat_moves_again(chain, range);
  moves.gradient = 0;
  moves.whole = true;
  return moves;
}

gp_remat_range gp_remat_plain_range(const gp_remat_chain *chain, gp_remat_range range,
                                    size_t *more) {
  *more = 0;
  if (!range.owned || !chain->layers[range.first].needs_input) return range;
  *more = gp_remat_value(chain, range.first);
  range.owned = false;
  return range;
}

static gp_remat_move keep(const gp_remat_moves *m) {
  const gp_remat_layer *layer = &m->chain->layers[m->range.first];
  const gp_remat_option *o = &layer->options[m->option];
  const size_t input = layer->needs_input ? m->input : 0; /* that stays */
  const size_t forward = m->input + m->gradient + o->kept + o->forward_extra;
  const size_t gradients = layer->gradient + gp_remat_gradient(m->chain, m->range.first);
  const size_t backward = input + gradients + o->kept + o->backward_extra;
  return (gp_remat_move){.stop = m->range.first,
                         .option = m->option,
                         .parked = input + o->kept,
                         .bytes = most(forward, backward),
                         .time = o->forward + o->backward};
}

static void drop_layer(gp_remat_moves *m) {
  const gp_remat_layer *layer = &m->chain->layers[m->stop];
  const size_t read = m->stop > m->range.first ? gp_remat_value(m->chain, m->stop) : 0;
  m->forward_bytes = most(m->forward_bytes, read + layer->output + layer->forward_extra);
  m->forward_time += layer->forward;
  m->stop++;
}

/* Is the option one that this pass may take? Which layers go to the host is settled before, and
 * none goes there from a backward pass. */
static bool is_open(const gp_remat_moves *m) {
  const gp_remat_chain *chain = m->chain;
  const bool goes = m->whole && chain->goes && chain->goes[m->range.first];
  return goes == (chain->layers[m->range.first].options[m->option].away > 0);
}

bool gp_remat_next_move(gp_remat_moves *m, gp_remat_move *move) {
  for (; m->option < m->chain->layers[m->range.first].option_count; m->option++) {
    if (!is_open(m)) continue;
    *move = keep(m);
    m->option++;
    return true;
  }
  if (m->stop == (m->whole ? m->range.end : m->range.end - 1)) return false;
  drop_layer(m);
  *move = (gp_remat_move){.stop = m->stop,
                          .option = GP_REMAT_NO_OPTION,
                          .parked = m->input,
                          .bytes = m->input + m->gradient + m->forward_bytes,
                          .time = m->forward_time};
  return true;
}
