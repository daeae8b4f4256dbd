/* bindings/binding.h - what the binding files share: the box, the state, checks, errors, apply.
 *
 * Bindings check arguments, make one call and push the result; policy lives in lua/. Checks raise
 * with longjmp, so they come before anything is acquired; what is acquired goes straight into a box
 * that the collector knows. Functions here that raise do so at the line of the user's code.
 *
 * Making any object in Lua (a box, a table, a string) may run the collector, and with it a
 * finalizer of the script that frees a tensor or closes a pipeline. So a binding makes its outputs
 * first and looks at its inputs last. Facts that it needs earlier it copies (gp_lua_check_meta), or
 * it holds a reference that the script cannot reach (gp_lua_check_tensor, gp_lua_push_params). */
#ifndef GP_BINDING_H
#define GP_BINDING_H

#include <lauxlib.h>
#include <lua.h>

#include "gpipe.h"

#define GP_LUA_TENSOR "gpipe.Tensor"
#define GP_LUA_SHAPE  "gpipe.Shape"

/* ---- parts --------------------------------------------------------------------------------- */

/* Each part has `int gp_open_<part>(lua_State *L)`, which puts its functions into the core table at
 * the top of the stack and leaves the stack as it was. A new binding file adds a line here. */
#define GP_LUA_PARTS(X)                                                                            \
  X(scope)                                                                                         \
  X(tensor)                                                                                        \
  X(make)                                                                                          \
  X(param)                                                                                         \
  X(gradient)                                                                                      \
  X(values)                                                                                        \
  X(ops)                                                                                           \
  X(machine)                                                                                       \
  X(host)                                                                                          \
  X(stop)                                                                                          \
  X(trace)                                                                                         \
  X(trace_cost)                                                                                    \
  X(linalg)                                                                                        \
  X(rows)                                                                                          \
  X(schedule)                                                                                      \
  X(simulation)                                                                                    \
  X(pipeline)                                                                                      \
  X(ranks)                                                                                         \
  X(archive)                                                                                       \
  X(checkpoint)                                                                                    \
  X(folder)                                                                                        \
  X(csv)                                                                                           \
  X(elements)                                                                                      \
  X(gather)                                                                                        \
  X(items)                                                                                         \
  X(tokenizer)                                                                                     \
  X(corpus)                                                                                        \
  X(json)                                                                                          \
  X(database)                                                                                      \
  X(heartbeat)                                                                                     \
  X(numbers)                                                                                       \
  X(process)                                                                                       \
  X(records)                                                                                       \
  X(server)                                                                                        \
  X(optimizer)

#define GP_LUA_PART(name) int gp_open_##name(lua_State *L);
GP_LUA_PARTS(GP_LUA_PART)
#undef GP_LUA_PART

int luaopen_gpipe_core(lua_State *L);

/* ---- state --------------------------------------------------------------------------------- */

/* What the core keeps for one Lua state (in its registry). */
typedef struct gp_lua {
  gp_trace *trace;  /* retained; NULL while no layer is being traced */
  int depth;        /* module scopes that are open */
  bool labelled;    /* the innermost module's label has been put together */
  bool no_grad;     /* ops are not recorded for gradients: gp.no_grad */
  bool listing;     /* new boxes are listed: gp.scope */
  bool relabel;     /* the trace's label is that of a module that was left, or missing */
  size_t limit;     /* bytes held by the runtime beyond which garbage is collected */
  size_t collects;  /* how often the limit made it collect */
  gp_status failed; /* status of the last runtime call that raised */
} gp_lua;

gp_lua *gp_lua_state(lua_State *L);
/* Record applications in `trace` (retained) from now on; NULL ends tracing. */
void gp_lua_set_trace(lua_State *L, gp_trace *trace);
gp_trace *gp_lua_trace(lua_State *L);
/* The innermost open module, "3.fc (Linear 256 -> 10)", or "". Valid while the scope is open. */
const char *gp_lua_label(lua_State *L);
/* Call it before an op is recorded: the trace takes the label of the innermost module. */
gp_status gp_lua_note_label(lua_State *L);
/* Push what the Lua side registered with core.hook(name, value), or nil; returns its type. */
int gp_lua_push_hook(lua_State *L, const char *name);

/* ---- the box ------------------------------------------------------------------------------- */

