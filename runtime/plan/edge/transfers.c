/* plan/edge/transfers.c - see transfers.h: the lists. */
#include "plan/edge/transfers.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "plan/edge/step_edges.h"
#include "schedule/schedule.h"

/* ---- finding --------------------------------------------------------------------------------- */

/* Both work in memory of their own, in different processes. */
static bool is_far(const gp_plan *plan, int32_t a, int32_t b) {
  const gp_plan_device_spec *x = &plan->devices[a].spec, *y = &plan->devices[b].spec;
  return x->rank != y->rank && x->space != 0 && y->space != 0;
}

/* Are two devices of the plan far from each other? */
static bool is_any_far(const gp_plan *plan) {
  int32_t first = -1; /* the rank of the first device with memory of its own */
  for (int32_t d = 0; d < plan->device_count; d++) {
    const gp_plan_device_spec *spec = &plan->devices[d].spec;
    if (!spec->space) continue;
    if (first >= 0 && spec->rank != first) return true;
    first = spec->rank;
  }
  return false;
}

static void find_makers(gp_transfers *t) {
  const gp_plan *plan = t->plan;
  for (int32_t d = 0; d < plan->device_count; d++)
    for (int32_t k = plan->first[d]; k < plan->first[d + 1]; k++) {
      const gp_task *task = &plan->tasks[k];
      t->device[k] = d;
      for (int32_t u = 0; u < task->use_count; u++)
        if (task->uses[u].publish)
          t->maker[gp_transfers_cell_of(plan, task, task->uses[u].edge)] = k + 1;
    }
}

static int32_t use_of(const gp_task *task, int32_t edge) {
  int32_t u = 0;
  while (task->uses[u].edge != edge || !task->uses[u].publish) u++;
  return u;
}

/* The transfer of a value that a task of a device waits for; false: none brings it. */
static bool transfer_of(const gp_transfers *t, int32_t device, int32_t edge, const gp_task *reader,
                        gp_transfer *found) {
  const int32_t made = t->maker[gp_transfers_cell_of(t->plan, reader, edge)] - 1;
  if (made < 0 || !is_far(t->plan, t->device[made], device)) return false;
  const gp_task *task = &t->plan->tasks[made];
  const int32_t use = use_of(task, edge);
  *found = (gp_transfer){.from = t->device[made],
                         .to = device,
                         .made = made,
                         .use = use,
                         .turn = task->uses[use].early ? use - task->use_count : use,
                         .behind = -1};
  return true;
}

static int compare(const void *one, const void *other) {
  const gp_transfer *a = one, *b = other;
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  if (a->to != b->to) return a->to < b->to ? -1 : 1;
  if (a->made != b->made) return a->made < b->made ? -1 : 1;
  return (a->turn > b->turn) - (a->turn < b->turn);
}

/* List what tasks wait for. If several stages of a device do, each has its turn here. */
static gp_status list_waits(gp_transfers *t) {
  const gp_plan *plan = t->plan;
  size_t room = 0;
  for (int32_t k = 0; k < plan->first[plan->device_count]; k++)
    for (int32_t u = 0; u < plan->tasks[k].use_count; u++) {
      const gp_edge_use *use = &plan->tasks[k].uses[u];
      gp_transfer found;
      if (!use->wait || !transfer_of(t, t->device[k], use->edge, &plan->tasks[k], &found)) continue;
      found.read = k;
      GP_TRY(gp_grow_array((size_t)t->count, &room, sizeof *t->list, (void **)&t->list));
      t->list[t->count++] = found;
    }
  return GP_OK;
}

/* Keep one transfer for each device, with the first task that waits for it. */
static void join_same(gp_transfers *t) {
  int32_t kept = 0;
  for (int32_t i = 0; i < t->count; i++) {
    gp_transfer *last = kept ? &t->list[kept - 1] : NULL;
    if (!last || compare(last, &t->list[i]))
      t->list[kept++] = t->list[i];
    else if (t->list[i].read < last->read)
      last->read = t->list[i].read;
  }
  t->count = kept;
}

