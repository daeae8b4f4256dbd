/* schedule/access/away.c - after which action of a device an F's values have left for the host's
 * memory, and before which one they begin to come back. */
#include "base/memory.h"
#include "schedule/access/away.h"
#include "schedule/away.h"
#include "schedule/edges.h"

typedef struct finder {
  const gp_schedule *s;
  const gp_away_list *out;
  int32_t first;          /* action of the device */
  int32_t *work, *opened; /* opened: per (stage, micro-batch), place of its F in work + 1; or 0 */
  int32_t count;          /* of work */
} finder;

/* Note what goes between the F at a place and its first backward action, the last of the work. */
static void note(const finder *f, int32_t forward) {
  const int32_t *work = f->work, own = work[forward];
  const bool recomputes = f->s->actions[f->first + work[forward + 1]].op == GP_ACT_R;
  gp_away_span span;
  if (!gp_away_find(forward, f->count - 1, recomputes, &span)) return;
  f->out->leaves[work[span.held]] = own + 1;
  f->out->fetches[work[span.fetch]] = own + 1;
}

static void find(finder *f, int32_t count) {
  for (int32_t a = 0; a < count; a++) {
    const gp_action *x = &f->s->actions[f->first + a];
    if (x->stage < 0 || x->op > GP_ACT_R) continue;
    int32_t *at = &f->opened[gp_edges_cell(f->s, x->stage, x->micro)];
    f->work[f->count++] = a;
    if (x->op != GP_ACT_F && *at) note(f, *at - 1);
    *at = x->op == GP_ACT_F ? f->count : 0;
  }
}

gp_status gp_away_list_new(const gp_schedule *s, int32_t device, gp_away_list *list) {
  const int32_t first = s->first[device], count = s->first[device + 1] - first;
  const size_t cells = (size_t)s->stage_count * (size_t)s->micro_count;
  finder f = {.s = s, .out = list, .first = first};
  GP_TRY(gp_alloc_array(3 * (size_t)count + cells + 1, sizeof *f.work, (void **)&list->leaves));
  list->fetches = list->leaves + count;
  f.work = list->fetches + count;
  f.opened = f.work + count;
  find(&f, count);
  return GP_OK;
}

void gp_away_list_free(gp_away_list *list) { gp_free(list->leaves); }
