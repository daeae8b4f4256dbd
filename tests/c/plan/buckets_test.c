/* tests/c/plan/buckets_test.c - buckets hold whole parameters, and all of them. */
#include "plan/edge/buckets.h"
#include "toy.h"

enum { PARAMS = 7, BYTES = 256 /* of a parameter: 8 x 8 floats */ };

/* One stage with the parameters of a toy, on two replicas. */
typedef struct rig {
  toy t;
  gp_layout layout;
  int32_t stage_of[2], placement[2], layers[PARAMS];
} rig;

static void open_rig(rig *r, int replicas) {
  *r = (rig){.t = toy_new(2), .placement = {0, 1}};
  for (int i = 0; i < PARAMS; i++) (void)toy_param(&r->t, SHAPE(8, 8), false, false);
  const gp_pipeline_spec spec = {.stage_count = 1,
                                 .layer_count = 1,
                                 .device_count = replicas,
                                 .copy_count = replicas,
                                 .replicas = replicas,
                                 .param_count = PARAMS,
                                 .stage_of = r->stage_of,
                                 .params = r->t.params,
                                 .param_layer = r->layers};
  CHECK_STATUS(gp_layout_new(&spec, r->placement, &r->layout), GP_OK);
}

static void close_rig(rig *r) {
  gp_layout_free(&r->layout);
  toy_free(&r->t);
}

/* How many buckets of at least so many bytes a copy has; they lie one behind the other. */
static int count(const rig *r, int32_t copy, size_t least) {
  const gp_layout_slice *own = &r->layout.slices[copy];
  size_t at = own->begin;
  int buckets = 0;
  for (; at < own->begin + own->grads && buckets < 100; buckets++) {
    const size_t bytes = gp_bucket_bytes(&r->layout, copy, at, least);
    CHECK(bytes > 0 && bytes % BYTES == 0);
    CHECK(bytes >= least || at + bytes == own->begin + own->grads);
    at += bytes;
  }
  CHECK(at == own->begin + own->grads);
  return buckets;
}

TEST(buckets_cover_what_a_copy_owns_in_whole_parameters) {
  rig r;
  open_rig(&r, 2);
  const int of[2] = {(int)(r.layout.slices[0].grads / BYTES),
                     (int)(r.layout.slices[1].grads / BYTES)};
  CHECK(of[0] + of[1] == PARAMS && of[0] == 4);
  for (int32_t copy = 0; copy < 2; copy++) {
    CHECK(count(&r, copy, 1) == of[copy]);
    CHECK(count(&r, copy, BYTES) == of[copy]);
    CHECK(count(&r, copy, BYTES + 1) == (of[copy] + 1) / 2);
    CHECK(count(&r, copy, 1 << 20) == 1);
    CHECK(count(&r, copy, 0) == 1); /* the default */
  }
  close_rig(&r);
}

TEST(without_replicas_there_is_one_bucket) {
  rig r;
  open_rig(&r, 1);
  CHECK(count(&r, 0, 1) == 1);
  close_rig(&r);
}

TEST(a_bucket_ends_behind_the_last_instruction_that_adds_to_it) {
  gp_instr instrs[4] = {{.op = (gp_op)0}};
  const gp_program program = {.instrs = instrs, .instr_count = 4};
  const int32_t bases[4] = {GP_BASE_GRAD, GP_BASE_TEMP, GP_BASE_GRAD, GP_BASE_GRAD};
  const size_t offsets[4] = {512, 0, 256, 0};
  for (int n = 0; n < 4; n++) {
    instrs[n].call.n_out = 1;
    instrs[n].out[0] = (gp_place){bases[n], offsets[n]};
  }
  CHECK(gp_bucket_end(&program, 512, 256) == 1);
  CHECK(gp_bucket_end(&program, 256, 512) == 3);
  CHECK(gp_bucket_end(&program, 0, 256) == 4);
  CHECK(gp_bucket_end(&program, 1024, 256) == 1); /* nothing adds to it */
  CHECK(gp_bucket_end(NULL, 0, 256) == 0);
}

TEST_MAIN(buckets_cover_what_a_copy_owns_in_whole_parameters, without_replicas_there_is_one_bucket,
          a_bucket_ends_behind_the_last_instruction_that_adds_to_it)
