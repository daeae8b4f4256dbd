/* device/cuda/cudnn/plan.c - see plan.h.
 *
 * The library offers engines. Whether one accepts a graph is known only when its plan is finalized,
 * so they are tried one after the other. Engines are skipped if they report that their sums have no
 * fixed order, or if they exceed the limits of the plan. The search goes on where it stopped if the
 * library later refuses to run what it accepted.
 *
 * An engine's number is its place in the library's lists, of which every search makes the same. So
 * an engine that was chosen by the clock (tune.c) is found again. */
#include "device/cuda/cudnn/plan.h"

/* Set the device: older versions want the handle for graphs and plans, later ones accept a
 * description of the device instead. */
static void set_target(gp_cudnn_graph *g, gp_cudnn_node node, cudnnBackendAttributeName_t handle,
                       const gp_cudnn_target *target) {
  if (target->handle) gp_cudnn_set(g, node, handle, CUDNN_TYPE_HANDLE, &target->handle);
}

/* Finalize the graph that was described so far, for a handle or a described device. */
static gp_cudnn_node make_operations(gp_cudnn_graph *g, const gp_cudnn_target *target) {
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = g->library->cudnnBackendSetAttribute(
        node, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops, g->op);
  set_target(g, node, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target);
  gp_cudnn_finish(g, node);
  return node;
}

/* ---- engines ------------------------------------------------------------------------------- */

static gp_cudnn_node make_heuristic(gp_cudnn_graph *g, gp_cudnn_node operations,
                                    cudnnBackendHeurMode_t mode, const gp_cudnn_target *target) {
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
  gp_cudnn_set(g, node, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target->properties);
  if (target->sm_count > 0)
    gp_cudnn_set(g, node, CUDNN_ATTR_ENGINEHEUR_SM_COUNT_TARGET, CUDNN_TYPE_INT32,
                 &target->sm_count);
  gp_cudnn_finish(g, node);
  return node;
}

/* list receives the engines that are offered; returns their number. */
static int64_t list_engines(gp_cudnn_graph *g, gp_cudnn_node heuristic, gp_cudnn_node *list) {
  int64_t count = 0;
  for (int i = 0; i < GP_CUDNN_ENGINES; i++)
    list[i] = gp_cudnn_make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = g->library->cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                     CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                     GP_CUDNN_ENGINES, &count, list);
  if (g->status != CUDNN_STATUS_SUCCESS) return 0;
  return count < GP_CUDNN_ENGINES ? count : GP_CUDNN_ENGINES;
}

static gp_cudnn_node engine_of(gp_cudnn_graph *g, gp_cudnn_node configuration) {
  int64_t count = 0;
  gp_cudnn_node engine = gp_cudnn_make(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status =
        g->library->cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine);
  return engine;
}

/* Engines report in notes how they compute. Those that add with atomics are never acceptable. */
static bool is_wanted(gp_cudnn_graph *g, gp_cudnn_node engine, uint32_t unwanted) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  int64_t count = 0;
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = g->library->cudnnBackendGetAttribute(
        engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
        CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes);
  for (int64_t i = 0; i < count && g->status == CUDNN_STATUS_SUCCESS; i++)
    if (unwanted >> notes[i] & 1) g->status = CUDNN_STATUS_NOT_SUPPORTED;
  return g->status == CUDNN_STATUS_SUCCESS;
}

/* The library's own number for a kind of engine; -1 where it tells none. */
static int64_t index_of(const gp_cudnn_graph *g, gp_cudnn_node engine) {
  int64_t count, index = -1;
  const cudnnStatus_t status = g->library->cudnnBackendGetAttribute(
      engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index);
  return status == CUDNN_STATUS_SUCCESS ? index : -1;
}

