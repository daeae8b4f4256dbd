/* bindings/binding.h - what the binding files share: the box, the state, checks, errors, apply.
 *
 * Bindings check arguments, make one call and push the result; policy lives in lua/. Checks raise
 * with longjmp, so they come before anything is acquired; what is acquired goes straight into a box
 * that the collector knows. Functions here that raise do so at the line of the user's code.
 *
 * Whatever makes an object in Lua (a box, a table, a string) may run the collector, and with it a
 * finalizer of the script that frees a tensor or closes a pipeline. So a binding makes its outputs
 * first and looks at its inputs last; what it must know earlier it copies (gp_lua_check_meta) or
 * holds by a reference that the script cannot reach (gp_lua_check_tensor, gp_lua_push_params). */
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
  bool labelled;    /* the label of the innermost one was put together */
  bool no_grad;     /* ops are not noted for gradients: gp.no_grad */
  bool listing;     /* new boxes are listed: gp.scope */
  bool relabel;     /* the trace has the label of a module that was left, or none */
  size_t limit;     /* bytes held by the runtime beyond which garbage is collected */
  size_t collects;  /* how often that happened */
  gp_status failed; /* of the last runtime call that raised */
} gp_lua;

gp_lua *gp_lua_state(lua_State *L);
/* Make `trace` (retained) the one that applications are recorded in; NULL ends tracing. */
void gp_lua_set_trace(lua_State *L, gp_trace *trace);
gp_trace *gp_lua_trace(lua_State *L);
/* The innermost open module, "3.fc (Linear 256 -> 10)", or "". Valid while the scope is open. */
const char *gp_lua_label(lua_State *L);
/* Before something is recorded: the trace takes the label of the innermost module. */
gp_status gp_lua_note_label(lua_State *L);
/* Push what the Lua side gave to core.hook(name, value), or nil. */
int gp_lua_push_hook(lua_State *L, const char *name);

/* ---- the box ------------------------------------------------------------------------------- */

/* A Lua tensor is one of: a real tensor, a parameter or buffer, a value of a trace. A freed one is
 * none. A real one may come from ops that are noted for gradients, or be a leaf where they end. */
typedef struct gp_box {
  const void *kind; /* tells boxes from other userdata: box.c */
  gp_tensor *tensor;
  gp_param *param;
  gp_trace *trace; /* with ref */
  gp_ref ref;
  int output;          /* of the history */
  gp_history *history; /* what made the tensor, where a gradient may be asked for */
  gp_param *leaf;      /* of a tensor that was asked to have a gradient */
} gp_box;

/* Collect garbage when the runtime holds more than the adaptive limit: before what holds much of
 * it. */
void gp_lua_collect_when_due(lua_State *L);
/* Make the metatable of another type of userdata and push it: with its finalizer, which has to be
 * idempotent, and closed to scripts. Methods are the caller's to add. */
void gp_lua_push_type(lua_State *L, const char *name, lua_CFunction clear);
/* Push the metatable of boxes: before the first of them is made. */
void gp_lua_new_class(lua_State *L);
/* Add list_made to the table on top. */
void gp_lua_open_boxes(lua_State *L);
/* Push an empty box, to be filled by the next call into the runtime: what it makes cannot leak.
 * Collects garbage first when the runtime holds more than the adaptive limit. */
gp_box *gp_lua_new_box(lua_State *L);
/* Push a box with another reference to `tensor`, borrowed from what no finalizer can free. */
void gp_lua_push_tensor(lua_State *L, gp_tensor *tensor);
/* Give back what the box holds; it is freed then. */
void gp_box_clear(gp_box *box);

gp_box *gp_lua_to_box(lua_State *L, int index); /* NULL where it is not a tensor */
/* Of a box that is not freed; valid until the next object is made in Lua. */
const gp_meta *gp_box_meta(const gp_box *box);
/* What an op applied now sees: of a parameter, maybe that of a model in halves. */
gp_dtype gp_lua_dtype(lua_State *L, const gp_box *box);
bool gp_meta_is_dense(const gp_meta *meta); /* row-major without gaps, whatever the offset */

/* Whether a gradient may be asked for: of a leaf, of a parameter outside of pipelines, of what came
 * from them. */
bool gp_box_has_gradient(const gp_box *box);
/* Errors: the box's elements may not be written in place: a gradient goes through them. */
void gp_lua_check_writable(lua_State *L, const gp_box *box, const char *who);
/* Whether writing the value (NULL: a number or a table) is an op of which a gradient may be asked:
 * then t takes the value over (gp_lua_take_value) instead of being written over. */