static void part_pairs(gp_transfers *t) {
  for (int32_t i = 0; i < t->count; i++) {
    const gp_transfer *before = i ? &t->list[i - 1] : NULL;
    if (!before || before->from != t->list[i].from || before->to != t->list[i].to)
      t->first[t->pair_count++] = i;
    t->list[i].received = i;
  }
  t->first[t->pair_count] = t->count;
}

/* ---- life ------------------------------------------------------------------------------------ */

static gp_status find(gp_transfers *t) {
  const gp_plan *plan = t->plan;
  const size_t tasks = (size_t)plan->first[plan->device_count];
  const size_t cells = gp_transfers_cells(plan);
  GP_TRY(gp_alloc_array(tasks + 1, sizeof *t->device, (void **)&t->device));
  GP_TRY(gp_alloc_array(cells + 1, sizeof *t->maker, (void **)&t->maker));
  find_makers(t);
  GP_TRY(list_waits(t));
  GP_TRY(gp_alloc_array((size_t)t->count + 1, sizeof *t->first, (void **)&t->first));
  if (t->count) qsort(t->list, (size_t)t->count, sizeof *t->list, compare);
  join_same(t);
  part_pairs(t);
  return GP_OK;
}

gp_status gp_transfers_new(const gp_plan *plan, gp_transfers *t) {
  *t = (gp_transfers){.plan = plan};
  const gp_status status = find(t);
  if (status) gp_transfers_free(t);
  return status;
}

void gp_transfers_free(gp_transfers *t) {
  gp_free(t->list);
  gp_free(t->first);
  gp_free(t->device);
  gp_free(t->maker);
  *t = (gp_transfers){0};
}

int32_t gp_transfers_find(const gp_transfers *t, const gp_task *task, int32_t edge,
                          int32_t device) {
  gp_transfer key;
  if (!t->count || !transfer_of(t, device, edge, task, &key)) return -1;
  const gp_transfer *found = bsearch(&key, t->list, (size_t)t->count, sizeof key, compare);
  return found ? (int32_t)(found - t->list) : -1;
}

gp_status gp_plan_prove_transfers(const gp_plan *plan) {
  gp_transfers t;
  if (plan->share || !is_any_far(plan)) return GP_OK;
  GP_TRY(gp_transfers_new(plan, &t));
  const gp_status status = gp_transfers_prove(&t);
  gp_transfers_free(&t);
  return status;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void put_value(gp_text *text, const gp_plan *plan, const gp_transfer *one) {
  const gp_task *task = &plan->tasks[one->made];
  const gp_action action = gp_task_action(plan, task, task->micro);
  const gp_step_edge *once = gp_plan_step_edge(plan, task->uses[one->use].edge);
  char name[GP_ACTION_TEXT];
  gp_text_put(text, "%s of ", once ? gp_step_edge_name(once) : "the value");
  gp_text_put(text, "%s", gp_action_print(&action, name));
}

/* A line for each pair: "device 0 (rank 0) to 1 (rank 1): the value of 0F0, the value of 0F1". */
gp_status gp_plan_transfers(const gp_plan *plan, char *text, size_t size, size_t *length) {
  gp_transfers t;
  gp_text page = gp_text_begin(text, size);
  GP_TRY(gp_transfers_new(plan, &t));
  for (int32_t p = 0; p < t.pair_count; p++) {
    const gp_transfer *one = &t.list[t.first[p]];
    gp_text_put(&page, "device %d (rank %d) to %d (rank %d):", (int)one->from,
                (int)plan->devices[one->from].spec.rank, (int)one->to,
                (int)plan->devices[one->to].spec.rank);
    for (int32_t i = t.first[p]; i < t.first[p + 1]; i++) {
      gp_text_put(&page, i > t.first[p] ? ", " : " ");
      put_value(&page, plan, &t.list[i]);
    }
    gp_text_put(&page, "\n");
  }
  gp_transfers_free(&t);
  *length = page.length;
  return GP_OK;
}
