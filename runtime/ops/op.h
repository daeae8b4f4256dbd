/* ops/op.h - what an op is: shape inference, gradient rule, cost and kernels behind one struct.
 *
 * One table serves eager tensors, traced models and gradients alike: eager.c runs an op at once,
 * graph/ appends it to a trace and asks its vjp for gradient nodes, the engine runs its kernel on a
 * device. An op does not know its caller. */
#ifndef GP_OPS_OP_H
#define GP_OPS_OP_H

#include "device/call.h"
#include "gpipe/contract.h"

/* ---- shape inference ----------------------------------------------------------------------- */

/* The types of one application of an op. infer reads attr and in, and fills n_out and out. */
typedef struct gp_sig {
  const gp_attrs *attr;
  int n_in, n_out;
  const gp_meta *in[GP_MAX_INPUTS];
  /* Offset 0 and dense, unless the op is a view: row-major, or in another order that the op writes
   * (gp_infer_channels_last). Kernels write by these strides. */
  gp_meta out[GP_MAX_OUTPUTS];
} gp_sig;

typedef struct gp_cost {
  double flop;  /* multiply and add count as two */
  double bytes; /* read and written */
} gp_cost;

/* ---- gradient rules ------------------------------------------------------------------------ */

/* A graph under construction; graph/ implements the functions below. */
typedef struct gp_builder gp_builder;

/* Append an op; its first output is *out, the k-th one is *out + k. Errors: those of infer. */
gp_status gp_build(gp_builder *builder, gp_op op, const gp_attrs *attrs, const gp_ref *in, int n_in,
                   gp_ref *out);
const gp_meta *gp_build_meta(const gp_builder *builder, gp_ref ref);
/* Make a scalar constant of the given float dtype. */
gp_status gp_build_constant(gp_builder *builder, gp_dtype dtype, double value, gp_ref *out);

/* One question to a gradient rule: given the gradients of the outputs, what are those of the
 * inputs? */
typedef struct gp_vjp {
  gp_builder *builder;
  const gp_attrs *attr;
  int n_in, n_out;
  const gp_ref *in, *out; /* the forward application */
  const gp_ref *dout;     /* gradient of each output; GP_NONE where none flows */
  const bool *need;       /* inputs whose gradient is wanted (float ones only) */
  /* The answer, preset to GP_NONE; the shape of in[i], and its dtype or, for a half one, f32. */
  gp_ref *din;
} gp_vjp;

/* Helpers for rules (ops/gradient.c). */
gp_status gp_vjp_op1(gp_vjp *v, gp_op op, gp_ref a, gp_ref *out);
gp_status gp_vjp_op2(gp_vjp *v, gp_op op, gp_ref a, gp_ref b, gp_ref *out);
/* Set din[i] to g, summed over the dimensions along which in[i] was broadcast. */
gp_status gp_vjp_set_broadcast(gp_vjp *v, int i, gp_ref g);

/* ---- kernels ------------------------------------------------------------------------------- */

/* Independent units of work (rows, heads, columns). Pieces of `grain` units are handed to threads;
 * both numbers depend on the shapes only, so the number of threads never changes a bit. */
typedef struct gp_cut {
  int64_t units, grain;
} gp_cut;

typedef struct gp_span {
  int64_t first, last; /* units [first, last) */
  void *scratch;       /* 64-byte aligned, of the size scratch() asked for; NULL if none */
  /* Tells whether a unit that takes long should stop early, with GP_EINTERRUPT; NULL: never. */
  bool (*stop)(const void *context);
  const void *context; /* of stop */
} gp_span;

/* Return units [first, last) with the scratch and the stop of a span. */
static inline gp_span gp_span_part(gp_span span, int64_t first, int64_t last) {
  span.first = first;
  span.last = last;
  return span;
}

static inline bool gp_span_stops(const gp_span *span) {
  return span->stop && span->stop(span->context);
}

/* State (optional) is what a kernel works out once for an instruction of a plan and reads in every
 * run of it: a library's primitive, the order of its operands. state returns how many bytes of it a
 * call needs (0: none), from attributes and metas alone and whatever the number of outputs is; the
 * plan counts them. prepare fills them in when the plan is bound, while operands have no addresses
 * yet; destroy frees what prepare allocated besides. On a device, all programs in which an
 * instruction occurs share one state, and so do all micro-batches. A device runs one program at a
 * time, but its threads run the pieces of an instruction at once: so run may only read the state,
 * and writes to its scratch. Outside of plans (eager calls, kernels that call others) call->state
 * is NULL, and run does without. */
