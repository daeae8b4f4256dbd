/* gpipe/contract.h - what a row of ops.def says, as data: for callers that know an op by number
 * alone.
 *
 * The generic function of Lua, the stubs for editors, the samples of the C tests and the checks of
 * operands are all driven by it, so that a new op is a row. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_CONTRACT_H
#define GP_PUBLIC_CONTRACT_H

#include "gpipe/op.h"

/* ---- operands and outputs ------------------------------------------------------------------- */

/* Which dtypes an operand or output may have. All operands of an op that are of the first four
 * kinds have one dtype: the op's. */
typedef enum gp_kind {
  GP_KIND_FLOAT,  /* f32, f64, bf16, f16 */
  GP_KIND_NUMBER, /* those, i64 and i32 */
  /* f32, f64, bf16, f16, or such a value as an op with a PACKED output has packed it */
  GP_KIND_PACKABLE,
  GP_KIND_ALIKE, /* any dtype */
  GP_KIND_ANY,   /* any dtype, whatever the other operands have */
  GP_KIND_WIDE,  /* the op's dtype; f32 where that is a half */
  GP_KIND_MASK,  /* bool, the op's dtype, or its wide one */
  GP_KIND_IDS,   /* i64, i32 or u8; an output has whichever infer says */
  GP_KIND_BOOL,
  GP_KIND_COUNT, /* i64 */
  /* Outputs only. SAME: the op's dtype (its first operand's if the op has none); ASKED: the dtype
   * that an attribute asks for; SUM: floats keep their dtype, the others are summed in i64. */
  GP_KIND_SAME,
  GP_KIND_ASKED,
  GP_KIND_SUM,
  /* An opaque value: u8 of one dimension, with as many bytes as infer says. Only the op that made
   * it and the PACKABLE operands that take it know its order. It is made from weights alone, once
   * each time they change (graph/pack.c). */
  GP_KIND_PACKED
} gp_kind;

typedef enum gp_presence { GP_REQUIRED, GP_LEFT_OUT, GP_REPEATED } gp_presence;

typedef struct gp_operand {
  const char *role; /* a role of one letter is not shown to users */
  gp_kind kind;
  gp_presence presence;
} gp_operand;

typedef struct gp_output {
  const char *role;
  gp_kind kind;
  bool kept; /* only the gradient reads it; callers do not see it */
} gp_output;

/* ---- attributes ----------------------------------------------------------------------------- */

typedef enum gp_attr_kind {
  GP_ATTR_INT,
  GP_ATTR_MAYBE,
  GP_ATTR_FLAG,
  GP_ATTR_REAL,
  GP_ATTR_DTYPE,
  GP_ATTR_CHOICE,
  GP_ATTR_DIM,
  GP_ATTR_DIMS,
  GP_ATTR_SHAPE,
  GP_ATTR_LIST
} gp_attr_kind;

typedef struct gp_attr {
  const char *name;
  gp_attr_kind kind;
  size_t offset;      /* of the field in gp_attrs */
  double otherwise;   /* default of an INT or REAL */
  double least, most; /* of a REAL */
  const char *names;  /* of a CHOICE, in the order of its values, separated by spaces */
} gp_attr;

/* Return the field of an attribute; gpipe/attrs.h gives its kind a type. */
static inline void *gp_attr_field(gp_attrs *attrs, const gp_attr *attr) {
  return (char *)attrs + attr->offset;
}
/* The attributes of an op; the list ends with one without a name. */
const gp_attr *gp_op_attrs(gp_op op);
/* Set every attribute to the default of its row. */
void gp_attrs_default(gp_op op, gp_attrs *attrs);
/* Return the number of a name among a choice's names, or -1. */
int gp_attr_choice(const gp_attr *attr, const char *name);
/* Count the values of a choice. */
int gp_attr_choices(const gp_attr *attr);

/* ---- rows ------------------------------------------------------------------------------------ */

enum {
  GP_OP_VIEW = 1, /* out[0] is in[0]'s memory under another meta; no kernel */
  /* Row-wise: the op is cut into (rows, GP_ROW_BLOCK). Unit r writes elements [r * n / rows, (r +
   * 1) * n / rows) of every output of n elements. Of an input in row_inputs that is contiguous and
   * not broadcast it reads the same range only; it may read all of any other input. */
  GP_OP_ROWS = 2,
  GP_OP_STRIDED = 4, /* inputs may be strided or broadcast; others get contiguous copies */
  /* out[0] may reuse the memory of any input of its kind that dies here (plan/memory/temp.c). */
  GP_OP_INPLACE = 8,
  GP_OP_ACCUMULATES = 16, /* honours call->accumulate */
  GP_OP_RANDOM = 32,      /* reads attr->random, the number of the random op in the trace */
  /* Writes memory that is there: each output is the slot that the input of its number is. Never
   * removed as dead. */
  GP_OP_EFFECT = 64,
  /* The CPU kernel takes bf16 and f16 as they are, also eagerly; for other ops the halves are
   * converted (ops/half, ops/eager/half.c). On a GPU every op takes halves. */
  GP_OP_HALVES = 128,
  GP_OP_SPARES = 256,   /* works without its last output if nothing reads it: n_out is one less */
  GP_OP_METHOD = 512,   /* a method of tensors, under its name */
  GP_OP_NUMBERS = 1024, /* from Lua, a number may be an operand: it takes the others' dtype */
  /* Works on elements one by one, wherever they lie: operands and output may be in any order, and
   * one order for all is fastest. Random ops (GP_OP_RANDOM) draw by the element's index and keep
   * row-major outputs. */
  GP_OP_ANY_ORDER = 2048,
  /* Wants its operands of four dimensions, N x C x H x W, channels-last; one in another order is
   * copied. infer says how its outputs lie (gp_infer_channels_last). */
  GP_OP_CHANNELS_LAST = 4096,
  /* Its result comes from all replicas, which make it at the same place of their programs: it never
   * runs again. */
  GP_OP_GATHERS = 8192,
  /* The flags that elementwise ops are made of. */
  GP_OP_MAPS = GP_OP_ROWS | GP_OP_STRIDED | GP_OP_INPLACE | GP_OP_ANY_ORDER,
  GP_OP_UNARY = GP_OP_MAPS | GP_OP_METHOD,
  GP_OP_BINARY = GP_OP_UNARY | GP_OP_NUMBERS,
  /* Ops that answer with bool. */
  GP_OP_ASKS = GP_OP_ROWS | GP_OP_STRIDED | GP_OP_ANY_ORDER | GP_OP_HALVES | GP_OP_METHOD,
  GP_OP_COMPARES = GP_OP_ASKS | GP_OP_NUMBERS
};

/* Each list ends with an entry without a role. */
typedef struct gp_contract {
  const char *name, *text;
  unsigned flags; /* GP_OP_* as above */
  const gp_operand *operands;
  const gp_output *outputs;
} gp_contract;

/* NULL if there is no such op. */
const gp_contract *gp_op_contract(gp_op op);

#endif
