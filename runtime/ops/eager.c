/* ops/eager.c - run one op at once on host tensors: what a script's tensors do outside a trace.
 *
 * The kernels are those of the engine, run on the calling thread piece by piece. Views share the
 * storage of their input. Random ops draw from a (seed, clock) of the calling thread; each
 * application of one advances the clock, so the same script gives the same numbers. */
#include "base/memory.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/op.h"

static _Thread_local struct {
  uint64_t seed;
  uint32_t clock;
} random_state;

void gp_eager_seed(uint64_t seed) {
  random_state.seed = seed;
  random_state.clock = 0;
}

/* One application on its way. */
typedef struct application {
  gp_op op;
  const gp_op_def *def;
  gp_tensor *in[GP_MAX_INPUTS], *out[GP_MAX_OUTPUTS]; /* owned references */
  gp_sig sig;
} application;

/* Give back whatever is held: all of it after a failure, all but the outputs after success. */
static void release(application *a) {
  for (int i = 0; i < GP_MAX_INPUTS; i++) gp_tensor_free(a->in[i]);
  for (int i = 0; i < GP_MAX_OUTPUTS; i++) gp_tensor_free(a->out[i]);
}

/* What the `copy` op would give; called directly because nothing can go wrong but memory. */
static gp_status copy_contiguous(const gp_tensor *from, gp_tensor **to) {
  const gp_meta *meta = gp_tensor_meta(from);
  gp_tensor *copy;
  GP_TRY(gp_tensor_new(meta->dtype, &meta->shape, &copy));
  gp_view_copy(gp_tensor_meta(copy), gp_tensor_data(copy), meta, gp_tensor_data(from));
  *to = copy;
  return GP_OK;
}

/* An op that writes in[0] must not read what it has written already. */
static bool reads_what_it_writes(const application *a, const gp_tensor *const *inputs, int i) {
  return (a->def->flags & GP_OP_EFFECT) && i > 0 && gp_tensor_overlaps(inputs[0], inputs[i]);
}

static gp_status take_inputs(application *a, gp_tensor *const *inputs, int n) {
  if (n > GP_MAX_INPUTS)
    return gp_fail(GP_EINVAL, "%s: got %d inputs, at most %d are possible", a->def->name, n,
                   GP_MAX_INPUTS);
  for (int i = 0; i < n; i++) {
    bool copy = gp_op_needs_copy(a->op, a->sig.attr, i, gp_tensor_meta(inputs[i])) ||
                reads_what_it_writes(a, (const gp_tensor *const *)inputs, i);
    if (copy) GP_TRY(copy_contiguous(inputs[i], &a->in[i]));
    if (!copy) a->in[i] = gp_tensor_retain(inputs[i]);
    a->sig.in[i] = gp_tensor_meta(a->in[i]);
  }
  a->sig.n_in = n;
  return GP_OK;
}

/* Views and slots share the storage of in[0]; other outputs are new. */
static gp_status make_outputs(application *a) {
  if (a->def->flags & GP_OP_VIEW) return gp_tensor_view(a->in[0], &a->sig.out[0], &a->out[0]);
  int made = 0;
  if (a->def->flags & GP_OP_EFFECT) a->out[made++] = gp_tensor_retain(a->in[0]);
  for (; made < a->sig.n_out; made++) {
    const gp_meta *meta = &a->sig.out[made];
    GP_TRY(gp_tensor_new(meta->dtype, &meta->shape, &a->out[made]));
  }
  return GP_OK;
}

/* The kernel's view: raw addresses and metas, borrowed from the tensors. */
static gp_call make_call(const application *a, const gp_step_block *step) {
  gp_call call = {.attr = a->sig.attr, .step = step, .n_in = a->sig.n_in, .n_out = a->sig.n_out};
  for (int i = 0; i < call.n_in; i++)
    call.in[i] = (gp_arg){gp_tensor_data(a->in[i]), gp_tensor_meta(a->in[i])};
  for (int i = 0; i < call.n_out; i++)
    call.out[i] = (gp_arg){gp_tensor_data(a->out[i]), gp_tensor_meta(a->out[i])};
  return call;
}

/* The same pieces as on a team of threads, one after the other. */
static gp_status run_pieces(const gp_cpu_kernel *kernel, const gp_call *call, void *scratch) {
  gp_cut cut = kernel->cut(call);
  for (int64_t first = 0; first < cut.units; first += cut.grain) {
    int64_t left = cut.units - first;
    gp_span span = {first, first + (left < cut.grain ? left : cut.grain), scratch};
    GP_TRY(kernel->run(call, span));
  }
  return GP_OK;
}

/* Outside a pipeline there are no rows and no count: the step block says so. */
static gp_status run_kernel(const application *a) {
  const gp_cpu_kernel *kernel = &a->def->cpu;
  const gp_step_block step = {
      .seed = random_state.seed, .step = random_state.clock, .inverse_count = 1};
  gp_call call = make_call(a, &step);
  size_t bytes = kernel->scratch ? kernel->scratch(&call) : 0;
  void *scratch = NULL;
  if (bytes > 0) GP_TRY(gp_alloc(bytes, &scratch));
  gp_status status = run_pieces(kernel, &call, scratch);
  gp_free(scratch);
  if (a->def->flags & GP_OP_RANDOM) random_state.clock++;
  return status;
}

static gp_status apply(application *a, gp_tensor *const *inputs, int n_inputs) {
  GP_TRY(take_inputs(a, inputs, n_inputs));
  GP_TRY(gp_op_infer(a->op, &a->sig));
  GP_TRY(make_outputs(a));
  return a->def->flags & GP_OP_VIEW ? GP_OK : run_kernel(a);
}

gp_status gp_eager_apply(gp_op op, const gp_attrs *attrs, gp_tensor *const *inputs, int n_inputs,
                         gp_tensor **outputs, int *n_outputs) {
  if ((unsigned)op >= GP_OP_COUNT) return gp_fail(GP_EINVAL, "op: there is no op %d", (int)op);
  application a = {.op = op, .def = gp_op_get(op), .sig = {.attr = attrs}};
  gp_status status = apply(&a, inputs, n_inputs);
  if (status == GP_OK) {
    for (int i = 0; i < a.sig.n_out; i++) {
      outputs[i] = a.out[i];
      a.out[i] = NULL;
    }
    *n_outputs = a.sig.n_out;
  }
  release(&a);
  return status;
}