typedef struct gp_cpu_kernel {
  gp_cut (*cut)(const gp_call *call);
  gp_status (*run)(const gp_call *call, gp_span span);
  size_t (*scratch)(const gp_call *call);                 /* bytes per thread; NULL: none */
  size_t (*state)(const gp_call *call);                   /* NULL: no state */
  gp_status (*prepare)(const gp_call *call, void *state); /* 64-byte aligned, zeroed */
  void (*destroy)(void *state);                           /* NULL: prepare takes nothing */
  /* Bit d is set if operands of dtype d, bf16 or f16, are read and written as they are
   * (ops/half/half.h). Ops with GP_OP_HALVES do that in any case. */
  unsigned halves;
} gp_cpu_kernel;

enum { GP_ALL_HALVES = 1u << GP_BF16 | 1u << GP_F16 };

/* Row-wise ops cut [.., N] values into blocks of this many rows. One constant serves all ops:
 * consecutive row-wise ops can then be run block by block while a block is in the cache, and the
 * bits do not depend on which ops were run together. */
enum { GP_ROW_BLOCK = 64 };

/* The most floating-point operations of a piece, if an op can be cut so finely: Ctrl-C waits for a
 * piece, a tenth of a second of a core. */
#define GP_MOST_OF_A_PIECE 1e10

/* ---- definition ---------------------------------------------------------------------------- */

/* The input that holds ids, what the ids are called, how many there are, and which is the first. */
typedef struct gp_ids_role {
  int input;
  const char *what; /* "id", "class", "position" */
  int64_t count;
  int64_t first; /* 0, or 1 for positions */
} gp_ids_role;

/* GP_OP_ROW(name) gives the first four fields, which come from the row of ops.def. */
typedef struct gp_op_def {
  const char *name;
  int min_in, max_in;
  unsigned flags;
  unsigned row_inputs; /* bit i: in[i] is read row by row (with GP_OP_ROWS) */
  gp_status (*infer)(gp_sig *sig);
  gp_status (*vjp)(gp_vjp *vjp); /* NULL: no gradient flows through */
  gp_cost (*cost)(const gp_sig *sig);
  gp_cpu_kernel cpu; /* zero for views */
  /* For ops that take ids: what a kernel on a GPU cannot say. */
  gp_ids_role (*ids)(const gp_call *call);
} gp_op_def;

/* What the definition needs of a row at compile time: GP_OP_ROW(add) in it fills this in. */
#define GP_IN(role, kind)       +1
#define GP_OPTIONAL(role, kind) +1
#define GP_MANY(role, kind)     +GP_MAX_INPUTS
#define GP_OP(name, operands, outputs, attributes, flags, text)                                    \
  extern const gp_op_def gp_def_##name;                                                            \
  enum { GP_MOST_##name = 0 operands, GP_FLAGS_##name = flags };
#include "ops/rows.def"
#undef GP_OP
#undef GP_OPTIONAL
#undef GP_MANY
#define GP_OPTIONAL(role, kind)    +0
#define GP_MANY(role, kind)        +1
#define GP_OP(name, operands, ...) enum { GP_LEAST_##name = 0 operands };
#include "ops/rows.def"
#undef GP_OP
#undef GP_IN
#undef GP_OPTIONAL
#undef GP_MANY

#define GP_OP_ROW(op)                                                                              \
  .name = #op, .min_in = GP_LEAST_##op, .max_in = GP_MOST_##op, .flags = GP_FLAGS_##op

const gp_op_def *gp_op_get(gp_op op);
/* Count the inputs, the first ones, that the op writes (GP_OP_EFFECT). */
int gp_op_slots(gp_op op);
/* Tell whether the op's output is opaque (GP_KIND_PACKED), and whether input i may
 * be such a value. */
bool gp_op_packs(gp_op op);
bool gp_op_takes_packed(gp_op op, int i);
/* Tell whether input i is f32 beside halves (GP_KIND_WIDE). */
bool gp_op_takes_wide(gp_op op, int i);
/* Check the number of inputs and infer. Errors: the op's own, prefixed by its name. */
gp_status gp_op_infer(gp_op op, gp_sig *sig);
/* The copy of an input that the caller of an op must pass instead of it: ops without GP_OP_STRIDED
 * read contiguous inputs, reshape cannot view every strided one, and ops with GP_OP_CHANNELS_LAST
 * want images channels-last. */
typedef enum gp_copy { GP_COPY_NONE, GP_COPY_ROW_MAJOR, GP_COPY_CHANNELS_LAST } gp_copy;
gp_copy gp_op_needs_copy(gp_op op, const gp_attrs *attrs, int input, const gp_meta *meta);

#endif