bool gp_lua_write_is_noted(lua_State *L, const gp_box *to, const gp_box *value);
/* Let t be the value that was computed for it, of its shape and dtype. Errors: other tensors view
 * t's memory. */
void gp_lua_take_value(lua_State *L, int to_index, int from_index, const char *who);

/* ---- errors -------------------------------------------------------------------------------- */

/* Raise the text of a failed runtime call, prefixed by the open module. For mistakes of the
 * caller. */
int gp_lua_fail(lua_State *L, gp_status status);
/* core.failure(message) -> the code of a message that gp_lua_fail raised last, else nil: errors are
 * told apart by what failed, never by their wording. */
int gp_lua_failure(lua_State *L);
/* Push nil, text, code and return 3. For failures of the world (files, devices). */
int gp_lua_return_failure(lua_State *L, gp_status status);
/* Raise `who: what is, what was wanted` in the format of lua_pushfstring. */
int gp_lua_error(lua_State *L, const char *format, ...);
/* Raise "<who> is <the value at index>, expected <wanted>". */
int gp_lua_bad_value(lua_State *L, int index, const char *who, const char *wanted);
/* The same for a name that is no dtype, with the one that other libraries call so. */
int gp_lua_bad_dtype(lua_State *L, int index, const char *who, const char *wanted);

/* The tokenizer of an object of core.tokenizer_load. Errors: another value. */
gp_tokenizer *gp_lua_check_tokenizer(lua_State *L, int index);

/* ---- checks: `who` is "function: parameter" ------------------------------------------------- */

gp_box *gp_lua_check_box(lua_State *L, int index, const char *who);
gp_box *gp_lua_check_live(lua_State *L, gp_box *box, const char *who); /* not freed */
/* A box whose elements can be read now. Errors: a value of a trace, a freed one. */
gp_box *gp_lua_check_known(lua_State *L, int index, const char *who);
/* A copy of dtype, shape and strides. Errors: not a tensor, a freed one. */
gp_meta gp_lua_check_meta(lua_State *L, int index, const char *who);
/* The real tensor behind a known box: of a parameter its value. It is pushed in a box of its own,
 * so that it lives as long as the call whatever the script's finalizers free. */
gp_tensor *gp_lua_check_tensor(lua_State *L, int index, const char *who);
/* The same, on the host: of a tensor on a GPU a copy. */
gp_tensor *gp_lua_check_host_tensor(lua_State *L, int index, const char *who);
/* The same tensor without a box of its own, for single elements: valid until the next object is
 * made in Lua. Only of a parameter the value is pushed. */
gp_tensor *gp_lua_peek_tensor(lua_State *L, int index, const char *who);
int64_t gp_lua_check_int(lua_State *L, int index, const char *who, int64_t low, int64_t high);
double gp_lua_check_number(lua_State *L, int index, const char *who);
/* 1-based or negative position among `size` -> 0-based. */
int64_t gp_lua_check_position(lua_State *L, int index, const char *who, int64_t size);
int gp_lua_check_dim(lua_State *L, int index, const char *who, int rank);
/* Refuse a list that has fields with names. */
void gp_lua_check_no_names(lua_State *L, int index, const char *who, const char *wanted);
/* A table of sizes, or sizes as arguments from `index` on; each >= low (0, or -1 for "infer"). */
void gp_lua_check_shape(lua_State *L, int index, const char *who, int64_t low, gp_shape *shape);
gp_dtype gp_lua_check_dtype(lua_State *L, int index, const char *who);
const char *gp_lua_check_string(lua_State *L, int index, const char *who);

/* Write the number or boolean at `index` into element `at`; false where the dtype cannot hold
 * it. */
bool gp_lua_try_store(lua_State *L, int index, gp_tensor *tensor, int64_t at);
/* The same, raising. */
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

/* Apply an op: record it where an input is symbolic (or a parameter while tracing), run it at once
 * otherwise. Pushes the outputs asked for. Errors: those of the op; values of another trace. */
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
/* Push a tensor built from a number, boolean or nested table. dtype GP_DTYPE_COUNT: f32, or bool
 * where the first value is a boolean. */
void gp_lua_push_table(lua_State *L, int index, const char *who, gp_dtype dtype);

#endif
