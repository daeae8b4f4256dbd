/* plan/program/order.c - the order of a backward program: chains of row-wise ops first, weight
 * gradients after.
 *
 * A rule appends dx and dw of a layer next to each other, but dw reads all rows and so ends the run
 * of row-wise ops around it. Moving accumulations behind the chain that they interrupt lets a block
 * of rows pass through the whole chain while it is in the cache, and leaves weight gradients side
 * by side, where they share one hand-out to the threads. They are never moved past an op that is
 * not row-wise: what they read is still in the cache, and is not kept alive for long. No bit
 * changes: every accumulator still receives its contributions in the same order.
 */
#include "base/memory.h"
#include "plan/program/program.h"

typedef struct order {
  const gp_graph *graph;
  int32_t *out, *waiting; /* nodes placed, and accumulations that wait */
  int32_t placed, waiting_count;
} order;

static bool accumulates(const gp_node *node) {
  return node->accumulate || gp_op_get(node->op)->flags & GP_OP_EFFECT;
}

static void release(order *o) {
  for (int32_t i = 0; i < o->waiting_count; i++) o->out[o->placed++] = o->waiting[i];
  o->waiting_count = 0;
}

/* Place a node. Accumulations wait until a node that is not row-wise ends the chain; then they go
 * first. */
static void place(order *o, int32_t index) {
  const gp_node *node = &o->graph->nodes[index];
  if (accumulates(node)) {
    o->waiting[o->waiting_count++] = index;
    return;
  }
  if (!(gp_op_get(node->op)->flags & GP_OP_ROWS)) release(o);
  o->out[o->placed++] = index;
}

gp_status gp_program_order(const gp_graph *graph, int32_t *nodes, int32_t count) {
  order o = {.graph = graph};
  size_t room = (size_t)count + 1;
  GP_TRY(gp_alloc_array(2 * room, sizeof(int32_t), (void **)&o.out));
  o.waiting = o.out + room;
  for (int32_t i = 0; i < count; i++) place(&o, nodes[i]);
  release(&o);
  for (int32_t i = 0; i < count; i++) nodes[i] = o.out[i];
  gp_free(o.out);
  return GP_OK;
}
