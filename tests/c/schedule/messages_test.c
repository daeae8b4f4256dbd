/* tests/c/schedule/messages_test.c - messages of published schedules: complete, in one order for
 * both ends, free of deadlocks.
 *
 * Each device is run by hand along its row of gp_schedule_comms, where a send ends only when its
 * receive has come. */
#include "schedule/messages.h"

#include <stdlib.h>

#include "base/memory.h"
#include "published.h"
#include "schedule/edges.h"
#include "schedule_rows.h"
#include "test.h"

static bool is_send(const gp_action *x) { return x->op == GP_ACT_SEND_F || x->op == GP_ACT_SEND_B; }
static bool is_receive(const gp_action *x) {
  return x->op == GP_ACT_RECV_F || x->op == GP_ACT_RECV_B;
}

/* The end of a message as it stands in rows. */
static gp_action end_of(const gp_message *m, bool sends) {
  const bool after = sends == m->backward; /* the stage behind the cut */
  const gp_act op = m->backward ? (sends ? GP_ACT_SEND_B : GP_ACT_RECV_B)
                                : (sends ? GP_ACT_SEND_F : GP_ACT_RECV_F);
  return (gp_action){.op = (uint8_t)op, .stage = m->cut + after, .micro = m->micro};
}

static bool is_same(const gp_action *x, const gp_action *y) {
  return x->op == y->op && x->stage == y->stage && x->micro == y->micro;
}

/* ---- complete ------------------------------------------------------------------------------ */

/* Every action whose value another device reads is the sender of one message, with that reader. */
static void check_complete(const gp_schedule *s, const gp_messages *m) {
  gp_edges edges = {.s = s};
  int32_t total = s->first[s->device_count], crossing = 0;
  int32_t *sent = calloc((size_t)total + 1, sizeof *sent);
  CHECK_STATUS(gp_edges_enter_all(&edges), GP_OK);
  for (int32_t i = 0; i < m->count; i++) sent[m->list[i].sender] = i + 1;
  for (int32_t a = 0; a < total; a++) {
    int32_t reader = s->actions[a].stage < 0 ? -1 : gp_edges_reader(&edges, a);
    bool crosses = reader >= 0 && gp_action_device(s, reader) != gp_action_device(s, a);
    CHECK(crosses == (sent[a] > 0));
    if (!crosses || !sent[a]) continue;
    const gp_message *x = &m->list[sent[a] - 1];
    crossing++;
    CHECK(x->reader == reader && x->micro == s->actions[a].micro);
    CHECK(x->from == gp_action_device(s, a) && x->to == gp_action_device(s, reader));
    CHECK(s->actions[a].stage == x->cut + x->backward);
    CHECK(s->actions[reader].stage == x->cut + !x->backward);
  }
  CHECK(crossing == m->count);
  gp_edges_free(&edges);
  free(sent);
}

/* ---- one order ----------------------------------------------------------------------------- */

/* The n-th send or receive of a row that belongs to the pair; NULL: there are not so many. */
static const gp_action *nth_of(const gp_schedule *with, const gp_message_pair *pair, bool sends,
                               const gp_messages *m, int32_t n) {
  int count;
  const gp_action *row = gp_schedule_get(with, sends ? pair->from : pair->to, &count);
  for (int i = 0; i < count; i++) {
    if (!(sends ? is_send(&row[i]) : is_receive(&row[i]))) continue;
    for (int32_t k = pair->begin; k < pair->end; k++) {
      gp_action end = end_of(&m->list[m->by_pair[k]], sends);
      if (is_same(&end, &row[i]) && n-- == 0) return &row[i];
    }
  }
  return NULL;
}

/* In the rows of both ends the messages of a pair have the order of by_pair. */
static void check_order(const gp_schedule *with, const gp_messages *m) {
  int32_t seen = 0;
  for (int32_t p = 0; p < m->pair_count; p++) {
    const gp_message_pair *pair = &m->pairs[p];
    CHECK(pair->begin == seen && pair->begin < pair->end);
    seen = pair->end;
    for (int32_t k = pair->begin; k < pair->end; k++) {
      const gp_message *x = &m->list[m->by_pair[k]];
      CHECK(x->from == pair->from && x->to == pair->to);
      CHECK(k == pair->begin || m->by_pair[k - 1] < m->by_pair[k]);
      for (int sends = 0; sends < 2; sends++) {
        const gp_action *there = nth_of(with, pair, sends, m, k - pair->begin);
        gp_action end = end_of(x, sends);
        CHECK(there && is_same(there, &end));
      }
    }
  }
  CHECK(seen == m->count);
}

/* ---- no deadlock --------------------------------------------------------------------------- */

