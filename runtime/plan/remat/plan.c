/* plan/remat/plan.c - what planners call for one stage: its list, its curve, its least memory. */
#include "base/memory.h"
#include "plan/remat/away.h"
#include "plan/remat/column.h"
#include "plan/remat/once.h"
#include "plan/remat/search.h"

gp_status gp_remat_refuse(const gp_remat_limits *limits, size_t least) {
  return gp_fail(
      GP_ENOMEM,
      "remat: a limit of %zu bytes for %d micro-batches in flight, expected %zu at least",
      limits->memory, (int)limits->in_flight, least);
}

static gp_status check_limits(const gp_remat_limits *limits) {
  if (limits->memory == 0) return gp_fail(GP_EINVAL, "remat: a limit of 0 bytes, expected more");
  return gp_remat_check_in_flight(limits->in_flight);
}

static gp_status check_stage(const gp_remat_stage *stage, const gp_remat_limits *limits) {
  const gp_remat_table *t = stage->table;
  GP_TRY(check_limits(limits));
  if (stage->first < 0 || stage->end <= stage->first || stage->end > t->chain.count)
    return gp_fail(GP_EINVAL, "remat: a stage of layers %d to %d, expected some of 0 to %d",
                   (int)stage->first, (int)stage->end - 1, (int)t->chain.count - 1);
  if (limits->memory > t->memory)
    return gp_fail(GP_EINVAL, "remat: a limit of %zu bytes, expected at most the table's %zu",
                   limits->memory, t->memory);
  return GP_OK;
}

static gp_status solve_once(const gp_remat_chain *chain, const gp_remat_limits *limits,
                            gp_remat_list *list) {
  gp_remat_list made;
  GP_TRY(gp_remat_once(chain, limits->in_flight, &made));
  if (made.peak <= limits->memory) {
    *list = made;
    return GP_OK;
  }
  const size_t least = made.peak;
  gp_remat_list_free(&made);
  return gp_remat_refuse(limits, least);
}

gp_status gp_remat_solve(const gp_remat_stage *stage, const gp_remat_limits *limits,
                         gp_remat_list *list) {
  GP_TRY(check_stage(stage, limits));
  if (!limits->once) return gp_remat_search(stage, limits, list);
  const gp_remat_chain part = gp_remat_part(&stage->table->chain, stage->first, stage->end);
  return solve_once(&part, limits, list);
}

gp_status gp_remat_curve(const gp_remat_stage *stage, const gp_remat_limits *limits,
                         gp_remat_point *points, int32_t count) {
  GP_TRY(check_stage(stage, limits));
  if (count < 1 || limits->once)
    return gp_fail(GP_EINVAL, "remat: a curve of %d points%s, expected 1 or more and no `once`",
                   (int)count, limits->once ? " with `once`" : "");
  const size_t most = limits->memory / (size_t)limits->in_flight;
  gp_remat_column column;
  GP_TRY(gp_remat_column_new(stage, &column));
  for (int32_t p = 0; p < count; p++) {
    const size_t part = (size_t)p + 1, all = (size_t)count;
    const size_t cap = most / all * part + most % all * part / all;
    const size_t waiting = (size_t)(limits->in_flight - 1) * cap;
    const gp_remat_share share = {.parked = cap, .active = limits->memory - waiting};
    const int64_t time = gp_remat_column_solve(&column, share, GP_REMAT_IMPOSSIBLE);
    points[p] = (gp_remat_point){.parked = cap, .time = time == GP_REMAT_IMPOSSIBLE ? -1 : time};
  }
  gp_remat_column_free(&column);
  return GP_OK;
}

/* ---- with a table of its own ----------------------------------------------------------------- */

static gp_status search_alone(const gp_remat_chain *chain, const gp_remat_limits *limits,
                              int32_t quanta, gp_remat_list *list) {
  gp_remat_table *table;
  const gp_remat_table_spec spec = {.chain = chain, .memory = limits->memory, .quanta = quanta};
  GP_TRY(gp_remat_table_new(&spec, &table));
  gp_remat_limits within = *limits;
  if (within.memory > table->memory) within.memory = table->memory;
  const gp_status status = gp_remat_search_away(table, &within, list);
  gp_remat_table_free(table);
  return status;
}

gp_status gp_remat_plan(const gp_remat_chain *chain, const gp_remat_limits *limits, int32_t quanta,
                        gp_remat_list *list) {
  GP_TRY(gp_remat_chain_check(chain));
  GP_TRY(check_limits(limits));
  if (limits->once) return solve_once(chain, limits, list);
  return search_alone(chain, limits, quanta, list);
}

static gp_status least_bytes(const gp_remat_chain *chain, int32_t in_flight, size_t *bytes) {
  size_t *ranges;
  GP_TRY(gp_remat_least_ranges(chain, false, &ranges));
  gp_remat_path path = {.chain = chain, .ranges = ranges, .end = chain->count};
  const gp_status status = gp_remat_path_new(&path);
  if (!status) {
    const gp_remat_share share = gp_remat_least_share(&path, in_flight);
    *bytes = (size_t)(in_flight - 1) * share.parked + share.active;
  }
  gp_remat_path_free(&path);
  gp_free(ranges);
  return status;
}

gp_status gp_remat_least(const gp_remat_chain *chain, const gp_remat_limits *limits,
                         gp_remat_list *list) {
  GP_TRY(gp_remat_chain_check(chain));
  GP_TRY(gp_remat_check_in_flight(limits->in_flight));
  if (limits->once) return gp_remat_once(chain, limits->in_flight, list);
  gp_remat_limits least = *limits;
  GP_TRY(least_bytes(chain, limits->in_flight, &least.memory));
  return search_alone(chain, &least, 0, list);
}
