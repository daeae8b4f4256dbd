/* tests/c/plan/stream_test.c - plans of asynchronous, looped and bidirectional schedules: versions,
 * ranges, slots and capacities, and what replicas hand to each other, compared with a run by the
 * engine's rules, one task after another.
 *
 * Models are toy towers with one layer per stage. */
#include "plan/channels.h"
#include "plan/edge/transfers.h"
#include "toy_plan.h"

enum { DEVICES = 4, SPANS = 64 };

/* Schedules that this file writes: rows per device, placement per stage and copy. */
typedef enum stream_order {
  PIPEDREAM,
  VERTICAL_SYNC,
  TWO_BW,
  LAST_ASYNC = TWO_BW,
  LOOPED,
  CHIMERA,
  ORDERS
} stream_order;

typedef struct stream_spec {
  stream_order order;
  int devices, micros; /* of a replica; micros: per mini-batch that step is given */
  int replicas;        /* of TWO_BW; 0: one */
  int last;            /* micro-batches of the last replica; 0: as many; -1: none */
  int smaller;         /* how many micro-batches have a row less */
  gp_remat remat;
  bool skips, frozen, free; /* free: steps follow each other without a barrier */
  bool far;                 /* each device has memory of its own */
} stream_spec;

static bool is_async(const stream_spec *s) { return s->order <= LAST_ASYNC; }
static int batch_of(const stream_spec *s) { return s->order == TWO_BW ? s->micros : 1; }
static int replicas_of(const stream_spec *s) { return s->replicas ? s->replicas : 1; }
/* The micro-batches of a replica, and of all, in a mini-batch. */
static int own_of(const stream_spec *s, int replica) {
  const bool fewer = s->last && replica == replicas_of(s) - 1;
  return !fewer ? s->micros : s->last < 0 ? 0 : s->last;
}
static int all_of(const stream_spec *s) {
  return (replicas_of(s) - 1) * s->micros + own_of(s, replicas_of(s) - 1);
}
static int stages_of(const stream_spec *s) {
  return s->order == LOOPED ? 2 * s->devices : s->devices;
}