static const gp_action *at(const gp_schedule *with, const int32_t *next, int32_t device) {
  return next[device] < with->first[device + 1] ? &with->actions[next[device]] : NULL;
}

/* Moves a device by one action, or together with its peer by one message. */
static bool move(const gp_schedule *with, const gp_messages *m, int32_t *next, int32_t device) {
  const gp_action *own = at(with, next, device);
  if (!own || is_receive(own)) return false;
  if (!is_send(own)) return next[device]++, true;
  for (int32_t i = 0; i < m->count; i++) {
    gp_action send = end_of(&m->list[i], true), receive = end_of(&m->list[i], false);
    if (m->list[i].from != device || !is_same(&send, own)) continue;
    const gp_action *other = at(with, next, m->list[i].to);
    if (!other || !is_same(other, &receive)) return false;
    next[device]++, next[m->list[i].to]++;
    return true;
  }
  CHECK(!"a send without a message");
  return false;
}

static void check_rendezvous(const gp_schedule *with, const gp_messages *m) {
  int32_t *next = calloc((size_t)with->device_count, sizeof *next);
  for (int32_t d = 0; d < with->device_count; d++) next[d] = with->first[d];
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t d = 0; d < with->device_count; d++)
      while (move(with, m, next, d)) moved = true;
  }
  for (int32_t d = 0; d < with->device_count; d++) CHECK(next[d] == with->first[d + 1]);
  free(next);
}

/* ---- tests --------------------------------------------------------------------------------- */

/* The schedule with its sends and receives; making it verifies that values are made before they are
 * sent and received before they are read. */
static gp_schedule *with_comms(const gp_schedule *s) {
  gp_rows *rows;
  gp_schedule *with = NULL;
  CHECK_STATUS(gp_schedule_comms(s, &rows), GP_OK);
  gp_schedule_spec spec = {.rows = rows,
                           .stage_count = s->stage_count,
                           .copy_count = s->copy_count,
                           .placement = s->placement,
                           .batch = s->batch};
  CHECK_STATUS(gp_schedule_new(&spec, &with, NULL), GP_OK);
  gp_rows_free(rows);
  return with;
}

static void check(const gp_schedule *s, const gp_schedule *with) {
  gp_messages messages;
  CHECK_STATUS(gp_schedule_messages(s, &messages), GP_OK);
  CHECK_STATUS(gp_messages_pair(&messages, s->device_count), GP_OK);
  check_complete(s, &messages);
  check_order(with, &messages);
  check_rendezvous(with, &messages);
  gp_messages_free(&messages);
}

TEST(published_schedules_agree_and_end) {
  published p = {.file = fopen(PUBLISHED_ROWS, "r")};
  gp_schedule *s;
  int count = 0;
  CHECK(p.file);
  if (!p.file) return;
  for (; published_next(&p, &s) == GP_OK && s; count++) {
    int before = test_failures;
    gp_schedule *with = with_comms(s);
    check(s, with);
    check(with, with); /* which names its messages itself */
    if (test_failures > before)
      printf("  in %s, %d devices, %d micro-batches\n", p.name, p.devices, p.micros);
    gp_schedule_free(with);
    gp_schedule_free(s);
  }
  CHECK(feof(p.file));
  CHECK(count > 600);
  fclose(p.file);
}

/* One message in each direction for each micro-batch, and none within a device. */
TEST(two_stages_send_each_other) {
  const char *rows[] = {"0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"};
  const int32_t placement[] = {0, 1}, alone[] = {0, 0};
  gp_schedule *s;
  gp_messages m;
  CHECK_STATUS(schedule_of_rows(&(gp_schedule_spec){.stage_count = 2, .placement = placement}, rows,
                                2, &s, NULL),
               GP_OK);
  CHECK_STATUS(gp_schedule_messages(s, &m), GP_OK);
  CHECK_STATUS(gp_messages_pair(&m, 2), GP_OK);
  CHECK(m.count == 4 && m.pair_count == 2);
  CHECK(m.pairs[0].from == 0 && m.pairs[0].to == 1 && m.pairs[1].from == 1 && m.pairs[1].to == 0);
  gp_messages_free(&m);
  gp_schedule_free(s);
  CHECK_STATUS(schedule_of_rows(&(gp_schedule_spec){.stage_count = 2, .placement = alone},
                                (const char *[]){"0F0,1F0,1B0,0B0"}, 1, &s, NULL),
               GP_OK);
  CHECK_STATUS(gp_schedule_messages(s, &m), GP_OK);
  CHECK_STATUS(gp_messages_pair(&m, 1), GP_OK);
  CHECK(m.count == 0 && m.pair_count == 0);
  gp_messages_free(&m);
  gp_schedule_free(s);
}

TEST_MAIN(published_schedules_agree_and_end, two_stages_send_each_other)
