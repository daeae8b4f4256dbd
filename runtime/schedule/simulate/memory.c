/* schedule/simulate/memory.c - what the devices of a schedule hold: activations, bytes, versions of
 * weights.
 *
 * Only the order of a device's own list matters here, not the times. An activation is held from F
 * (from R where there is one) to the last backward action of its stage and micro-batch; joined
 * actions hold all that any of them needs.
 */
#include "base/memory.h"
#include "schedule/simulate/simulate.h"

/* Of one device while its list is followed. */
typedef struct held {
  int32_t live;
  double bytes;
} held;

static double bytes_of(const double *list, int32_t stage) { return list ? list[stage] : 0; }

/* Does anything read the activations of this F later? Not where only forward passes run, nor where
 * they are computed again. */
static bool is_kept(const gp_sim *r, const gp_action *x) {
  return gp_edges_backward(r->edges, x->stage, x->micro) >= 0 &&
         gp_edges_at(r->edges, GP_ACT_R, x->stage, x->micro) < 0;
}

/* Bytes that I gives back: what W does not read. */
static double freed_by_input(const gp_costs *costs, int32_t stage) {
  double all = bytes_of(costs->activation, stage);
  if (!costs->after_input || costs->after_input[stage] > all) return 0;
  return all - costs->after_input[stage];
}

static void hold(const gp_sim *r, const gp_action *x, held *now) {
  if (x->op != GP_ACT_F && x->op != GP_ACT_R) return;
  now->live++;
  now->bytes += bytes_of(r->costs->activation, x->stage);
}

/* What is given back when the action has ended. */
static void let_go(const gp_sim *r, const gp_action *x, held *now) {
  const gp_costs *c = r->costs;
  double all = bytes_of(c->activation, x->stage >= 0 ? x->stage : 0);
  bool forward = x->op == GP_ACT_F && !is_kept(r, x);
  if (x->op == GP_ACT_I) now->bytes -= freed_by_input(c, x->stage);
  if (x->op == GP_ACT_W) now->bytes += freed_by_input(c, x->stage);
  if (forward || x->op == GP_ACT_B || x->op == GP_ACT_W) {
    now->live--;
    now->bytes -= all;
  }
}

static void follow(const gp_sim *r, int32_t device, gp_device_load *load) {
  const gp_schedule *s = r->schedule;
  held now = {.bytes = load->peak_bytes};
  for (int32_t first = s->first[device]; first < s->first[device + 1];) {
    int32_t end = gp_schedule_group_end(s, first);
    for (int32_t a = first; a < end; a++) hold(r, &s->actions[a], &now);
    if (now.live > load->peak_live) load->peak_live = now.live;
    if (now.bytes > load->peak_bytes) load->peak_bytes = now.bytes;
    for (int32_t a = first; a < end; a++) let_go(r, &s->actions[a], &now);
    first = end;
  }
}

/* ---- versions of the weights --------------------------------------------------------------- */

/* Scratch: per stage, and per action of the longest list. */
typedef struct versions {
  int32_t *at;     /* per stage: the oldest version needed later, then the newest there is */
  int32_t *most;   /* per stage: how many there were at once */
  int32_t *oldest; /* per action: the oldest that it or a later one of its stage names */
} versions;

static void look_ahead(const gp_schedule *s, int32_t device, const versions *v) {
  for (int32_t stage = 0; stage < s->stage_count; stage++) v->at[stage] = INT32_MAX;
  for (int32_t a = s->first[device + 1]; a-- > s->first[device];) {
    const gp_action *x = &s->actions[a];
    if (x->stage < 0) continue;
    if (x->op != GP_ACT_U && x->version >= 0 && x->version < v->at[x->stage])
      v->at[x->stage] = x->version;
    v->oldest[a - s->first[device]] = v->at[x->stage];
  }
}

/* All from the oldest needed to the newest are held; an update makes one more. */
static void count_versions(const gp_schedule *s, int32_t device, const versions *v) {
  look_ahead(s, device, v);
  for (int32_t stage = 0; stage < s->stage_count; stage++) {
    v->at[stage] = 0;
    v->most[stage] = 1;
  }
  for (int32_t a = s->first[device]; a < s->first[device + 1]; a++) {
    const gp_action *x = &s->actions[a];
    if (x->stage < 0) continue;
    int32_t *newest = &v->at[x->stage], oldest = v->oldest[a - s->first[device]];
    if (x->op == GP_ACT_U) *newest = x->micro + 1;
    if (oldest < *newest && *newest - oldest >= v->most[x->stage])
      v->most[x->stage] = *newest - oldest + 1;
  }
}

/* Each stage of the device has room for as many versions as it ever holds. */
static void reside(const gp_sim *r, int32_t device, const versions *v) {
  const gp_schedule *s = r->schedule;
  gp_device_load *load = &r->result->loads[device];
  load->versions = 1;
  if (s->batch > 0) count_versions(s, device, v);
  for (int32_t stage = 0; stage < s->stage_count; stage++) {
    if (!gp_schedule_holds(s, device, stage)) continue;
    int32_t most = s->batch > 0 ? v->most[stage] : 1;
    if (most > load->versions) load->versions = most;
    load->peak_bytes += bytes_of(r->costs->resident, stage);
    load->peak_bytes += (most - 1) * bytes_of(r->costs->version, stage);
  }
}

static gp_status allocate(const gp_schedule *s, versions *v) {
  int32_t longest = 0;
  for (int32_t d = 0; d < s->device_count; d++)
    if (s->first[d + 1] - s->first[d] > longest) longest = s->first[d + 1] - s->first[d];
  GP_TRY(gp_alloc_array((size_t)s->stage_count, sizeof *v->at, (void **)&v->at));
  GP_TRY(gp_alloc_array((size_t)s->stage_count, sizeof *v->most, (void **)&v->most));
  return gp_alloc_array((size_t)longest + 1, sizeof *v->oldest, (void **)&v->oldest);
}

gp_status gp_sim_memory(const gp_sim *run) {
  const gp_schedule *s = run->schedule;
  versions v = {0};
  gp_status status = allocate(s, &v);
  for (int32_t d = 0; !status && d < s->device_count; d++) {
    reside(run, d, &v);
    follow(run, d, &run->result->loads[d]);
  }
  gp_free(v.at);
  gp_free(v.most);
  gp_free(v.oldest);
  return status;
}
