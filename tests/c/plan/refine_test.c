/* tests/c/plan/refine_test.c - lists are refined until they fit and no change of one layer helps,
 * judged by a function that knows nothing of models. */
#include "base/memory.h"
#include "plan/refine/refine.h"
#include "test.h"

enum { LAYERS = 7, OPTIONS = 3, CHOICES = OPTIONS + 1, DRAWS = 200 };

/* What a layer takes by choice; the last one runs it again. */
typedef struct model {
  size_t bytes[LAYERS][CHOICES];
  double seconds[LAYERS][CHOICES];
} model;

static uint64_t seed = 1;

static int draw(int below) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((seed >> 33) % (uint64_t)below);
}

static void draw_model(model *m) {
  for (int l = 0; l < LAYERS; l++)
    for (int k = 0; k < CHOICES; k++) {
      m->bytes[l][k] = (size_t)(k ? (int)m->bytes[l][k - 1] / (1 + draw(3)) : 200 + draw(100));
      m->seconds[l][k] = k ? m->seconds[l][k - 1] + draw(10) : 10;
    }
}

static gp_worth sum(const model *m, const int choice[LAYERS]) {
  gp_worth worth = {0};
  for (int l = 0; l < LAYERS; l++) {
    worth.bytes += m->bytes[l][choice[l]];
    worth.seconds += m->seconds[l][choice[l]];
  }
  return worth;
}

static void read_choices(const gp_remat_list *list, int choice[LAYERS]) {
  bool again[LAYERS] = {false};
  int next = LAYERS - 1;
  for (int32_t i = 0; i < list->count; i++) {
    const gp_remat_step step = list->steps[i];
    if (step.act != GP_REMAT_BACKWARD) {
      CHECK(!again[step.layer] && step.layer <= next);
      again[step.layer] = true;
      continue;
    }
    CHECK(step.layer == next);
    choice[next--] = again[step.layer] ? OPTIONS : step.option;
  }
  CHECK(next == -1);
}

static gp_status judge(void *context, const gp_remat_list *list, gp_worth *worth) {
  int choice[LAYERS];
  read_choices(list, choice);
  *worth = sum(context, choice);
  return GP_OK;
}

static gp_refined begin(const gp_refine_spec *spec, int32_t option) {
  gp_refined made = {0};
  size_t room = 0;
  for (int32_t l = LAYERS - 1; l >= 0; l--)
    CHECK_STATUS(gp_remat_append(&made.list, &room, (gp_remat_step){GP_REMAT_BACKWARD, l, option}),
                 GP_OK);
  CHECK_STATUS(spec->judge(spec->context, &made.list, &made.worth), GP_OK);
  return made;
}

static size_t least_of(const model *m) {
  size_t least = 0;
  for (int l = 0; l < LAYERS; l++) least += m->bytes[l][OPTIONS];
  return least;
}

/* Is there a better list with one layer changed? */
static bool has_better(const gp_refine_spec *spec, const model *m, const gp_refined *made) {
  int choice[LAYERS];
  read_choices(&made->list, choice);
  for (int l = 0; l < LAYERS; l++) {
    const int own = choice[l];
    for (choice[l] = 0; choice[l] < CHOICES; choice[l]++) {
      const gp_worth other = sum(m, choice);
      if (other.seconds < made->worth.seconds && other.bytes <= spec->memory) return true;
    }
    choice[l] = own;
  }
  return false;
}

/* The least time of all lists that fit. */
static double best_of(const model *m, size_t memory) {
  double best = 1e300;
  int count = 1;
  for (int l = 0; l < LAYERS; l++) count *= CHOICES;
  for (int n = 0; n < count; n++) {
    int choice[LAYERS], rest = n;
    for (int l = 0; l < LAYERS; l++, rest /= CHOICES) choice[l] = rest % CHOICES;
    const gp_worth worth = sum(m, choice);
    if (worth.bytes <= memory && worth.seconds < best) best = worth.seconds;
  }
  return best;
}

static const bool busy[LAYERS] = {true, true, false, true, true, true, true};
static int32_t of[LAYERS] = {0, 0, 1, 1, 2, 3, 3}, first[] = {0, 2, 4, 5, LAYERS};
static const gp_layer_groups groups = {.count = 4, .of = of, .first = first};

static gp_refine_spec spec_of(model *m, size_t memory) {
  return (gp_refine_spec){.groups = &groups,
                          .layers = LAYERS,
                          .busy = busy,
                          .options = OPTIONS,
                          .memory = memory,
                          .joins = true,
                          .judge = judge,
                          .context = m};
}

TEST(what_is_refined_fits_and_is_nearly_the_best) {
  double all = 0, best = 0;
  for (int n = 0; n < DRAWS; n++) {
    model m;
    draw_model(&m);
    /* a layer that does nothing takes nothing */
    for (int k = 0; k < CHOICES; k++) m.bytes[2][k] = 0, m.seconds[2][k] = 0;
    const size_t least = least_of(&m), memory = least + (size_t)draw(1200);
    const gp_refine_spec spec = spec_of(&m, memory);
    gp_refined made = begin(&spec, draw(OPTIONS));
    int32_t looks = 10000;
    CHECK_STATUS(gp_refine(&spec, &looks, &made), GP_OK);
    CHECK(made.worth.bytes <= memory);
    CHECK(!has_better(&spec, &m, &made));
    all += made.worth.seconds;
    best += best_of(&m, memory);
    gp_remat_list_free(&made.list);
  }
  CHECK(all <= 1.03 * best);
}

TEST(no_more_lists_are_judged_than_there_are_looks) {
  model m;
  draw_model(&m);
  const gp_refine_spec spec = spec_of(&m, least_of(&m) + 100);
  for (int32_t most = 0; most < 60; most++) {
    gp_refined made = begin(&spec, 0);
    const gp_worth before = made.worth;
    int32_t looks = most;
    CHECK_STATUS(gp_refine(&spec, &looks, &made), GP_OK);
    CHECK(looks >= 0 && looks <= most);
    CHECK(!gp_refine_suits(&spec, &before, &made.worth));
    gp_remat_list_free(&made.list);
  }
}

TEST(blocks_are_halved_down_to_single_layers_that_do_something) {
  gp_refine_blocks blocks;
  CHECK_STATUS(gp_refine_blocks_new(&groups, LAYERS, busy, &blocks), GP_OK);
  CHECK(blocks.count == 4);
  CHECK(gp_refine_blocks_halve(&blocks));
  static const int32_t wanted[] = {0, 1, 2, 4, 5, 6, LAYERS};
  CHECK(blocks.count == 6);
  for (int32_t b = 0; b <= blocks.count; b++) CHECK(blocks.first[b] == wanted[b]);
  CHECK(!gp_refine_blocks_halve(&blocks));
  CHECK(blocks.count == 6);
  gp_refine_blocks_free(&blocks);
}

TEST_MAIN(what_is_refined_fits_and_is_nearly_the_best,
          no_more_lists_are_judged_than_there_are_looks,
          blocks_are_halved_down_to_single_layers_that_do_something)
