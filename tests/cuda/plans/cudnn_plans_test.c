/* tests/cuda/plans/cudnn_plans_test.c - the real cuDNN accepts every graph that the plugin builds.
 *
 * No GPU is needed: plans are finalized against descriptions of devices, with a driver that only
 * pretends to load code (fake_driver.cmake). The test does not run the plans. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cudnn/attention.h"
#include "device/cuda/cudnn/attention_piece.h"
#include "device/cuda/cudnn/plan.h"
#include "described_gpu.h"
#include "test.h"

static gp_cudnn_library library;

/* ---- attention ----------------------------------------------------------------------------- */

/* The dimensions along which a mask differs. */
enum { NO_MASK, BY_BATCH = 1, BY_HEAD = 2, BY_QUERY = 4, BY_KEY = 8, DROPOUT = 16 };

/* Letters as everywhere: B batch, H heads, T queries and keys, D width of a head. */
typedef struct sizes {
  gp_dtype dtype;
  int64_t b, h, queries, keys, d;
  bool causal, packed; /* packed: operands lie in [B, T, H + 2 G, D], outputs in [B, T, H, D] */
  int64_t groups;      /* G; 0: H */
  int mask;
} sizes;

static const sizes cases[] = {
    {GP_BF16, 2, 12, 1024, 1024, 64, true, true, 0, NO_MASK},
    {GP_F16, 2, 12, 1024, 1024, 64, true, false, 0, NO_MASK},
    {GP_BF16, 1, 4, 1000, 1000, 64, true, true, 0, NO_MASK},
    {GP_BF16, 2, 4, 256, 512, 64, false, false, 0, NO_MASK},
    {GP_BF16, 1, 8, 512, 512, 128, true, true, 0, NO_MASK},
    {GP_F16, 1, 1, 64, 64, 32, false, true, 0, NO_MASK},
    {GP_BF16, 8, 6, 128, 128, 64, true, true, 0, NO_MASK},
    /* fewer heads of keys */
    {GP_BF16, 2, 12, 1024, 1024, 64, true, true, 4, NO_MASK},
    {GP_F16, 1, 8, 256, 256, 128, true, true, 1, NO_MASK},
    {GP_BF16, 2, 4, 100, 333, 32, false, false, 2, NO_MASK},
    /* masks: of keys, of pairs, of all; and with rows of fewer than 8 keys */
    {GP_BF16, 2, 4, 256, 256, 64, false, true, 0, BY_KEY | BY_BATCH},
    {GP_F16, 2, 4, 256, 256, 64, true, true, 0, BY_KEY | BY_QUERY},
    {GP_BF16, 2, 4, 100, 333, 64, false, false, 0, BY_KEY | BY_QUERY | BY_HEAD | BY_BATCH},
    {GP_BF16, 1, 8, 128, 128, 128, true, true, 2, BY_KEY | BY_QUERY | BY_HEAD},
    {GP_F16, 2, 4, 7, 33, 64, false, false, 1, BY_KEY | BY_HEAD},
    {GP_BF16, 1, 2, 1, 33, 8, false, false, 0, BY_KEY},
    {GP_BF16, 1, 2, 7, 7, 24, true, true, 0, BY_KEY},
    /* dropout */
    {GP_BF16, 2, 12, 1024, 1024, 64, true, true, 0, DROPOUT},
    {GP_F16, 1, 8, 512, 512, 128, true, true, 2, DROPOUT},
    {GP_BF16, 2, 4, 100, 333, 64, false, false, 0, BY_KEY | BY_QUERY | DROPOUT},
};

static int64_t groups_of(const sizes *s) { return s->groups ? s->groups : s->h; }

/* Makes a value [B, heads, T, D] of its own, or one within rows of `in_row` heads. */
static gp_attention_value value_of(const sizes *s, int64_t heads, int64_t rows, int64_t in_row) {
  if (!s->packed) return (gp_attention_value){NULL, heads * rows * s->d, rows * s->d, s->d, 1};
  return (gp_attention_value){NULL, rows * in_row * s->d, s->d, in_row * s->d, 1};
}

static void set_mask(gp_attention *a, int mask) {
  a->masked = mask != NO_MASK, a->mask_dtype = GP_BOOL;
  a->mask = (gp_attention_value){NULL, mask & BY_BATCH ? a->heads * a->queries * a->keys : 0,
                                 mask & BY_HEAD ? a->queries * a->keys : 0,
                                 mask & BY_QUERY ? a->keys : 0, 1};
}

static gp_attention attention_of(const sizes *s, bool backward) {
  const int64_t all = s->h + 2 * groups_of(s);
  const gp_attention_value q = value_of(s, s->h, s->queries, all),
                           o = value_of(s, s->h, s->queries, s->h);
  const gp_attention_value k = value_of(s, groups_of(s), s->keys, all);
  gp_attention a = {.dtype = s->dtype,
                    .backward = backward,
                    .causal = s->causal,
                    .batches = s->b,
                    .heads = s->h,
                    .groups = groups_of(s),
                    .queries = s->queries,
                    .keys = s->keys,
                    .width = s->d,
                    .scale = 0.125,
                    .q = q,
                    .k = k,
                    .v = k,
                    .o = o,
                    .lse = {NULL, s->h * s->queries, s->queries, 1, 0}};
  if (backward) a.d_o = o, a.d_q = q, a.d_k = a.d_v = k;
  a.dropout = s->mask & DROPOUT ? 0.1 : 0;
  set_mask(&a, s->mask & ~DROPOUT);
  return a;
}

