/* optim/gradients.c - see gradients.h. */
#include "optim/gradients.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "optim/optim.h"

enum { PIECE = 32768 }; /* elements that one thread looks at or scales at a time */

/* ---- making -------------------------------------------------------------------------------- */

/* Allocate the sums. A list that lives as long as its pipeline has them where a GPU copies to
 * without a staging buffer. */
static gp_status take_sums(gp_gradients *list, size_t count, bool stays) {
  const size_t bytes = count * sizeof *list->sums;
  if (!stays) return gp_alloc_array(count, sizeof *list->sums, (void **)&list->sums);
  list->stays = true;
  GP_TRY(gp_lane_host_alloc(list->lane, bytes, (void **)&list->sums));
  memset(list->sums, 0, bytes);
  return GP_OK;
}

static void give_sums(gp_gradients *list) {
  if (list->stays)
    gp_lane_host_free(list->lane, list->sums);
  else
    gp_free(list->sums);
}

static gp_status take_scratch(gp_gradients *list) {
  size_t wanted = list->lane->facts->sum_scratch;
  if (!wanted || !list->count) return GP_OK;
  list->scratch_bytes = wanted + (size_t)list->count * sizeof(double);
  return gp_lane_alloc(list->lane, list->scratch_bytes, &list->scratch);
}

static gp_status make_list(const gp_lane *lane, int count, bool stays, gp_gradients *list) {
  size_t n = (size_t)count + 1;
  *list = (gp_gradients){.lane = lane};
  GP_TRY(gp_alloc_array(n, sizeof *list->runs, (void **)&list->runs));
  GP_TRY(gp_alloc_array(n, sizeof *list->first, (void **)&list->first));
  return take_sums(list, n, stays);
}

static void append(gp_gradients *list, const gp_lane_run *run) {
  int i = list->count++;
  list->runs[i] = *run;
  list->first[i + 1] = list->first[i] + (run->n + PIECE - 1) / PIECE;
}

gp_status gp_gradients_new(const gp_lane *lane, const gp_lane_run *runs, int count,
                           gp_gradients *list) {
  gp_status status = make_list(lane, count, true, list);
  for (int i = 0; !status && i < count; i++) append(list, &runs[i]);
  if (!status) status = take_scratch(list);
  if (status) gp_gradients_free(list);
  return status;
}

gp_status gp_gradients_some(const gp_gradients *all, const bool *among, gp_gradients *some) {
  gp_status status = make_list(all->lane, all->count, false, some);
  for (int i = 0; !status && i < all->count; i++)
    if (among[i]) append(some, &all->runs[i]);
  some->scratch = all->scratch;
  if (status) gp_gradients_free_some(some);
  return status;
}

void gp_gradients_free(gp_gradients *list) {
  if (list->scratch) gp_lane_free(list->lane, list->scratch, list->scratch_bytes);
  gp_gradients_free_some(list);
}

void gp_gradients_free_some(gp_gradients *some) {
  gp_free(some->runs);
  gp_free(some->first);
  give_sums(some);
  *some = (gp_gradients){0};
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Some elements of one tensor. */
typedef struct part {
  int run;
  int64_t n;
  void *data;
} part;

/* Find the piece of that number in all tensors. */
static part part_of(const gp_gradients *list, int64_t piece) {
  int low = 0, high = list->count;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (list->first[middle] <= piece)
      low = middle;
    else
      high = middle;
  }
  while (list->first[low + 1] <= piece) low++; /* pass over tensors without elements */
  const gp_lane_run *run = &list->runs[low];
  int64_t begin = (piece - list->first[low]) * PIECE, n = run->n - begin;
  return (part){low, n < PIECE ? n : PIECE,
                (char *)run->data + (size_t)begin * gp_dtype_size(run->dtype)};
}

/* What the threads of one call share. */
typedef struct work {
  gp_gradients *list;
  double factor;
  atomic_bool bad; /* some element is not finite */
} work;

/* Describe to the lane what to do with every piece. Sums begin at 0; scaling leaves them alone. */
static gp_lane_sweep sweep_of(gp_gradients *list, int64_t pieces, gp_piece piece, work *w) {
  for (int i = 0; i < list->count && !w->factor; i++) list->sums[i] = 0;
  return (gp_lane_sweep){.runs = list->runs,
                         .count = list->count,
                         .pieces = pieces,
                         .piece = piece,
                         .context = w,
                         .factor = w->factor,
                         .sums = list->sums,
                         .scratch = list->scratch};
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* In f64, squares of finite numbers may overflow, which must not pass for a gradient that
 * is not finite. */
static gp_status sum_tensor(void *context, int64_t index, int thread) {
  const work *w = context;
  const gp_lane_run *run = &w->list->runs[index];
  double sum = gp_optim_sum_squares(run->dtype, run->n, run->data);
  (void)thread;
  if (!isfinite(sum) && gp_optim_is_finite(run->dtype, run->n, run->data)) sum = DBL_MAX;
  w->list->sums[index] = sum;
  return GP_OK;
}

/* A tensor is one piece, so that its sum has one order. */
gp_status gp_gradients_squares(gp_gradients *list) {
  work w = {.list = list};
  gp_lane_sweep sweep = sweep_of(list, list->count, sum_tensor, &w);
  return list->lane->sums->squares(list->lane, &sweep);
}

/* The first piece with an element that is not finite ends the search. */
static gp_status look_at_piece(void *context, int64_t index, int thread) {
  work *w = context;
  (void)thread;
  if (atomic_load_explicit(&w->bad, memory_order_relaxed)) return GP_OK;
  part p = part_of(w->list, index);
  if (gp_optim_is_finite(w->list->runs[p.run].dtype, p.n, p.data)) return GP_OK;
  atomic_store_explicit(&w->bad, true, memory_order_relaxed);
  return GP_OK;
}

/* On a queue, the sums of squares take no longer. */
gp_status gp_gradients_look(gp_gradients *list) {
  work w = {.list = list};
  gp_lane_sweep sweep = sweep_of(list, list->first[list->count], look_at_piece, &w);
  GP_TRY(list->lane->sums->squares(list->lane, &sweep));
  for (int i = 0; atomic_load(&w.bad) && i < list->count; i++) list->sums[i] = INFINITY;
  return GP_OK;
}

/* For either function above: a sum that is not finite means that its tensor is not. */
bool gp_sums_are_finite(const double *sums, int count) {
  for (int i = 0; i < count; i++)
    if (!isfinite(sums[i])) return false;
  return true;
}

bool gp_gradients_are_finite(const gp_gradients *list) {
  return gp_sums_are_finite(list->sums, list->count);
}

/* ---- scale --------------------------------------------------------------------------------- */

static gp_status scale_piece(void *context, int64_t index, int thread) {
  const work *w = context;
  part p = part_of(w->list, index);
  (void)thread;
  gp_optim_scale(w->list->runs[p.run].dtype, p.n, p.data, w->factor);
  return GP_OK;
}

gp_status gp_gradients_scale(const gp_gradients *list, double factor) {
  work w = {.list = (gp_gradients *)list, .factor = factor};
  gp_lane_sweep sweep = sweep_of(w.list, list->first[list->count], scale_piece, &w);
  return list->lane->sums->scale(list->lane, &sweep);
}
