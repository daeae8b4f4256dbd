/* tests/c/plan/remat_chains.h - random chains for the tests of rematerialization. */
#ifndef GP_TESTS_REMAT_CHAINS_H
#define GP_TESTS_REMAT_CHAINS_H

#include "base/memory.h"
#include "plan/remat/stage_dp.h"
#include "test.h"

enum { LAYERS = 128, OPTIONS = 3 };

typedef struct chain {
  gp_remat_chain chain;
  gp_remat_layer layers[LAYERS];
  gp_remat_option options[LAYERS][OPTIONS];
} chain;

static uint64_t chain_seed;

/* A number from 0 to below - 1. */
static inline int draw(int below) {
  chain_seed = chain_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((chain_seed >> 33) % (uint64_t)below);
}

typedef enum flags { ALL_NEED_INPUT, NONE_NEEDS_INPUT, MIXED } flags;

/* Each further option keeps less and takes longer. No option needs less to run than a forward that
 * keeps nothing. */
static inline void draw_options(chain *c, int l, int options, int scale) {
  gp_remat_layer *layer = &c->layers[l];
  const int extra = draw(4) * scale;
  for (int o = 0; o < options; o++)
    c->options[l][o] = (gp_remat_option){
        .forward = layer->forward,
        .backward = layer->forward + 1 + draw(10) + (o ? 1 + draw((int)layer->forward) : 0),
        .kept = layer->output + (size_t)(o ? extra / (o + 1) : extra),
        .forward_extra = layer->forward_extra + (size_t)(draw(2) * scale),
        .backward_extra = (size_t)(draw(2) * scale),
    };
  layer->options = c->options[l];
  layer->option_count = options;
}

/* Draws a chain whose sizes are a few times `scale`. */
static inline void draw_chain(chain *c, int layers, int options, flags needs, int scale) {
  *c = (chain){.chain = {.count = layers, .input = (size_t)((1 + draw(3)) * scale)}};
  for (int l = 0; l < layers; l++) {
    const int output = (1 + draw(3)) * scale;
    c->layers[l] = (gp_remat_layer){
        .forward = 1 + draw(10),
        .forward_extra = (size_t)(draw(2) * scale),
        .output = (size_t)output,
        .gradient = (size_t)(draw(4) ? output : 0),
        .needs_input = needs == ALL_NEED_INPUT || (needs == MIXED && draw(2)),
    };
    draw_options(c, l, options, scale);
  }
  c->chain.input_gradient = draw(2) ? c->chain.input : 0;
  c->chain.layers = c->layers;
}

/* Let what each layer keeps by its first option go to the host instead. */
static inline void add_away(chain *c, gp_host_link link) {
  c->chain.link = link;
  for (int l = 0; l < c->chain.count; l++) {
    gp_remat_option away = c->options[l][0];
    away.away = away.kept;
    away.kept = 0;
    c->options[l][c->layers[l].option_count++] = away;
  }
}

/* What a stage takes that keeps all with so many in flight, roughly. */
static inline size_t full_memory(const chain *c, int in_flight) {
  size_t parked = c->chain.input, more = 0;
  for (int l = 0; l < c->chain.count; l++) {
    parked += c->options[l][0].kept;
    const size_t extra = c->options[l][0].backward_extra + 2 * c->layers[l].gradient;
    if (extra > more) more = extra;
  }
  return (size_t)in_flight * parked + more;
}

/* Checks that the simulation agrees with what a list says of itself, and that it fits. */
static inline void check_list(const gp_remat_chain *c, const gp_remat_list *list,
                              const gp_remat_limits *limits) {
  gp_remat_cost cost = {0};
  CHECK_STATUS(gp_remat_simulate(c, list, limits->in_flight, &cost), GP_OK);
  CHECK(cost.time == list->time && cost.peak == list->peak && cost.parked == list->parked);
  CHECK(cost.away == list->away);
  CHECK(list->peak <= limits->memory);
}

#endif
