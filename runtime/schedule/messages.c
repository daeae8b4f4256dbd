/* schedule/messages.c - see messages.h.
 *
 * The order is that of torch.distributed.pipelining, _add_send_recv: in sweeps over the devices
 * each takes one action if what it needs was made; a message follows the action that makes it, at
 * both ends at once. So actions and messages have one order that holds for all devices: of the
 * devices that are not through, the one whose next event comes first in it never has to wait.
 */
#include "schedule/messages.h"

#include "base/memory.h"
#include "schedule/runner.h"
#include "schedule/verify/verify.h"

typedef struct lister {
  const gp_verify *v;
  gp_messages *out;
  int32_t ran; /* actions so far */
  size_t room;
} lister;

/* ---- finding them -------------------------------------------------------------------------- */

static bool is_backward(gp_act op) { return op != GP_ACT_F && op != GP_ACT_SEND_F; }

static gp_status add_message(lister *l, int32_t from, int32_t sender) {
  const gp_schedule *s = l->v->s;
  const gp_action *x = &s->actions[sender];
  const int32_t reader = gp_edges_reader(&l->v->edges, sender);
  if (reader < 0 || gp_action_is_on(s, reader, from)) return GP_OK;
  const bool backward = is_backward((gp_act)x->op);
  GP_TRY(
      gp_grow_array((size_t)l->out->count, &l->room, sizeof(gp_message), (void **)&l->out->list));
  l->out->list[l->out->count++] = (gp_message){.from = from,
                                               .to = gp_action_device(s, reader),
                                               .cut = x->stage - backward,
                                               .micro = x->micro,
                                               .backward = backward,
                                               .sender = sender,
                                               .reader = reader};
  return GP_OK;
}

static int32_t lacks(void *context, int32_t device, int32_t action) {
  (void)device;
  return gp_verify_blocker(((lister *)context)->v, action);
}

static gp_status ran(void *context, int32_t device, int32_t begin, int32_t end) {
  lister *l = context;
  for (int32_t a = begin; a < end; a++) l->out->action[l->ran++] = a;
  for (int32_t a = begin; a < end; a++) GP_TRY(add_message(l, device, a));
  return GP_OK;
}

static gp_status list_messages(lister *l, gp_verify *v) {
  const gp_schedule *s = v->s;
  size_t total = (size_t)s->first[s->device_count];
  GP_TRY(gp_verify_index(v));
  GP_TRY(gp_alloc_array(total + 1, sizeof(int32_t), (void **)&v->order));
  GP_TRY(gp_alloc_array(total + 1, sizeof(int32_t), (void **)&l->out->action));
  gp_runner runner = {.actions = s->actions,
                      .first = s->first,
                      .device_count = s->device_count,
                      .rule = GP_TURNS_SWEEP,
                      .order = v->order,
                      .context = l,
                      .lacks = lacks,
                      .ran = ran};
  GP_TRY(gp_runner_new(&runner));
  gp_status status = gp_runner_run(&runner, NULL);
  gp_runner_free(&runner);
  return status;
}

/* ---- pairs --------------------------------------------------------------------------------- */

static int32_t key_of(const gp_message *message, bool by_sender) {
  return by_sender ? message->from : message->to;
}

/* Sort indices by one of the two devices; equal ones keep their order. begin[devices + 1]. */
static void sort_by(const gp_messages *m, bool by_sender, const int32_t *from, int32_t *to,
                    int32_t *begin, int32_t devices) {
  for (int32_t d = 0; d <= devices; d++) begin[d] = 0;
  for (int32_t i = 0; i < m->count; i++) begin[key_of(&m->list[i], by_sender) + 1]++;
  for (int32_t d = 0; d < devices; d++) begin[d + 1] += begin[d];
  for (int32_t i = 0; i < m->count; i++)
    to[begin[key_of(&m->list[from[i]], by_sender)]++] = from[i];
}

static gp_status find_pairs(gp_messages *m) {
  size_t room = 0;
  for (int32_t i = 0; i < m->count; i++) {
    const gp_message *x = &m->list[m->by_pair[i]];
    gp_message_pair *last = m->pair_count ? &m->pairs[m->pair_count - 1] : NULL;
    if (!last || last->from != x->from || last->to != x->to) {
      GP_TRY(gp_grow_array((size_t)m->pair_count, &room, sizeof *m->pairs, (void **)&m->pairs));
      last = &m->pairs[m->pair_count++];
      *last = (gp_message_pair){.from = x->from, .to = x->to, .begin = i};
    }
    last->end = i + 1;
  }
  return GP_OK;
}

gp_status gp_messages_pair(gp_messages *m, int32_t devices) {
  int32_t *order, *begin;
  size_t count = (size_t)m->count;
  GP_TRY(gp_alloc_array(count + 1, sizeof(int32_t), (void **)&m->by_pair));
  GP_TRY(gp_alloc_array(count + (size_t)devices + 1, sizeof(int32_t), (void **)&order));
  begin = order + count;
  for (int32_t i = 0; i < m->count; i++) m->by_pair[i] = i;
  sort_by(m, false, m->by_pair, order, begin, devices);
  sort_by(m, true, order, m->by_pair, begin, devices);
  gp_free(order);
  return find_pairs(m);
}

/* ---- all of it ----------------------------------------------------------------------------- */

gp_status gp_schedule_messages(const gp_schedule *schedule, gp_messages *messages) {
  gp_schedule_fault fault;
  gp_verify v = {.s = schedule, .fault = &fault};
  lister l = {.v = &v, .out = messages};
  *messages = (gp_messages){0};
  gp_status status = list_messages(&l, &v);
  gp_verify_free(&v);
  gp_free(v.order);
  if (status) gp_messages_free(messages);
  return status;
}

void gp_messages_free(gp_messages *messages) {
  gp_free(messages->list);
  gp_free(messages->by_pair);
  gp_free(messages->pairs);
  gp_free(messages->action);
  *messages = (gp_messages){0};
}
