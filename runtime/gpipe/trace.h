/* gpipe/trace.h - the record of one forward pass. See gpipe.h for what holds everywhere. */
#ifndef GP_PUBLIC_TRACE_H
#define GP_PUBLIC_TRACE_H

#include "gpipe/op.h"
#include "gpipe/param.h"

/* The straight-line record of one forward pass for one input shape. Reference-counted. */
typedef struct gp_trace gp_trace;
typedef enum gp_input_kind { GP_INPUT_BATCH, GP_INPUT_TARGET } gp_input_kind;
enum { GP_MAX_BATCH_TENSORS = 8 }; /* inputs, targets and outputs that a mini-batch may have */

/* training: whether dropout and its kin are active; the tracer asks for it. */
gp_status gp_trace_new(bool training, gp_trace **trace);
gp_trace *gp_trace_retain(gp_trace *trace);
void gp_trace_free(gp_trace *trace);
bool gp_trace_is_training(const gp_trace *trace);
/* Read f32 parameters from here on in this dtype, bf16 or f16; f32: as they are. Their gradients
 * stay f32. */
void gp_trace_set_half(gp_trace *trace, gp_dtype dtype);
/* The dtype in which a parameter is read now. */
gp_dtype gp_trace_reads(const gp_trace *trace, const gp_param *param);
/* Multiply the gradient that the backward pass starts from with the pipeline's loss scale. */
void gp_trace_set_scaled(gp_trace *trace);

/* Declare the next input of the micro-batch, or the next target. The strides of meta are ignored:
 * the value will be contiguous. Errors: GP_ESHAPE, GP_EDTYPE. */
gp_status gp_trace_input(gp_trace *trace, gp_input_kind kind, const gp_meta *meta, gp_ref *ref);
/* Read a parameter or buffer (retained). The same one gives the same ref; a buffer that was written
 * since gives the ref of what was written. */
gp_status gp_trace_param(gp_trace *trace, gp_param *param, gp_ref *ref);
/* Use a tensor (retained) that must not change later. */
gp_status gp_trace_constant(gp_trace *trace, gp_tensor *tensor, gp_ref *ref);
/* Append an op. outputs[GP_MAX_OUTPUTS] receives *n_outputs refs. Errors: those of the op. */
gp_status gp_trace_apply(gp_trace *trace, gp_op op, const gp_attrs *attrs, const gp_ref *inputs,
                         int n_inputs, gp_ref *outputs, int *n_outputs);
/* Let the ops that follow belong to layer `layer` (0-based, of the outermost Sequential), and to
 * the module with this label (copied), e.g. "3.fc (Linear 256 -> 10)". Both are kept with each op;
 * errors name the label. */
void gp_trace_set_layer(gp_trace *trace, int layer);
gp_status gp_trace_set_label(gp_trace *trace, const char *label);

/* Valid until something is appended: values move when their array grows. */
const gp_meta *gp_trace_meta(const gp_trace *trace, gp_ref ref);
/* Units: multiplications and additions, and bytes read and written, of all ops so far. */
void gp_trace_cost(const gp_trace *trace, double *flop, double *bytes);

#endif
