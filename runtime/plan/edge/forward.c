/* plan/edge/forward.c - how many slots edges have in plans without backward passes.
 *
 * Values flow in one direction there, and nothing would ever stop a maker that is faster than its
 * readers. So every edge has the same small number of slots, and makers wait for a free one.
 */
#include "base/memory.h"
#include "plan/channels.h"
#include "plan/edge/flow.h"

/* One that is written, one that is read, one between them. */
enum { FORWARD_ONLY_SLOTS = 3 };

/* A run with so many slots for each edge. */
typedef struct trial {
  const gp_plan *plan;
  int32_t slots;
  int32_t *used; /* per channel and slot: last uses so far */
} trial;

/* The uses of the slot that the value takes; *round receives how often it was taken before. */
static int32_t *slot_at(const trial *t, const gp_flow_use *use, int64_t *round) {
  int64_t turn = gp_plan_turn(t->plan, use->edge, use->micro);
  *round = turn / t->slots;
  const size_t channel = (size_t)gp_plan_channel_at(t->plan, use->edge, use->micro);
  return &t->used[channel * (size_t)t->slots + (size_t)(turn % t->slots)];
}

/* A forward pass touches each value once per stage, so every use is a last one. */
static bool is_free(void *context, const gp_flow_use *use) {
  const trial *t = context;
  int64_t round, uses = 1 + gp_plan_edge(t->plan, use->edge)->to_count;
  const int32_t *used = slot_at(t, use, &round);
  return *used >= round * uses;
}

static void count_use(void *context, const gp_flow_use *use) {
  int64_t round;
  ++*slot_at(context, use, &round);
}

/* Does everything still run to its end if makers wait for free slots? */
static gp_status flows(gp_flow *flow, int32_t slots, bool *flows) {
  trial t = {.plan = flow->plan, .slots = slots};
  gp_flow_watch watch = {.context = &t, .may_make = is_free, .uses = count_use};
  size_t states;
  GP_TRY(gp_size_mul((size_t)gp_plan_value_channels(t.plan), (size_t)slots, &states));
  GP_TRY(gp_alloc_array(states + 1, sizeof(int32_t), (void **)&t.used));
  *flows = gp_flow_run(flow, &watch, NULL);
  gp_free(t.used);
  return GP_OK;
}

/* One slot for each micro-batch is always enough. */
gp_status gp_flow_forward_slots(gp_flow *flow, int32_t *slots) {
  int32_t most = flow->plan->micro_count;
  bool enough = false;
  for (*slots = FORWARD_ONLY_SLOTS; *slots < most && !enough; *slots += !enough)
    GP_TRY(flows(flow, *slots, &enough));
  if (*slots > most) *slots = most;
  return GP_OK;
}
