/* ops/eager/eager.c - run one op at once: what a script's tensors do outside a trace.
 *
 * The kernels are those of the engine. They run on the calling thread piece by piece, or on the GPU
 * where the inputs lie (gpu.c); halves are computed in f32 (half.c). Views share the storage of
 * their input. Random ops draw from a (seed, clock) of the calling thread; each application of one
 * advances the clock, so the same script gives the same numbers. */
#include "base/memory.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/eager/eager.h"

static _Thread_local gp_random_state random_state;

void gp_eager_seed(uint64_t seed) { random_state = (gp_random_state){.seed = seed}; }
gp_random_state gp_eager_random(void) { return random_state; }
void gp_eager_set_random(gp_random_state state) { random_state = state; }

/* Release whatever is held: all of it after a failure, all but the outputs after success. */
static void release(gp_application *a) {
  for (int i = 0; i < GP_MAX_INPUTS; i++) gp_tensor_free(a->in[i]);
  for (int i = 0; i < GP_MAX_OUTPUTS; i++) gp_tensor_free(a->out[i]);
}

gp_status gp_eager_new(gp_space *space, const gp_meta *meta, gp_tensor **tensor) {
  gp_tensor *flat;
  if (gp_meta_is_contiguous(meta))
    return gp_tensor_room_at(space, meta->dtype, &meta->shape, tensor);
  GP_TRY(gp_tensor_room_at(space, meta->dtype, &(gp_shape){1, {gp_meta_numel(meta)}}, &flat));
  gp_status status = gp_tensor_view(flat, meta, tensor);
  gp_tensor_free(flat);
  return status;
}

/* Make the copy that the `copy` op would give. */
static gp_status copy_for(gp_copy wish, const gp_tensor *from, gp_tensor **to) {
  gp_meta meta;
  gp_tensor *copy;
  GP_TRY(gp_meta_make(gp_tensor_meta(from)->dtype, &gp_tensor_meta(from)->shape, &meta));
  if (wish == GP_COPY_CHANNELS_LAST) gp_meta_set_channels_last(&meta);
  GP_TRY(gp_eager_new(gp_tensor_space(from), &meta, &copy));
  gp_status status = gp_tensor_copy(copy, from);
  if (status) return gp_tensor_free(copy), status;
  *to = copy;
  return GP_OK;
}

/* Tell whether an op that writes slots would read in input i what it has written already. */
static bool reads_what_it_writes(const gp_application *a, const gp_tensor *const *inputs, int i) {
  const int slots = gp_op_slots(a->op);
  for (int k = 0; k < slots && i >= slots; k++)
    if (gp_tensor_overlaps(inputs[k], inputs[i])) return true;
  return false;
}

/* Find the GPU that the inputs lie on. All do, except scalars, which are copied there. */
static gp_status find_space(gp_application *a, gp_tensor *const *inputs, int n) {
  for (int i = 0; i < n; i++)
    if (gp_tensor_space(inputs[i])) a->space = gp_tensor_space(inputs[i]);
  for (int i = 0; i < n; i++) {
    gp_space *space = gp_tensor_space(inputs[i]);
    if (space == a->space || (!space && gp_tensor_meta(inputs[i])->shape.rank == 0)) continue;
    return gp_fail(GP_EDEVICE, "%s: inputs are on %s and on %s; move one with :to(\"%s\")",
                   a->def->name, gp_space_name(space), gp_space_name(a->space),
                   gp_space_name(a->space));
  }
  return GP_OK;
}

/* A slot is written where it lies, so a copy of it is of no use. */
static gp_status check_slot(const gp_application *a, const gp_tensor *slot, int i) {
  if (gp_tensor_data(a->in[i]) == gp_tensor_data(slot)) return GP_OK;
  return gp_fail(GP_EINVAL, "%s: operand %d is written, expected it contiguous and on %s",
                 a->def->name, i + 1, gp_space_name(a->space));
}

static gp_status take_inputs(gp_application *a, gp_tensor *const *inputs, int n) {
  if (n > GP_MAX_INPUTS)
    return gp_fail(GP_EINVAL, "%s: got %d inputs, at most %d are possible", a->def->name, n,
                   GP_MAX_INPUTS);
  GP_TRY(find_space(a, inputs, n));
  for (int i = 0; i < n; i++) {
    gp_copy copy = gp_op_needs_copy(a->op, a->sig.attr, i, gp_tensor_meta(inputs[i]));
    if (!copy && reads_what_it_writes(a, (const gp_tensor *const *)inputs, i))
      copy = GP_COPY_ROW_MAJOR;
    if (copy) GP_TRY(copy_for(copy, inputs[i], &a->in[i]));
    if (!copy) GP_TRY(gp_tensor_to(inputs[i], a->space, &a->in[i]));
    if (i < gp_op_slots(a->op)) GP_TRY(check_slot(a, inputs[i], i));
    a->sig.in[i] = gp_tensor_meta(a->in[i]);
  }
  a->sig.n_in = n;
  return GP_OK;
}

