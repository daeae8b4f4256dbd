/* engine/run/edge.c - what a task does for its edges before and after its work.
 *
 * Capacities are sized so that acquiring never waits in a training step (plan/edge/capacity.c).
 * Between two queues a link's word says that work is enqueued; the link itself makes one queue wait
 * for the other. After a run is given up, tasks pass through without calling a link: what a link
 * began then would be ordered after nothing. */
#include "engine/run/edge.h"

#include "device/link/ranks/credits.h"
#include "device/link/pool.h"
#include "engine/state/pipeline.h"
#include "engine/worker/worker.h"

/* ---- before -------------------------------------------------------------------------------- */

/* One use of an edge by one task, to wait for. */
typedef struct wait {
  gp_worker *worker;
  const gp_edge_use *use;
  const gp_bound_use *bound;
  gp_link_turn turn;
} wait;

/* Are all last uses of the rounds before released? */
static bool is_released(const wait *w) {
  const gp_link_word *word = &w->bound->channel->words[w->turn.slot];
  return atomic_load(&word->released) >= w->turn.round * w->bound->parties;
}

/* Is the slot free: is it released, and do all links agree? */
static gp_status try_acquire(const wait *w, bool *ready) {
  const gp_bound_channel *channel = w->bound->channel;
  if (channel->credits && !is_released(w)) gp_credits_take(channel->credits);
  *ready = is_released(w);
  for (int32_t i = 0; !w->bound->plain && *ready && i < channel->link_count; i++)
    GP_TRY(gp_link_acquire(channel->links[i].link, &w->worker->lane, w->turn, ready));
  return GP_OK;
}

static gp_status try_use(void *context, bool *ready) {
  const wait *w = context;
  return w->use->acquire ? try_acquire(w, ready) : gp_link_receive(w->bound->link, w->turn, ready);
}

/* Wait until a use is ready, or the run is given up. */
static gp_status wait_for(const wait *w, bool *ready) {
  gp_link_word *words = &w->bound->channel->words[w->turn.slot];
  if (!w->bound->plain) return gp_worker_try(w->worker, try_use, (void *)w, ready);
  /* the words of a plain edge say everything, so the worker spins on one word only */
  if (w->use->acquire)
    *ready = gp_worker_await(w->worker, &words->released, w->turn.round * w->bound->parties);
  else
    *ready = gp_worker_await(w->worker, &words->published, w->turn.round + 1);
  return GP_OK;
}

gp_status gp_edge_await(gp_worker *worker, const gp_edge_use *use, const gp_bound_use *bound,
                        bool *ready) {
  wait w = {.worker = worker, .use = use, .bound = bound, .turn = bound->turn};
  *ready = false;
  if (atomic_load_explicit(&worker->pipeline->watch.given_up, memory_order_relaxed)) return GP_OK;
  GP_TRY(try_use(&w, ready));
  return *ready ? GP_OK : wait_for(&w, ready);
}

/* Does the task use the edge now? A step edge that does not turn it uses only as it is stored; when
 * a stream repeats the task, the value is there already. */
static bool is_used(const gp_plan *plan, const gp_edge_use *use, const gp_task_run *r) {
  const gp_step_edge *once = gp_plan_step_edge(plan, use->edge);
  return !once || r->micro == r->task->micro || gp_step_turns(plan, once);
}

/* Wait for a task's uses. early: only for slots, and only if a link has to be called. */
static gp_status await_uses(gp_worker *worker, const gp_task_run *r, bool early,
                            gp_edges_state *state) {
  const gp_run *run = &worker->pipeline->run;
  const gp_bound_use *bound = gp_binding_uses(run->binding, r->task);
  bool ready = !atomic_load_explicit(&worker->pipeline->watch.given_up, memory_order_relaxed);
  *state = GP_EDGES_GIVEN_UP;
  bool waited = false;
  for (int32_t u = 0; ready && u < r->task->use_count; u++) {
    const gp_edge_use *use = &r->task->uses[u];
    const bool asks = early ? use->acquire && !bound[u].plain : use->wait || use->acquire;
    if (!asks || !is_used(run->plan, use, r)) continue;
    wait w = {.worker = worker,
              .use = use,
              .bound = &bound[u],
              .turn = gp_binding_turn_of(run->plan, r->task, u, &bound[u], r->micro)};
    GP_TRY(try_use(&w, &ready));
    if (ready) continue;
    waited = true;
    GP_TRY(wait_for(&w, &ready));
  }
  if (ready) *state = waited ? GP_EDGES_AWAITED : GP_EDGES_WERE_READY;
  return GP_OK;
}

gp_status gp_edges_await(gp_worker *worker, const gp_task_run *r, gp_edges_state *state) {
  return await_uses(worker, r, false, state);
}

gp_status gp_edges_acquire(gp_worker *worker, const gp_task_run *r, gp_edges_state *state) {
  return await_uses(worker, r, true, state);
}

/* ---- after --------------------------------------------------------------------------------- */

/* Wake the device's worker if it sleeps; one that spins sees the word itself. */
static void ring(const gp_worker *worker, int32_t device) {
  if (device != worker->device && gp_device_is_here(worker->pipeline, device))
    gp_worker_ring(&worker->pipeline->workers[device]);
}

static void keep(gp_status status, gp_status *first) {
  if (status && !*first) *first = status;
}

