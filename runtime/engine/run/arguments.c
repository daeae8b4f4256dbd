/* engine/run/arguments.c - checks that a run is given what its plan was made for.
 *
 * Workers read and write a script's tensors by address and row: they would read a tensor of another
 * shape past its end. The Lua side picks the plan by the shapes; this protects callers below it. */
#include "engine/run/arguments.h"

#include "base/tensor.h"
#include "plan/plan.h"

/* Check one tensor, which has the rows of all micro-batches. meta: that of one larger
 * micro-batch. */
static gp_status check_tensor(const gp_plan *plan, const char *what, int number,
                              const gp_tensor *tensor, const gp_meta *meta) {
  char is[128], wanted[128];
  if (!tensor) return gp_fail(GP_EINVAL, "run: %s %d is missing, expected a tensor", what, number);
  const gp_meta *given = gp_tensor_meta(tensor);
  gp_shape shape = meta->shape;
  if (shape.rank > 0)
    shape.dim[0] = shape.dim[0] / plan->shapes[0].rows * gp_plan_first_row(plan, plan->step_micros);
  if (given->dtype == meta->dtype && gp_shape_equal(&given->shape, &shape) &&
      gp_meta_is_contiguous(given))
    return GP_OK;
  return gp_fail(GP_ESHAPE, "run: %s %d is %s %s, expected %s %s without gaps", what, number,
                 gp_dtype_name(given->dtype), gp_shape_print(&given->shape, is, sizeof is),
                 gp_dtype_name(meta->dtype), gp_shape_print(&shape, wanted, sizeof wanted));
}

static gp_status check_inputs(const gp_plan *plan, const gp_run_args *args) {
  const gp_trace *trace = plan->shapes[0].trace;
  int left = trace->input_count + trace->target_count;
  if (args->input_count != trace->input_count || args->target_count != trace->target_count)
    return gp_fail(GP_EINVAL, "run: %d inputs and %d targets, expected %d and %d",
                   args->input_count, args->target_count, (int)trace->input_count,
                   (int)trace->target_count);
  /* inputs are the first values of a trace, so the search is short */
  for (int32_t v = 0; v < trace->graph.value_count && left > 0; v++) {
    const gp_value *value = &trace->graph.values[v];
    bool input = value->kind == GP_VALUE_INPUT;
    if (!input && value->kind != GP_VALUE_TARGET) continue;
    gp_tensor *const *tensors = input ? args->inputs : args->targets;
    GP_TRY(check_tensor(plan, input ? "input" : "target", value->index + 1, tensors[value->index],
                        &value->meta));
    left--;
  }
  return GP_OK;
}

/* Check the gradients of inputs: there are as many as inputs, NULL for an input that has none, or
 * the list is NULL. */
static gp_status check_input_grads(const gp_plan *plan, const gp_run_args *args) {
  const gp_shape_plan *shape = &plan->shapes[0];
  for (int k = 0; k < shape->input_grad_count; k++) {
    const gp_meta *meta = gp_plan_input_grad_meta(plan, k);
    const bool given = args->input_grads && args->input_grads[k];
    if (given != (meta && args->out_grads))
      return gp_fail(GP_EINVAL, "run: gradient of input %d is %s, expected %s", k + 1,
                     given ? "given" : "missing", given ? "none" : "a tensor");
    if (given) GP_TRY(check_tensor(plan, "gradient of input", k + 1, args->input_grads[k], meta));
  }
  return GP_OK;
}

gp_status gp_run_check_args(const gp_plan *plan, const gp_run_args *args) {
  const int count = plan->shapes[0].output_count;
  const bool backward = plan->kind == GP_PLAN_SPLIT && args->out_grads;
  gp_tensor *const *tensors = backward ? args->out_grads : args->outputs;
  if (args->accumulate && !args->apart && plan->replicas > 1)
    return gp_fail(
        GP_EINVAL,
        "accumulate: the pipeline has %d replicas, which begin their sums anew: expected "
        "them apart",
        (int)plan->replicas);
  GP_TRY(check_inputs(plan, args));
  GP_TRY(check_input_grads(plan, args));
  if (args->output_count != count || (count && !tensors))
    return gp_fail(GP_EINVAL, "run: %d outputs, expected %d", args->output_count, count);
  for (int k = 0; k < count; k++)
    GP_TRY(check_tensor(plan, backward ? "gradient" : "output", k + 1, tensors[k],
                        gp_plan_output_meta(plan, k)));
  return GP_OK;
}