/* most: bytes of workspace. */
static bool try_engine(gp_cudnn_plan *plan, gp_cudnn_node configuration, size_t most) {
  gp_cudnn_graph *g = &plan->graph;
  int64_t count, bytes = 0;
  const gp_cudnn_limits *limits = &plan->limits;
  const gp_cudnn_target *target = &plan->search.target;
  gp_cudnn_node engine = engine_of(g, configuration);
  if (!is_wanted(g, engine, limits->notes | 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC))
    return false;
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  set_target(g, node, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  gp_cudnn_set_node(g, node, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target->properties);
  gp_cudnn_finish(g, node);
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = g->library->cudnnBackendGetAttribute(node, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                     CUDNN_TYPE_INT64, 1, &count, &bytes);
  if ((size_t)bytes > most) g->status = CUDNN_STATUS_NOT_SUPPORTED;
  if (g->status != CUDNN_STATUS_SUCCESS) return false;
  plan->node = node;
  plan->engine = (gp_cudnn_engine){plan->search.number - 1, index_of(g, engine)};
  if (plan->workspace < (size_t)bytes) plan->workspace = (size_t)bytes;
  return true;
}

/* Ask for the next list of engines: by heuristics, then the fallbacks. Engines that compile their
 * code (attention) accept only the number of multiprocessors of the whole GPU: for a part, ask both
 * again without a number. False after the last list. */
static bool ask_for_list(gp_cudnn_plan *plan) {
  static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
  enum { MODES = 2 };
  gp_cudnn_graph *g = &plan->graph;
  gp_cudnn_search *s = &plan->search;
  if (s->asked >= MODES && s->target.sm_count == 0) return false;
  if (s->asked == MODES) s->target.sm_count = 0, s->asked = 0;
  gp_cudnn_release(g, s->mark);
  g->status = CUDNN_STATUS_SUCCESS;
  gp_cudnn_node heuristic = make_heuristic(g, s->operations, modes[s->asked++], &s->target);
  s->at = 0;
  s->count = list_engines(g, heuristic, s->list);
  return true;
}

/* ---- plans --------------------------------------------------------------------------------- */

/* Try engines in order, from where the search stopped, but for those that it leaves out. After a
 * refusal the next engine starts afresh; if none accepts, the graph keeps the last refusal. */
static bool search(gp_cudnn_plan *plan, size_t most) {
  gp_cudnn_graph *g = &plan->graph;
  gp_cudnn_search *s = &plan->search;
  do {
    while (s->at < s->count) {
      const int mark = g->n_nodes, number = s->number++;
      gp_cudnn_node configuration = s->list[s->at++];
      plan->own = mark;
      if (number < s->first || number == s->used) continue;
      g->status = CUDNN_STATUS_SUCCESS;
      if (try_engine(plan, configuration, most)) return true;
      gp_cudnn_release(g, mark);
    }
  } while (ask_for_list(plan));
  gp_cudnn_release(g, s->mark);
  if (g->status == CUDNN_STATUS_SUCCESS) g->status = CUDNN_STATUS_NOT_SUPPORTED;
  return false;
}

static size_t most_workspace(const gp_cudnn_plan *plan) {
  return plan->limits.workspace ? plan->limits.workspace : SIZE_MAX;
}

/* A search for a graph that is finalized, of which the first descriptors are kept. */
static gp_cudnn_search new_search(const gp_cudnn_target *target, gp_cudnn_node operations,
                                  int kept) {
  return (gp_cudnn_search){.whole = *target,
                           .target = *target,
                           .operations = operations,
                           .begin = kept,
                           .mark = kept,
                           .used = -1};
}

bool gp_cudnn_plan_build(gp_cudnn_plan *plan, const gp_cudnn_target *target) {
  gp_cudnn_graph *g = &plan->graph;
  gp_cudnn_node operations = make_operations(g, target);
  plan->search = new_search(target, operations, g->n_nodes);
  return g->status == CUDNN_STATUS_SUCCESS && search(plan, most_workspace(plan));
}

bool gp_cudnn_plan_other(gp_cudnn_plan *plan) {
  gp_cudnn_release(&plan->graph, plan->own);
  plan->node = NULL, plan->workspace = 0;
  return search(plan, most_workspace(plan));
}

bool gp_cudnn_plan_from(gp_cudnn_plan *plan, int number) {
  gp_cudnn_search *s = &plan->search;
  const gp_cudnn_target whole = s->whole;
  gp_cudnn_release(&plan->graph, s->begin);
  *s = new_search(&whole, s->operations, s->begin);
  s->first = number;
  plan->node = NULL, plan->workspace = 0;
  const bool found = search(plan, most_workspace(plan));
  if (!found) return false;
  const int kept = s->begin;
  *s = new_search(&whole, s->operations, plan->graph.n_nodes);
  s->begin = kept, s->used = plan->engine.number;
  return true;
}

bool gp_cudnn_plan_next(gp_cudnn_plan *plan) {
  plan->search.mark = plan->graph.n_nodes;
  plan->node = NULL;
  return search(plan, plan->workspace);
}

void gp_cudnn_plan_close(gp_cudnn_plan *plan) {
  gp_cudnn_release(&plan->graph, 0);
  plan->node = NULL;
}

/* ---- running ------------------------------------------------------------------------------- */

static gp_cudnn_node make_pack(gp_cudnn_graph *g, const gp_cudnn_operand *operands, int count,
                               void *workspace) {
  int64_t ids[GP_CUDNN_OPERANDS];
  const void *data[GP_CUDNN_OPERANDS];
  for (int i = 0; i < count; i++) ids[i] = operands[i].id, data[i] = operands[i].data;
  gp_cudnn_node node = gp_cudnn_make(g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  gp_cudnn_set_ints(g, node, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, count, ids);
  if (g->status == CUDNN_STATUS_SUCCESS)
    g->status = g->library->cudnnBackendSetAttribute(node, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                                     CUDNN_TYPE_VOID_PTR, count, data);
  gp_cudnn_set(g, node, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace);
  gp_cudnn_finish(g, node);
  return node;
}

cudnnStatus_t gp_cudnn_plan_run(gp_cudnn_plan *plan, cudnnHandle_t handle,
                                const gp_cudnn_operand *operands, int count, void *workspace) {
  gp_cudnn_graph *g = &plan->graph;
  const int mark = g->n_nodes;
  gp_cudnn_node pack = make_pack(g, operands, count, workspace);
  cudnnStatus_t status = g->status;
  if (status == CUDNN_STATUS_SUCCESS)
    status = g->library->cudnnBackendExecute(handle, plan->node, pack);
  gp_cudnn_release(g, mark);
  g->status = CUDNN_STATUS_SUCCESS;
  return status;
}