static void print_refusal(const gpu_kind *kind, const gp_attention *a, const gp_cudnn_plan *plan) {
  char why[512] = "";
  library.cudnnGetLastErrorString(why, sizeof why);
  fprintf(stderr, "%s: attention%s %lldx%lld/%lldx%lldx%lldx%lld%s%s: %s (%s)\n", kind->name,
          a->backward ? " backward" : "", (long long)a->batches, (long long)a->heads,
          (long long)a->groups, (long long)a->queries, (long long)a->keys, (long long)a->width,
          a->causal ? " causal" : "", a->masked ? " masked" : "",
          library.cudnnGetErrorString(plan->graph.status), why);
}

static void check_attention(const gpu_kind *kind, const gp_cudnn_target *target,
                            const gp_attention *a) {
  gp_cudnn_plan plan = {.graph = {.library = &library}};
  const gp_attention piece = gp_cudnn_first_piece(a);
  const bool shared = a->backward && a->groups < a->heads;
  CHECK(!gp_cudnn_attention_refusal(a) == !shared);
  if (shared) return;
  gp_cudnn_attention_describe(&plan.graph, &piece);
  bool built = gp_cudnn_plan_build(&plan, target);
  if (!built) print_refusal(kind, a, &plan);
  CHECK(built);
  gp_cudnn_plan_close(&plan);
}

static void check_cases(const gpu_kind *kind, int32_t sm_count) {
  gp_cudnn_target target = {.properties = properties_of(&library, kind), .sm_count = sm_count};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int backward = 0; backward < 2; backward++) {
      const gp_attention a = attention_of(&cases[i], backward != 0);
      check_attention(kind, &target, &a);
    }
  library.cudnnBackendDestroyDescriptor(target.properties);
}

/* ---- tests --------------------------------------------------------------------------------- */

TEST(attention_has_plans_on_sm_80) { check_cases(&ampere, 0); }
TEST(attention_has_plans_on_sm_90) { check_cases(&hopper, 0); }

TEST(attention_has_plans_for_a_part_of_a_gpu) {
  gp_cudnn_target target = {.properties = properties_of(&library, &hopper), .sm_count = 32};
  for (int backward = 0; backward < 2; backward++) {
    const gp_attention a = attention_of(&cases[0], backward != 0);
    check_attention(&hopper, &target, &a);
  }
  library.cudnnBackendDestroyDescriptor(target.properties);
}

TEST(what_cudnn_cannot_take_is_not_offered_to_it) {
  gp_attention a = attention_of(&cases[0], true);
  CHECK(!gp_cudnn_attention_refusal(&a));
  a.dropout = 0.1;
  CHECK(!gp_cudnn_attention_refusal(&a)); /* it is asked for: see the_library_opens */
  CHECK(unsetenv("GPIPE_ATTENTION") == 0);
  CHECK(gp_cudnn_attention_refusal(&a));
  CHECK(setenv("GPIPE_ATTENTION", "cudnn", 1) == 0);
  a.dropout = 1;
  CHECK(gp_cudnn_attention_refusal(&a));
  a.dropout = 0, a.dtype = GP_F32;
  CHECK(gp_cudnn_attention_refusal(&a));
  a.dtype = GP_BF16, a.k.head = 0;
  CHECK(gp_cudnn_attention_refusal(&a));
  a = attention_of(&cases[0], true), a.d_q.data = (void *)2;
  CHECK(gp_cudnn_attention_refusal(&a));
  a = attention_of(&cases[0], false), a.d_q.data = (void *)2; /* the forward pass has no gradient */
  CHECK(!gp_cudnn_attention_refusal(&a));
}

/* The scores of one more head would exceed the bound, so pieces are single groups. */
TEST(pieces_hold_whole_groups) {
  const sizes large = {GP_BF16, 3, 8, 8192, 8192, 64, false, false, 4, BY_KEY | BY_HEAD | BY_BATCH};
  const gp_attention a = attention_of(&large, true), piece = gp_cudnn_first_piece(&a);
  const gp_attention other = gp_cudnn_piece_at(&piece, 1, 2);
  CHECK(piece.batches == 1 && piece.groups == 1 && piece.heads == 2);
  CHECK(other.k.data == NULL && other.groups == 1);
  CHECK(piece.mask_size == 3 * 8 * 8192 && piece.mask.head == 8192 && piece.mask.row == 0);
  const gp_cudnn_scratch at = gp_cudnn_lay_out(&piece);
  CHECK(at.rowsum == (size_t)piece.mask_size * 4);
  CHECK(at.workspace == at.rowsum + (size_t)2 * 8192 * 4);
}

/* Runs first: the others use the library, with dropout too. */
TEST(the_library_opens) {
  CHECK(setenv("GPIPE_ATTENTION", "cudnn", 1) == 0);
  char why[256] = "";
  bool opened = gp_cudnn_library_open(&library, why, sizeof why);
  if (!opened) fprintf(stderr, "%s\n", why);
  CHECK(opened);
}

TEST_MAIN(the_library_opens, attention_has_plans_on_sm_80, attention_has_plans_on_sm_90,
          attention_has_plans_for_a_part_of_a_gpu, pieces_hold_whole_groups,
          what_cudnn_cannot_take_is_not_offered_to_it)