/* A view shares the storage of in[0], a slot that of its input; other outputs are new. */
static gp_status make_outputs(gp_application *a) {
  if (a->def->flags & GP_OP_VIEW) return gp_tensor_view(a->in[0], &a->sig.out[0], &a->out[0]);
  int made = 0;
  for (; made < gp_op_slots(a->op); made++) a->out[made] = gp_tensor_retain(a->in[made]);
  for (; made < a->sig.n_out; made++) {
    GP_TRY(gp_eager_new(a->space, &a->sig.out[made], &a->out[made]));
  }
  return GP_OK;
}

gp_call gp_application_call(const gp_application *a, const gp_step_block *step) {
  gp_call call = {.attr = a->sig.attr, .step = step, .n_in = a->sig.n_in, .n_out = a->sig.n_out};
  for (int i = 0; i < call.n_in; i++)
    call.in[i] = (gp_arg){gp_tensor_data(a->in[i]), gp_tensor_meta(a->in[i])};
  for (int i = 0; i < call.n_out; i++)
    call.out[i] = (gp_arg){gp_tensor_data(a->out[i]), gp_tensor_meta(a->out[i])};
  return call;
}

static bool is_interrupted(const void *context) {
  (void)context;
  return gp_interrupt_pending();
}

/* Run the pieces that a team of threads would run, one after the other. Look for Ctrl-C between two
 * of them, unless the op writes into its input: the script would be left with half of it. */
static gp_status run_pieces(const gp_op_def *def, const gp_call *call, void *scratch) {
  gp_cut cut = gp_op_cut(def, call);
  bool whole = def->flags & GP_OP_EFFECT;
  for (int64_t first = 0; first < cut.units; first += cut.grain) {
    int64_t left = cut.units - first;
    gp_span span = {.first = first,
                    .last = first + (left < cut.grain ? left : cut.grain),
                    .scratch = scratch,
                    .stop = whole ? NULL : is_interrupted};
    GP_TRY(def->cpu.run(call, span));
    if (!whole && gp_interrupt_pending())
      return gp_fail(GP_EINTERRUPT, "%s: interrupted", def->name);
  }
  return GP_OK;
}

gp_status gp_eager_run_host(const gp_application *a, const gp_step_block *step) {
  const gp_cpu_kernel *kernel = &a->def->cpu;
  gp_call call = gp_application_call(a, step);
  size_t bytes = kernel->scratch ? kernel->scratch(&call) : 0;
  void *scratch = NULL;
  if (bytes > 0) GP_TRY(gp_alloc(bytes, &scratch));
  gp_status status = run_pieces(a->def, &call, scratch);
  gp_free(scratch);
  return status;
}

/* Outside a pipeline there are no rows and no count, and the step block says so. */
static gp_status run_kernel(const gp_application *a) {
  const gp_step_block step = {
      .seed = random_state.seed, .step = random_state.clock, .inverse_count = 1, .scale = 1};
  gp_status status = a->space              ? gp_eager_run_gpu(a, &step)
                     : gp_eager_is_half(a) ? gp_eager_run_half(a, &step)
                                           : gp_eager_run_host(a, &step);
  if (a->def->flags & GP_OP_RANDOM) random_state.clock++;
  return status;
}

static gp_status apply(gp_application *a, gp_tensor *const *inputs, int n_inputs) {
  GP_TRY(take_inputs(a, inputs, n_inputs));
  GP_TRY(gp_op_infer(a->op, &a->sig));
  GP_TRY(make_outputs(a));
  return a->def->flags & GP_OP_VIEW ? GP_OK : run_kernel(a);
}

gp_status gp_eager_apply(gp_op op, const gp_attrs *attrs, gp_tensor *const *inputs, int n_inputs,
                         gp_tensor **outputs, int *n_outputs) {
  if ((unsigned)op >= GP_OP_COUNT) return gp_fail(GP_EINVAL, "op: there is no op %d", (int)op);
  gp_application a = {.op = op, .def = gp_op_get(op), .sig = {.attr = attrs}};
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