/* Publish a value on all links of its edge. */
gp_status gp_edge_publish(const gp_worker *worker, const gp_bound_use *bound, gp_link_turn turn) {
  const gp_bound_channel *channel = bound->channel;
  const gp_bound_link *links = channel->links;
  const int32_t count = channel->link_count;
  gp_status first = GP_OK;
  for (int32_t i = 0; i < count; i++) keep(gp_link_publish(links[i].link, turn), &first);
  /* after all links: a reader that saw the word earlier would wait for the round before */
  gp_link_note_published(channel->words, turn);
  for (int32_t i = 0; i < count; i++) ring(worker, links[i].reader);
  return first;
}

const gp_edge_use *gp_edges_early(const gp_worker *worker, const gp_task *task, int32_t done) {
  const int32_t next = gp_task_first_early(task) + worker->early;
  const bool any = next < task->use_count && task->uses[next].early <= done;
  return any ? &task->uses[next] : NULL;
}

gp_status gp_edges_publish_early(gp_worker *worker, const gp_task_run *r, const gp_edge_use *use) {
  const gp_run *run = &worker->pipeline->run;
  const int32_t u = (int32_t)(use - r->task->uses);
  const gp_bound_use *bound = gp_binding_uses(run->binding, r->task) + u;
  worker->early++;
  return gp_edge_publish(worker, bound, gp_binding_turn_of(run->plan, r->task, u, bound, r->micro));
}

gp_status gp_edge_release(const gp_worker *worker, const gp_bound_use *bound, gp_link_turn turn) {
  gp_status first = gp_link_release(bound->link, turn);
  if (bound->channel->credits && !bound->link->tells)
    keep(gp_credits_tell(bound->channel->credits, bound->link, turn.slot), &first);
  ring(worker, bound->channel->maker);
  return first;
}

gp_status gp_edges_publish(gp_worker *worker, const gp_task_run *r) {
  const gp_run *run = &worker->pipeline->run;
  const gp_bound_use *bound = gp_binding_uses(run->binding, r->task);
  const int32_t early = gp_task_first_early(r->task);
  gp_status first = GP_OK;
  for (int32_t u = 0; u < r->task->use_count; u++) {
    const gp_edge_use *use = &r->task->uses[u];
    const bool was_early = u >= early && u < early + worker->early;
    if ((!use->publish && !use->release) || was_early || !is_used(run->plan, use, r)) continue;
    gp_link_turn turn = gp_binding_turn_of(run->plan, r->task, u, &bound[u], r->micro);
    if (use->publish) keep(gp_edge_publish(worker, &bound[u], turn), &first);
    if (use->release) keep(gp_edge_release(worker, &bound[u], turn), &first);
  }
  return first;
}

/* ---- polling ------------------------------------------------------------------------------- */

static const gp_bound_device *ends_of(const gp_worker *worker) {
  const gp_binding *binding = worker->pipeline->run.binding;
  return &binding->devices[worker->device];
}

/* Nanoseconds until a waiting worker looks again if some of its links wake no worker. */
enum { NAP_NS = 20000 };

int64_t gp_edges_idle(gp_worker *worker) {
  const gp_bound_device *device = ends_of(worker);
  if (device->end_count) gp_edges_poll(worker);
  return device->quiet ? NAP_NS : GP_WAIT_NS;
}

gp_link_left gp_edges_poll(gp_worker *worker) {
  const gp_bound_device *device = ends_of(worker);
  gp_link_left most = GP_LINK_NOTHING_LEFT;
  for (int32_t i = 0; i < device->end_count; i++) {
    gp_link *link = device->ends[i].link;
    gp_link_left left = GP_LINK_NOTHING_LEFT;
    if (!link->ops->poll) continue;
    gp_status status = link->ops->poll(link, device->ends[i].end, &left);
    /* a broken link fails the run before its first task: it does not tell what it has lost */
    if (status) gp_run_fail(&worker->pipeline->run, -1, status, gp_error_text());
    if (!status && left > most) most = left;
  }
  return most;
}

static gp_status nothing_left(void *context, bool *ready) {
  const gp_worker *worker = context;
  const gp_run *run = &worker->pipeline->run;
  bool first_half = run->plan->kind == GP_PLAN_SPLIT && !run->backward_half;
  *ready = gp_edges_poll(context) <= (first_half ? GP_LINK_CREDITS_LEFT : GP_LINK_NOTHING_LEFT);
  return GP_OK;
}

gp_status gp_edges_flush(gp_worker *worker) {
  return gp_link_pool_flush(worker->pipeline->run.binding->pool, &worker->lane);
}

gp_status gp_edges_finish(gp_worker *worker) {
  const gp_bound_device *device = ends_of(worker);
  /* other ranks wait for what the queue still has to send */
  gp_status first = gp_edges_flush(worker);
  bool ready = true;
  if (device->end_count) keep(gp_worker_try(worker, nothing_left, worker, &ready), &first);
  for (int32_t i = 0; i < device->end_count; i++) {
    gp_link *link = device->ends[i].link;
    if (!ready && link->ops->give_up) link->ops->give_up(link, device->ends[i].end);
    if (gp_run_failed(&worker->pipeline->run) && link->ops->settle)
      keep(link->ops->settle(link, device->ends[i].end), &first);
  }
  return first;
}