/* A Lua tensor is a real tensor, a parameter or buffer, or a value of a trace; a freed one is none
 * of these. A real one may come from ops that are recorded for gradients, or be a leaf where
 * gradients end. */
typedef struct gp_box {
  const void *kind; /* identifies boxes among other userdata: box.c */
  gp_tensor *tensor;
  gp_param *param;
  gp_trace *trace; /* with ref */
  gp_ref ref;
  int output;          /* number among the history's outputs */
  gp_history *history; /* the op that made the tensor, if it may have a gradient */
  gp_param *leaf;      /* for a tensor that was asked to have a gradient */
} gp_box;

/* Collect garbage if the runtime holds more than the adaptive limit. Call it before making
 * something large. */
void gp_lua_collect_when_due(lua_State *L);
/* Make the metatable of a type of userdata and push it. It has its finalizer, which must be
 * idempotent, and scripts cannot reach it. The caller adds the methods. */
void gp_lua_push_type(lua_State *L, const char *name, lua_CFunction clear);
/* Push the metatable of boxes; call it before the first box is made. */
void gp_lua_new_class(lua_State *L);
/* Add list_made to the table on top. */
void gp_lua_open_boxes(lua_State *L);
/* Push an empty box for the next runtime call to fill, so that its result cannot leak. Collects
 * garbage first if the runtime holds more than the adaptive limit. */
gp_box *gp_lua_new_box(lua_State *L);
/* Push a box with another reference to `tensor`, whose owner no finalizer can free meanwhile. */
void gp_lua_push_tensor(lua_State *L, gp_tensor *tensor);
/* Release what the box holds; the tensor counts as freed then. */
void gp_box_clear(gp_box *box);

gp_box *gp_lua_to_box(lua_State *L, int index); /* NULL if it is not a tensor */
/* The meta of a box that is not freed; valid until the next object is made in Lua. */
const gp_meta *gp_box_meta(const gp_box *box);
/* The dtype that an op sees now: a parameter may be read as a half. */
gp_dtype gp_lua_dtype(lua_State *L, const gp_box *box);
bool gp_meta_is_dense(const gp_meta *meta); /* row-major without gaps, whatever the offset */

/* May a gradient be asked for? Yes for a leaf, for a parameter outside of pipelines, and for values
 * computed from them. */
bool gp_box_has_gradient(const gp_box *box);
/* Errors: the box's elements may not be written in place, because a gradient depends on them. */
void gp_lua_check_writable(lua_State *L, const gp_box *box, const char *who);
/* Is writing the value (NULL: a number or a table) an op that may have a gradient? Then t takes
 * over a new value (gp_lua_take_value) instead of being overwritten. */
bool gp_lua_write_is_noted(lua_State *L, const gp_box *to, const gp_box *value);
/* Let t become the value that was computed for it, of its shape and dtype. Errors: other tensors
 * view t's memory. */
void gp_lua_take_value(lua_State *L, int to_index, int from_index, const char *who);

/* ---- errors -------------------------------------------------------------------------------- */

/* Raise the text of a failed runtime call, prefixed by the open module. Use it for the caller's
 * mistakes. */
int gp_lua_fail(lua_State *L, gp_status status);
/* core.failure(message) -> the code of the message if gp_lua_fail raised it last, else nil: code
 * recognises errors by what failed, never by their wording. */
int gp_lua_failure(lua_State *L);
/* Push nil, text, code and return 3. Use it for failures outside the script (files, devices). */
int gp_lua_return_failure(lua_State *L, gp_status status);
/* Raise `who: what is, what was wanted` in the format of lua_pushfstring. */
int gp_lua_error(lua_State *L, const char *format, ...);
/* Raise "<who> is <the value at index>, expected <wanted>". */
int gp_lua_bad_value(lua_State *L, int index, const char *who, const char *wanted);
/* The same for a name that is no dtype; if other libraries use it, the text suggests ours. */
int gp_lua_bad_dtype(lua_State *L, int index, const char *who, const char *wanted);

/* The tokenizer behind an object of core.tokenizer_load. Errors: any other value. */
gp_tokenizer *gp_lua_check_tokenizer(lua_State *L, int index);

/* ---- checks; `who` is "function: parameter" ------------------------------------------------- */