/* Returns how many micro-batches the lists show: several mini-batches where the stream goes on. */
static int stored(const stream_spec *s) {
  if (!is_async(s)) return s->micros;
  if (s->replicas) return s->micros * (4 + 2 * s->devices);
  return s->micros * (4 + (2 * s->devices + s->micros - 1) / s->micros);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int version_of(const stream_spec *s, int stage, int micro) {
  int behind = s->order == PIPEDREAM ? s->devices - 1 - stage : s->devices - 1;
  int version = s->order == TWO_BW ? micro / s->micros - 1 : micro - behind;
  return version < 0 ? 0 : version;
}

static void write(toy_text *t, const stream_spec *s, char op, int stage, int micro) {
  toy_write(t, op, stage, micro);
  if (is_async(s) && op != 'U')
    t->used += (size_t)snprintf(t->text + t->used, sizeof t->text - t->used, "@%d",
                                version_of(s, stage, micro));
}

/* Writes an action of a replica, whose micro-batches are numbered through those of all. */
static void write_own(toy_text *t, const stream_spec *s, char op, int stage, int replica, int i) {
  const int own = own_of(s, replica), version = i / own - 1;
  toy_write(t, op, stage, i / own * all_of(s) + replica * s->micros + i % own);
  t->used += (size_t)snprintf(t->text + t->used, sizeof t->text - t->used, "@%d",
                              version < 0 ? 0 : version);
}

static void replica_row(toy_text *t, const stream_spec *s, int replica, int d) {
  const int own = own_of(s, replica), batches = stored(s) / s->micros, n = batches * own;
  const int ahead = s->devices - 1 - d > own ? own : s->devices - 1 - d;
  for (int k = 0; k < batches && !own; k++) toy_write(t, 'U', d, k);
  for (int i = 0; i < ahead; i++) write_own(t, s, 'F', d, replica, i);
  for (int i = 0; i < n; i++) {
    if (ahead + i < n) write_own(t, s, 'F', d, replica, ahead + i);
    write_own(t, s, 'B', d, replica, i);
    if (i % own == own - 1) toy_write(t, 'U', d, i / own);
  }
}

static void async_row(toy_text *t, const stream_spec *s, int d) {
  int n = stored(s), ahead = s->devices - 1 - d;
  if (s->order == TWO_BW && ahead > s->micros) ahead = s->micros;
  for (int i = 0; i < ahead && i < n; i++) write(t, s, 'F', d, i);
  for (int i = 0; i < n; i++) {
    if (ahead + i < n) write(t, s, 'F', d, ahead + i);
    write(t, s, 'B', d, i);
    if (i % batch_of(s) == batch_of(s) - 1) toy_write(t, 'U', d, i / batch_of(s));
  }
}

/* Writes a looped row: breadth-first over two stages of each device. */
static void looped_row(toy_text *t, const stream_spec *s, int d) {
  for (int stage = d; stage < 2 * s->devices; stage += s->devices)
    for (int i = 0; i < s->micros; i++) write(t, s, 'F', stage, i);
  for (int stage = d + s->devices; stage >= d; stage -= s->devices)
    for (int i = s->micros - 1; i >= 0; i--) write(t, s, 'B', stage, i);
}

/* Writes a bidirectional row: even micro-batches go down the devices, odd ones up, one at a
 * time. */
static void both_row(toy_text *t, const stream_spec *s, int d) {
  for (int i = 0; i < s->micros; i++) write(t, s, 'F', i % 2 ? s->devices - 1 - d : d, i);
  for (int i = 0; i < s->micros; i++) write(t, s, 'B', i % 2 ? s->devices - 1 - d : d, i);
}

static gp_schedule *schedule_of(const stream_spec *s) {
  static toy_text texts[DEVICES];
  const char *rows[DEVICES];
  int32_t placement[2 * DEVICES];
  gp_schedule *schedule = NULL;
  bool both = s->order == CHIMERA;
  const int replicas = replicas_of(s);
  for (int d = 0; d < s->devices * replicas; d++) {
    texts[d] = (toy_text){.used = 0};
    if (s->replicas)
      replica_row(&texts[d], s, d / s->devices, d % s->devices);
    else if (is_async(s))
      async_row(&texts[d], s, d);
    if (s->order == LOOPED) looped_row(&texts[d], s, d);
    if (both) both_row(&texts[d], s, d);
    rows[d] = texts[d].text;
  }
  for (int i = 0; i < stages_of(s); i++) {
    placement[both ? 2 * i : i] = i % s->devices;
    if (both) placement[2 * i + 1] = s->devices - 1 - i;
  }
  for (int h = 0; h < s->devices * s->replicas; h++)
    placement[h] = h % replicas * s->devices + h / replicas;
  gp_schedule_spec spec = {.stage_count = stages_of(s),
                           .placement = placement,
                           .copy_count = both ? 2 : replicas,
                           .replicas = replicas,
                           .replica_micros = s->micros,
                           .batch = s->replicas   ? all_of(s)
                                    : is_async(s) ? batch_of(s)
                                                  : 0};
  CHECK_STATUS(schedule_of_rows(&spec, rows, s->devices * replicas, &schedule, NULL), GP_OK);
  return schedule;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Makes the plan while its n-th allocation fails (0: none). */
static void make(const stream_spec *s, toy_planned *made, uint64_t n) {
  toy_spec model = {.stages = stages_of(s), .skips = s->skips, .frozen = s->frozen};
  int layers[TOY_LAYERS];
  for (int i = 0; i < model.stages; i++) layers[i] = 1;
  *made = (toy_planned){0};
  toy_space_set(&made->space, layers, model.stages);
  gp_plan_device_spec devices[DEVICES];
  for (int d = 0; d < DEVICES; d++) devices[d] = (gp_plan_device_spec){.rank = d};
  made->space.env.device_count = s->devices * replicas_of(s);
  made->space.env.devices = s->far ? devices : NULL;
  made->space.env.norm = s->replicas > 0;
  made->space.env.sum_group = s->replicas > 0;
  made->space.replicas = s->replicas;
  for (int h = 0; h < s->devices * s->replicas; h++)
    made->space.placement[h] = h % s->replicas * s->devices + h / s->replicas;
  made->space.env.remat = s->remat;
  made->space.env.update = is_async(s) || s->free ? GP_UPDATE_FREE : GP_UPDATE_BARRIER;
  gp_schedule *schedule = schedule_of(s);
  gp_plan_spec plan = {.kind = GP_PLAN_STEP, .schedule = schedule};
  for (int k = 0; k < 2; k++) {
    gp_traced_shape *shape = &plan.shapes[k];
    *shape = (gp_traced_shape){.rows = 3 - k,
                               .micros = k ? s->smaller : all_of(s) - s->smaller,
                               .loss_count = GP_NONE,
                               .constant_count = 3 - k};
    if (!shape->micros) continue;
    made->models[k] = toy_model(&model, shape->rows, &shape->loss_sum);
    shape->trace = made->models[k].trace;
    toy_space_add(&made->space, &made->models[k]);
  }
  gp_memory_fail_at(n);
  made->status = toy_space_plan(&made->space, &plan, &made->plan);
  gp_memory_fail_at(0);
  made->space.env.devices = NULL;
  gp_schedule_free(schedule);
}

/* ---- a run by the engine's rules ------------------------------------------------------------- */

/* State of one slot of an edge: rounds published, uses released. */
typedef struct slot {
  int64_t published, released;
} slot;

typedef struct runner {
  const gp_plan *plan;
  slot slots[64][SPANS];
  int64_t holder[2 * DEVICES][GP_SLOT_KINDS][SPANS]; /* micro-batch + 1 that holds the slot */
  int64_t version[2 * DEVICES];                      /* newest, per stage and copy */
  int64_t taken[2 * DEVICES];                        /* likewise: of what other copies own */
  int64_t stash[2 * DEVICES][SPANS];                 /* version + 1 in each place */
  uint32_t step[DEVICES];
  int32_t task[DEVICES];
  uint32_t given;
  bool one_way; /* readers of a frozen stage, or of the step before, send nothing back */
} runner;

/* Step edges have a round a step or, slot by slot, a turn. */
static slot *slot_of(runner *r, const gp_task *task, int32_t edge, int64_t micro, int64_t *round) {
  const gp_step_edge *once = gp_plan_step_edge(r->plan, edge);
  const int32_t c = gp_plan_channel_at(r->plan, edge, micro);
  CHECK(gp_plan_channel_count(r->plan) <= 64);
  *round = micro / r->plan->step_micros;
  if (once && gp_step_turns(r->plan, once)) {
    const int64_t own = gp_step_turn(r->plan, once, task, micro);
    *round = own / gp_step_slots(r->plan, once);
    return &r->slots[c][own % gp_step_slots(r->plan, once)];
  }
  if (once) return &r->slots[c][0];
  int64_t turn = gp_plan_turn(r->plan, edge, micro), slots = r->plan->channels[c].slots;
  *round = turn / slots;
  return &r->slots[c][turn % slots];
}

static int32_t parties_of(const gp_plan *plan, int32_t edge, int64_t micro) {
  const gp_step_edge *once = gp_plan_step_edge(plan, edge);
  return once ? once->reader_count : gp_plan_channel_of(plan, edge, micro)->parties;
}

/* Would the task wait for a value, or for a free slot? It may wait for a slot only where nothing
 * flows back, or of a step edge. */
static bool must_wait(runner *r, const gp_task *task, int64_t micro) {
  for (int32_t u = 0; u < task->use_count; u++) {
    int64_t round;
    const int32_t edge = task->uses[u].edge;
    slot *at = slot_of(r, task, edge, micro, &round);
    if (task->uses[u].wait && at->published <= round) return true;
    if (!task->uses[u].acquire) continue;
    bool free = at->released >= round * parties_of(r->plan, edge, micro);
    CHECK(free || r->one_way || gp_plan_step_edge(r->plan, edge));
    if (!free) return true;
  }
  return false;
}

static void use_edges(runner *r, const gp_task *task, int64_t micro) {
  for (int32_t u = 0; u < task->use_count; u++) {
    int64_t round;
    slot *at = slot_of(r, task, task->uses[u].edge, micro, &round);
    const bool made = task->uses[u].wait || task->uses[u].release;
    if (made && !task->uses[u].publish) CHECK(at->published == round + 1); /* not a later round */
    if (task->uses[u].publish) CHECK(at->published == round), at->published++;
    at->released += task->uses[u].release;
  }
}

/* Is the task the last one that may read a part of what its micro-batch keeps? */
static bool is_last_reader(const gp_task *task, int part) {
  if (task->op == GP_ACT_B || task->op == GP_ACT_W) return true;
  if (part == GP_PART_HEAD) return task->op == GP_ACT_I;
  return part != GP_PART_REST && task->op == GP_ACT_R;
}

/* Checks that no other micro-batch's values lie where this one keeps its own. */
static void use_slots(runner *r, const gp_task *task, int64_t micro) {
  int32_t h = gp_plan_holder(r->plan, task->stage, task->copy);
  for (int own = 0; own < GP_SLOT_BASES; own++) {
    const int kind = gp_task_slot_kind(task, own);
    int64_t at = task->slot[own];
    if (at < 0) continue;
    if (r->plan->batch) at = gp_plan_own_micro(r->plan, micro) % r->plan->slots[h].count[kind];
    int64_t *holder = &r->holder[h][kind][at];
    CHECK(!*holder || *holder == micro + 1);
    *holder = is_last_reader(task, gp_slot_part(kind)) ? 0 : micro + 1;
  }
}

/* Checks that the task finds the version of the weights that it needs, and that its copy has taken
 * over what others own of it. */
static void use_version(runner *r, const gp_task *task, int64_t micro) {
  const gp_plan *plan = r->plan;
  const int32_t h = gp_plan_holder(plan, task->stage, task->copy), device = plan->placement[h];
  int64_t version = task->version + (micro - task->micro) / plan->batch;
  int32_t older = plan->versions[h].live - 1;
  const bool reads = task->op <= GP_ACT_R || task->op == GP_ACT_P || task->op == GP_ACT_U;
  if (task->op == GP_ACT_UNSHARD) r->taken[h] = version + 1;
  if (reads && task->newest && gp_plan_takes(plan, device, task->stage))
    CHECK(r->taken[h] == version + 1);
  if (task->op == GP_ACT_U) {
    CHECK(version == r->version[h]);
    if (task->stash) r->stash[h][version % older] = version + 1;
    r->version[h]++;
  } else if (task->op != GP_ACT_C && task->newest) {
    CHECK(version == r->version[h]);
  } else if (task->op != GP_ACT_C) {
    CHECK(older > 0 && r->stash[h][version % older] == version + 1);
  }
}

/* Returns the next task of device d, or NULL: the device waits for a mini-batch, or is done. */
static const gp_task *head(runner *r, int32_t d, int64_t *micro) {
  const gp_plan *plan = r->plan;
  for (;;) {
    int64_t repeats;
    int32_t range = gp_plan_range(plan, r->step[d], &repeats);
    const int32_t *begin = &plan->ranges.begin[d * (plan->ranges.count + 1) + range];
    if (r->step[d] >= r->given + (uint32_t)plan->ranges.lag[d]) return NULL;
    if (begin[0] + r->task[d] == begin[1]) {
      r->step[d]++;
      r->task[d] = 0;
      continue;
    }
    const gp_task *task = &plan->tasks[begin[0] + r->task[d]];
    *micro = task->micro + repeats * plan->step_micros;
    if (*micro < (int64_t)r->given * plan->step_micros) return task;
    r->task[d]++; /* this mini-batch is never submitted */
  }
}

static bool advance(runner *r, int32_t d) {
  int64_t micro;
  const gp_task *task = head(r, d, &micro);
  if (!task || must_wait(r, task, micro)) return false;
  use_edges(r, task, micro);
  use_slots(r, task, micro);
  if (r->plan->batch) use_version(r, task, micro);
  r->task[d]++;
  return true;
}

/* Advances random devices that can go on until none can. */
static void run(const gp_plan *plan, const stream_spec *spec, uint32_t steps, uint32_t seed) {
  static runner r;
  r = (runner){.plan = plan, .given = plan->batch || spec->free ? steps : 1};
  r.one_way = spec->frozen || spec->free;
  for (int tries = 0; tries < 8 * DEVICES;) {
    seed = seed * 1664525u + 1013904223u;
    int32_t d = (int32_t)(seed >> 16) % plan->device_count, burst = 1 + (int32_t)(seed >> 28);
    bool moved = false;
    while (burst-- && advance(&r, d)) moved = true;
    tries = moved ? 0 : tries + 1;
  }
  for (int32_t d = 0; d < plan->device_count; d++) {
    int64_t micro;
    CHECK(!head(&r, d, &micro));
  }
  for (int32_t h = 0; plan->batch && h < plan->stage_count * plan->copy_count; h++)
    CHECK(r.version[h] == (int64_t)steps * plan->step_micros / plan->batch);
}

TEST(every_interleaving_finds_its_values_slots_and_versions) {
  for (stream_order order = 0; order < ORDERS; order++)
    for (int devices = order == CHIMERA ? 2 : 1; devices <= DEVICES;
         devices += 1 + (order == CHIMERA))
      for (int micros = 1; micros <= 5; micros++)
        for (int kind = 0; kind < 9; kind++) {
          stream_spec spec = {.order = order,
                              .devices = devices,
                              .micros = micros,
                              .smaller = kind % 2 ? micros / 2 : 0,
                              .remat = (gp_remat)(kind % 3),
                              .skips = kind / 3 == 1,
                              .frozen = kind / 3 == 2,
                              .free = order == LOOPED && kind % 2};
          toy_planned p;
          make(&spec, &p, 0);
          CHECK_STATUS(p.status, GP_OK);
          if (p.status) continue;
          for (uint32_t seed = 1; seed <= 3; seed++) run(p.plan, &spec, 12, seed);
          toy_plan_free(&p);
        }
}

/* Lets each device be the GPU of a rank of its own: what they send each other comes to its end. */
static void prove(gp_plan *plan, bool any) {
  gp_transfers transfers;
  for (int32_t d = 0; d < plan->device_count; d++)
    plan->devices[d].spec = (gp_plan_device_spec){.space = d + 1, .rank = d};
  CHECK_STATUS(gp_transfers_new(plan, &transfers), GP_OK);
  CHECK(!any || transfers.count > 0);
  CHECK_STATUS(gp_transfers_prove(&transfers), GP_OK);
  gp_transfers_free(&transfers);
}

/* All replicas update the same number of times, read the same versions, and take over what others
 * own before they read it. No task waits in a circle. */
TEST(every_interleaving_of_replicas_finds_them_too) {
  for (int replicas = 2; replicas <= DEVICES; replicas++)
    for (int devices = 1; devices * replicas <= DEVICES; devices++)
      for (int micros = 1; micros <= 4; micros *= 2)
        for (int kind = 0; kind < 12; kind++) {
          stream_spec spec = {.order = TWO_BW,
                              .devices = devices,
                              .micros = micros,
                              .replicas = replicas,
                              .last = kind % 3 == 0   ? 0
                                      : kind % 3 == 1 ? -1
                                                      : micros / 2,
                              .smaller = kind % 2 ? micros / 2 : 0,
                              .remat = (gp_remat)(kind % 3),
                              .skips = kind / 3 == 1,
                              .frozen = kind / 3 == 2,
                              .far = kind % 2};
          toy_planned p;
          make(&spec, &p, 0);
          CHECK_STATUS(p.status, GP_OK);
          if (p.status) continue;
          for (uint32_t seed = 1; seed <= 3; seed++) run(p.plan, &spec, 12, seed);
          prove(p.plan, !spec.frozen);
          toy_plan_free(&p);
        }
}

/* ---- figures --------------------------------------------------------------------------------- */

static void check_live(stream_order order, int devices, int micros, const int *live) {
  toy_planned p;
  make(&(stream_spec){.order = order, .devices = devices, .micros = micros}, &p, 0);
  for (int s = 0; s < devices; s++) {
    CHECK(p.plan->versions[s].live == live[s]);
    CHECK(p.plan->versions[s].stash_bytes ==
          (live[s] > 1 ? sizeof(float[TOY_WIDTH][TOY_WIDTH]) : 0));
  }
  toy_plan_free(&p);
}

TEST(live_versions_are_those_of_the_papers) {
  for (int micros = 1; micros <= 5; micros++) {
    check_live(PIPEDREAM, 4, micros, (int[]){4, 3, 2, 1});
    check_live(VERTICAL_SYNC, 4, micros, (int[]){4, 4, 4, 4});
    check_live(PIPEDREAM, 1, micros, (int[]){1});
  }
  for (int micros = 3; micros <= 5; micros++) check_live(TWO_BW, 4, micros, (int[]){2, 2, 2, 2});
}

TEST(ranges_repeat_when_the_pipeline_is_full) {
  toy_planned p;
  make(&(stream_spec){.order = PIPEDREAM, .devices = 4, .micros = 1}, &p, 0);
  const gp_ranges *r = &p.plan->ranges;
  CHECK(r->count == 7); /* full at the fourth; first versions are read until the seventh */
  for (int d = 0; d < 4; d++) CHECK(r->lag[d] == 3 - d);
  for (int j = 0; j < 7; j++)
    CHECK(r->known[j] == (j < 3 ? 0 : j - 2) && r->passed[j] == r->known[j]);
  toy_plan_free(&p);
  make(&(stream_spec){.order = TWO_BW, .devices = 4, .micros = 4}, &p, 0);
  r = &p.plan->ranges;
  CHECK(r->lag[0] == 1 && r->lag[3] == 0);
  CHECK(r->known[0] == 0 && r->known[1] == 1 && r->passed[1] == 4);
  toy_plan_free(&p);
  make(&(stream_spec){.order = LOOPED, .devices = 2, .micros = 3}, &p, 0);
  r = &p.plan->ranges;
  CHECK(r->count == 1 && r->lag[0] == 0 && r->known[0] == 1 && r->passed[0] == 3);
  toy_plan_free(&p);
}

/* Where gradients flow back the maker learns that its readers are done. So one slot per micro-batch
 * of the pipeline's depth is enough, however long the stream is. */
TEST(a_stream_needs_as_many_slots_as_the_pipeline_is_deep) {
  toy_planned p;
  make(&(stream_spec){.order = PIPEDREAM, .devices = 4, .micros = 1}, &p, 0);
  for (int32_t e = 0; e < p.plan->edge_count; e++) CHECK(p.plan->channels[e].slots <= 4);
  toy_plan_free(&p);
}

/* ---- what cannot be planned ------------------------------------------------------------------ */

TEST(no_failed_allocation_leaks) {
  static const stream_spec specs[] = {
      {.order = PIPEDREAM, .devices = 2, .micros = 2, .smaller = 1, .skips = true},
      {.order = TWO_BW, .devices = 2, .micros = 2, .remat = GP_REMAT_ALWAYS},
      {.order = CHIMERA, .devices = 2, .micros = 3, .smaller = 1},
      {.order = LOOPED, .devices = 2, .micros = 2},
      {.order = TWO_BW, .devices = 2, .micros = 2, .replicas = 2, .far = true},
  };
  for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
    size_t live = gp_memory().live;
    int failures = 0;
    for (uint64_t n = 1;; n++, failures++) {
      toy_planned p;
      make(&specs[i], &p, n);
      gp_status status = p.status;
      toy_plan_free(&p);
      CHECK(gp_memory().live == live);
      if (status == GP_OK) break;
      CHECK(status == GP_ENOMEM || status == GP_EINVAL); /* a parameter that could not be drawn */
    }
    CHECK(failures > 100);
  }
}

TEST_MAIN(every_interleaving_finds_its_values_slots_and_versions,
          every_interleaving_of_replicas_finds_them_too, live_versions_are_those_of_the_papers,
          ranges_repeat_when_the_pipeline_is_full,
          a_stream_needs_as_many_slots_as_the_pipeline_is_deep, no_failed_allocation_leaks)