gp_box *gp_lua_check_box(lua_State *L, int index, const char *who);
gp_box *gp_lua_check_live(lua_State *L, gp_box *box, const char *who); /* not freed */
/* A box whose elements can be read now. Errors: a value of a trace, a freed one. */
gp_box *gp_lua_check_known(lua_State *L, int index, const char *who);
/* A copy of dtype, shape and strides. Errors: not a tensor, a freed one. */
gp_meta gp_lua_check_meta(lua_State *L, int index, const char *who);
/* The real tensor behind a known box; for a parameter, its value. It is pushed in a new box, so
 * that it lives as long as the call whatever the script's finalizers free. */
gp_tensor *gp_lua_check_tensor(lua_State *L, int index, const char *who);
/* The same on the host: a tensor on a GPU is copied. */
gp_tensor *gp_lua_check_host_tensor(lua_State *L, int index, const char *who);
/* The same tensor without a new box, for single elements: valid until the next object is made in
 * Lua. For a parameter the value is pushed all the same. */
gp_tensor *gp_lua_peek_tensor(lua_State *L, int index, const char *who);
int64_t gp_lua_check_int(lua_State *L, int index, const char *who, int64_t low, int64_t high);
double gp_lua_check_number(lua_State *L, int index, const char *who);
/* 1-based or negative position among `size` -> 0-based. */
int64_t gp_lua_check_position(lua_State *L, int index, const char *who, int64_t size);
int gp_lua_check_dim(lua_State *L, int index, const char *who, int rank);
/* Refuse a list that also has named fields. */
void gp_lua_check_no_names(lua_State *L, int index, const char *who, const char *wanted);
/* A table of sizes, or sizes as arguments from `index` on; each >= low (0, or -1 for "infer"). */
void gp_lua_check_shape(lua_State *L, int index, const char *who, int64_t low, gp_shape *shape);
gp_dtype gp_lua_check_dtype(lua_State *L, int index, const char *who);
const char *gp_lua_check_string(lua_State *L, int index, const char *who);

/* Write the number or boolean at `index` into element `at`; false if the dtype cannot hold it. */
bool gp_lua_try_store(lua_State *L, int index, gp_tensor *tensor, int64_t at);
/* The same, but raise if it cannot. */
void gp_lua_store(lua_State *L, int index, const char *who, gp_tensor *tensor, int64_t at);
/* Push what elements of the dtype are: "a number", "an integer that u8 can hold". */
const char *gp_lua_push_wanted(lua_State *L, gp_dtype dtype);
/* Push element `at`: a float, an integer or a boolean as the dtype says. */
void gp_lua_push_element(lua_State *L, gp_tensor *tensor, int64_t at);

/* ---- applying ops -------------------------------------------------------------------------- */

typedef struct gp_lua_call {
  gp_op op;
  gp_attrs attrs;
  int n_in, in[GP_MAX_INPUTS]; /* absolute stack positions of tensors */
  int n_out;                   /* outputs to push; 0 means 1 */
} gp_lua_call;

/* Apply an op. It is recorded if an input is symbolic (or a parameter while tracing), and runs at
 * once otherwise. Pushes the requested outputs. Errors: those of the op; values of another
 * trace. */
void gp_lua_apply(lua_State *L, const gp_lua_call *use);
void gp_lua_apply1(lua_State *L, gp_op op, int a);
void gp_lua_apply2(lua_State *L, gp_op op, int a, int b);
/* Push the reshaped value at `index`; a value with gaps is copied first. */
void gp_lua_reshape(lua_State *L, int index, const gp_shape *shape);
/* Replace a number at `index` by a 0-d tensor of the dtype. */
void gp_lua_promote(lua_State *L, int index, const char *who, gp_dtype dtype);
/* Make both operands tensors: a number takes the dtype of the other. */
void gp_lua_check_operands(lua_State *L, int a, int b, const char *who);
/* Write the value at `from` (tensor, number or nested table) into `to` (held by the caller),
 * broadcast and converted; `who` is the function. */
void gp_lua_copy_into(lua_State *L, gp_tensor *to, int from, const char *who);
/* Push a tensor built from a number, boolean or nested table. dtype GP_DTYPE_COUNT: f32, or bool if
 * the first value is a boolean. */
void gp_lua_push_table(lua_State *L, int index, const char *who, gp_dtype dtype);

#endif
