/* gpipe.h - the public interface of the runtime: what bindings (and C programs) may call.
 *
 * Everything behind it is internal. What holds for every function here:
 *   - a function that can fail returns a gp_status and leaves its text in gp_error_text() of the
 *     calling thread; GP_ENOMEM is possible wherever something is made, and not repeated below;
 *   - results go through the last pointer parameters, which are untouched on failure;
 *   - what `new`, `build` or `load` return belongs to the caller, who gives it back with `free`
 *     (NULL is fine); what `retain` counts is given back as often;
 *   - parameters are borrowed for the call unless a comment says taken or retained;
 *   - an object is used by one thread at a time; reference counts may be touched by any.
 *
 * The sections follow the data: values, where they come from, what is computed from them, the
 * model, its pipeline, the update, the files that remain.
 *
 * Dimension letters used in comments: B batch, T time, C channels, V vocabulary, N rows, M
 * micro-batches, S stages. */
#ifndef GPIPE_H
#define GPIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_VERSION "0.1.0"

enum { GP_MAX_RANK = 8, GP_MAX_INPUTS = 8, GP_MAX_OUTPUTS = 4 };

/* ---- status -------------------------------------------------------------------------------- */

/* X(NAME, code, meaning). One list makes the enum, the names and the codes that Lua sees. */
/* clang-format off */
#define GP_STATUS_LIST(X)                                                      \
  X(OK,           "ok",          "no error")                                   \
  X(EINVAL,       "invalid",     "an argument is not what the function takes") \
  X(ESHAPE,       "shape",       "shapes do not fit")                          \
  X(EDTYPE,       "dtype",       "dtypes do not fit")                          \
  X(ERANGE,       "range",       "a value is outside its range")               \
  X(ENOMEM,       "memory",      "memory could not be had")                    \
  X(EIO,          "io",          "the operating system refused an input or output operation") \
  X(EFORMAT,      "format",      "a file is not what it should be")            \
  X(EDEVICE,      "device",      "a device is missing or failed")              \
  X(ESTATE,       "state",       "the object is in the wrong state for this call") \
  X(EUNSUPPORTED, "unsupported", "this build cannot do that")                  \
  X(ESCHEDULE,    "schedule",    "a schedule is not valid")                    \
  X(EFINITE,      "finite",      "a value is not finite")                      \
  X(EINTERRUPT,   "interrupt",   "the user interrupted")                       \
  X(EINJECTED,    "injected",    "a test asked for this failure")             \
  X(ETIMEOUT,     "timeout",     "no progress was made for as long as is allowed")
/* clang-format on */

#define GP_STATUS_ENUM(name, code, what) GP_##name,
typedef enum gp_status { GP_STATUS_LIST(GP_STATUS_ENUM) GP_STATUS_COUNT } gp_status;
#undef GP_STATUS_ENUM

/* Text of the calling thread's last failure, "who: what is, what was wanted"; valid until its next
 * one. */
const char *gp_error_text(void);
/* "shape", "memory", ...: what Lua gets as `code`. */
const char *gp_status_code(gp_status status);

/* ---- dtype, shape, meta -------------------------------------------------------------------- */

/* X(NAME, "name", bytes, is_float) in the order of the enum. On CPUs f32 and f64 compute and the
 * others are stored and converted; on GPUs the halves, bf16 and f16, are computed with in f32 too. */
/* clang-format off */
#define GP_DTYPE_LIST(X)  \
  X(F32,  "f32",  4, 1)   \
  X(F64,  "f64",  8, 1)   \
  X(BF16, "bf16", 2, 1)   \
  X(F16,  "f16",  2, 1)   \
  X(I64,  "i64",  8, 0)   \
  X(I32,  "i32",  4, 0)   \
  X(U8,   "u8",   1, 0)   \
  X(BOOL, "bool", 1, 0)
/* clang-format on */

#define GP_DTYPE_ENUM(name, text, bytes, is_float) GP_##name,
typedef enum gp_dtype { GP_DTYPE_LIST(GP_DTYPE_ENUM) GP_DTYPE_COUNT } gp_dtype;
#undef GP_DTYPE_ENUM

const char *gp_dtype_name(gp_dtype dtype);
size_t gp_dtype_size(gp_dtype dtype); /* bytes of one element */
bool gp_dtype_is_float(gp_dtype dtype);
/* Errors: GP_EINVAL lists the names. */
gp_status gp_dtype_parse(const char *name, gp_dtype *dtype);

typedef struct gp_shape {
  int rank; /* 0 is a scalar */
  int64_t dim[GP_MAX_RANK];
} gp_shape;

/* How a value lies in its memory. A contiguous one is row-major with offset 0. */
typedef struct gp_meta {
  gp_dtype dtype;
  gp_shape shape;
  int64_t stride[GP_MAX_RANK]; /* elements; 0 where a dimension is broadcast */
  int64_t offset;              /* elements from the start of the storage */
} gp_meta;

/* Number of elements. Errors: GP_ESHAPE for negative dims and for more than 64 bits can count. */
gp_status gp_shape_numel(const gp_shape *shape, int64_t *numel);
bool gp_shape_equal(const gp_shape *a, const gp_shape *b);
/* Write "32x128" (or "scalar") into text of the given size, cut off where it is too small; returns
 * text. */
char *gp_shape_print(const gp_shape *shape, char *text, size_t size);

/* ---- tensors ------------------------------------------------------------------------------- */

/* A view of reference-counted storage, on the host or on a GPU. Immutable but for its elements. */
typedef struct gp_tensor gp_tensor;

/* Make a contiguous tensor; its elements are zero. Errors: GP_ESHAPE, GP_EDTYPE. */
gp_status gp_tensor_new(gp_dtype dtype, const gp_shape *shape, gp_tensor **tensor);
/* Make another view (meta copied) of the same storage, which both keep alive. Errors: GP_ESHAPE if
 * it leaves the storage, GP_EINVAL if elements would not be aligned. */
gp_status gp_tensor_view(gp_tensor *base, const gp_meta *meta, gp_tensor **tensor);
/* Make a scalar that is its element at flat row-major position `index`, which the caller has checked. */
gp_status gp_tensor_element(gp_tensor *tensor, int64_t index, gp_tensor **scalar);
gp_tensor *gp_tensor_retain(gp_tensor *tensor);
void gp_tensor_free(gp_tensor *tensor); /* gives one reference back */

const gp_meta *gp_tensor_meta(const gp_tensor *tensor); /* borrowed from the tensor */
int64_t gp_tensor_numel(const gp_tensor *tensor);
/* Address of element 0, offset applied; of a tensor on a GPU the host can do nothing with it. */
void *gp_tensor_data(const gp_tensor *tensor);
const char *gp_tensor_device(const gp_tensor *tensor); /* "cpu", "cuda:0" */
bool gp_tensor_is_host(const gp_tensor *tensor);
/* The values on another device: the tensor itself (retained) where it is there already, else a contiguous
 * copy. device: "cpu", "cuda:1". Errors: GP_EINVAL for no such name; GP_EDEVICE with what is missing. */
gp_status gp_tensor_move(gp_tensor *tensor, const char *device, gp_tensor **moved);
bool gp_tensor_is_contiguous(const gp_tensor *tensor);
size_t gp_tensor_bytes(const gp_tensor *tensor); /* bytes of the whole storage it keeps alive */
bool gp_tensor_overlaps(const gp_tensor *a, const gp_tensor *b); /* same storage */
/* Shape, dtype, every bit; on the host. */
bool gp_tensor_equal(const gp_tensor *a, const gp_tensor *b);

/* Copy elements with conversion: floats round to nearest even, become integers by truncation.
 * Shapes: equal. Errors: GP_ESHAPE. */
gp_status gp_tensor_copy(gp_tensor *to, const gp_tensor *from);
/* Read or write the element at flat row-major position `index` of a tensor on the host: 0-based and in
 * range, which is the caller's to check. Integers keep 64 bits. Cost: a division per dimension; for single elements. */
double gp_tensor_get_double(const gp_tensor *tensor, int64_t index);
int64_t gp_tensor_get_int(const gp_tensor *tensor, int64_t index);
void gp_tensor_set_double(gp_tensor *tensor, int64_t index, double value);
void gp_tensor_set_int(gp_tensor *tensor, int64_t index, int64_t value);

/* ---- random numbers ------------------------------------------------------------------------ */

typedef enum gp_init_kind { GP_INIT_CONSTANT, GP_INIT_UNIFORM, GP_INIT_NORMAL } gp_init_kind;

/* What fills a tensor: a constant a; uniform in [a, b); normal with mean a and deviation b. */
typedef struct gp_init {
  gp_init_kind kind;
  double a, b;
} gp_init;

/* Fill a contiguous f32 or f64 tensor from Philox stream (seed, stream). The bits depend on nothing
 * else. Errors: GP_EINVAL, GP_EDTYPE.
 * Source: Salmon et al. 2011, Philox4x32-10; Box-Muller for normals. */
gp_status gp_tensor_fill(gp_tensor *tensor, const gp_init *init, uint64_t seed, uint64_t stream);
/* order[n] receives a permutation of 0..n-1. Source: Fisher-Yates over Philox (seed, stream). */
void gp_random_permutation(int64_t *order, int64_t n, uint64_t seed, uint64_t stream);

/* ---- data: files in, batches out ------------------------------------------------------------ */

/* Read a whole file into a u8 tensor of one dimension. Errors: GP_EIO. */
gp_status gp_file_read(const char *path, gp_tensor **bytes);
/* Write bytes as a file, whole or not at all: the old one stays on any failure. Errors: GP_EIO. */
gp_status gp_file_write(const char *path, const void *data, size_t bytes);
/* names[count] receives the paths of the regular files below path (itself if a file), sorted by
 * bytes, hidden ones left out. Ownership: gp_file_list_free. Errors: GP_EIO. */
gp_status gp_file_list(const char *path, char ***names, size_t *count);
void gp_file_list_free(char **names, size_t count);

typedef struct gp_csv_options {
  bool header;    /* the first line names the columns */
  char separator; /* ',' or another ASCII character */
} gp_csv_options;

/* Read a file of numbers, one row a line. Quoted fields, CRLF, a byte order mark and blank lines
 * are understood. Shapes: values is f64 [rows, columns]; names[count] is the header (NULL and 0
 * without one). Ownership: names with gp_file_list_free. Errors: GP_EIO; GP_EFORMAT with file:line
 * and column. Source: RFC 4180. */
gp_status gp_csv_read(const char *path, const gp_csv_options *options, gp_tensor **values,
                      char ***names, size_t *count);

/* Copy rows of a contiguous tensor in the order of `positions`. Shapes: tensor [N, ..], positions
 * i64 [n] (0-based), rows [n, ..]. Errors: GP_ESHAPE; GP_ERANGE for a position. */
gp_status gp_data_rows(const gp_tensor *tensor, const gp_tensor *positions, gp_tensor **rows);
/* Cut windows of context + 1 bytes as ids and next ids. Shapes: bytes u8 [size], starts i64 [n]
 * (0-based); x i64 [n, context] receives the first `context` bytes of each, y the last ones.
 * Errors: GP_ESHAPE; GP_ERANGE for context or a start. */
gp_status gp_data_windows(const gp_tensor *bytes, const gp_tensor *starts, int64_t context,
                          gp_tensor **x, gp_tensor **y);
/* Put contiguous u8 tensors one after the other into one dimension. Errors: GP_EDTYPE. */
gp_status gp_data_join(gp_tensor *const *parts, size_t count, gp_tensor **joined);

/* ---- ops ----------------------------------------------------------------------------------- */

#define GP_OP(name) GP_OP_##name,
typedef enum gp_op {
#include "ops/ops.def"
  GP_OP_COUNT
} gp_op;
#undef GP_OP

/* What an op needs besides its inputs; ops.def says what each slot means. Unused slots are 0. */
typedef struct gp_attrs {
  int64_t i[12];
  double f[2];
} gp_attrs;

const char *gp_op_name(gp_op op); /* "?" for none */
/* Errors: GP_EINVAL. */
gp_status gp_op_find(const char *name, gp_op *op);
/* Run an op at once, on the calling thread. outputs[GP_MAX_OUTPUTS] receives *n_outputs new
 * tensors; that of a view shares its input's storage. Errors: those of the op, after its name. */
gp_status gp_eager_apply(gp_op op, const gp_attrs *attrs, gp_tensor *const *inputs, int n_inputs,
                         gp_tensor **outputs, int *n_outputs);
/* Seed of the random ops that the calling thread runs eagerly; each application of one advances
 * their clock. */
void gp_eager_seed(uint64_t seed);

/* ---- parameters ---------------------------------------------------------------------------- */

/* A parameter or buffer of a model: its first value is drawn from (seed, number) when it is first
 * needed. Reference-counted; a pipeline moves the value into the arena of its stage. */
typedef struct gp_param gp_param;

typedef struct gp_param_spec {
  gp_dtype dtype; /* float */
  gp_shape shape;
  gp_init init;
  uint64_t seed, number; /* number: how many parameters were declared before it */
  bool buffer;           /* state without gradient, written by `assign` in forward */
  bool frozen;           /* no gradient and no moments */
} gp_param_spec;

/* Declare one; nothing is drawn yet. Errors: GP_EDTYPE, GP_ESHAPE. */
gp_status gp_param_new(const gp_param_spec *spec, gp_param **param);
gp_param *gp_param_retain(gp_param *param);
void gp_param_free(gp_param *param);
const gp_meta *gp_param_meta(const gp_param *param);
bool gp_param_is_buffer(const gp_param *param);
bool gp_param_is_frozen(const gp_param *param);
/* Errors: GP_ESTATE while a pipeline owns it. */
gp_status gp_param_set_frozen(gp_param *param, bool frozen);
/* The current value, drawn where it does not exist yet; receives a new reference. It sees later
 * updates until a pipeline takes the parameter and moves its value. */
gp_status gp_param_value(gp_param *param, gp_tensor **value);
/* The gradient of the last step; receives a new reference, or NULL where there is none. */
void gp_param_grad(const gp_param *param, gp_tensor **grad);

/* ---- tracing ------------------------------------------------------------------------------- */

/* A value in a trace; GP_NONE is "no value". */
typedef int32_t gp_ref;
enum { GP_NONE = -1 };

/* The straight-line record of one forward pass for one input shape. Reference-counted. */
typedef struct gp_trace gp_trace;
typedef enum gp_input_kind { GP_INPUT_BATCH, GP_INPUT_TARGET } gp_input_kind;

/* training: what dropout and its kin are to do; the tracer asks for it. */
gp_status gp_trace_new(bool training, gp_trace **trace);
gp_trace *gp_trace_retain(gp_trace *trace);
void gp_trace_free(gp_trace *trace);
bool gp_trace_is_training(const gp_trace *trace);
/* Read f32 parameters from here on in this dtype, bf16 or f16; f32: as they are. Their gradients stay f32. */
void gp_trace_set_half(gp_trace *trace, gp_dtype dtype);
/* The dtype in which a parameter is read now. */
gp_dtype gp_trace_reads(const gp_trace *trace, const gp_param *param);
/* Multiply the gradient that the backward pass starts from with the pipeline's loss scale. */
void gp_trace_set_scaled(gp_trace *trace);

/* Declare the next input of the micro-batch, or the next target. Of meta the strides do not count:
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
/* What follows belongs to layer `layer` (0-based, of the outermost Sequential), and to the module
 * with this label (copied), e.g. "3.fc (Linear 256 -> 10)"; both are kept with each op, the label
 * is what failures name. */
void gp_trace_set_layer(gp_trace *trace, int layer);
gp_status gp_trace_set_label(gp_trace *trace, const char *label);

/* Valid until something is appended: values move when their array grows. */
const gp_meta *gp_trace_meta(const gp_trace *trace, gp_ref ref);
/* Units: multiplications and additions, and bytes read and written, of all ops so far. */
void gp_trace_cost(const gp_trace *trace, double *flop, double *bytes);

/* ---- schedules ----------------------------------------------------------------------------- */

/* X(NAME, text): what an action does, and its letters in the text form, which is that of
 * torch.distributed.pipelining's CSV. Compute first; then what lowering adds; U is an update, and its
 * micro is the number of the update. IDLE is an empty cell. */
#define GP_ACT_LIST(X)                                                                             \
  X(F, "F")                                                                                        \
  X(B, "B")                                                                                        \
  X(I, "I")                                                                                        \
  X(W, "W")                                                                                        \
  X(R, "R")                                                                                        \
  X(U, "U")                                                                                        \
  X(C, "C")                                                                                        \
  X(P, "P")                                                                                        \
  X(SEND_F, "SEND_F")                                                                              \
  X(RECV_F, "RECV_F")                                                                              \
  X(SEND_B, "SEND_B")                                                                              \
  X(RECV_B, "RECV_B")                                                                              \
  X(REDUCE, "REDUCE_GRAD")                                                                         \
  X(UNSHARD, "UNSHARD")                                                                            \
  X(RESHARD, "RESHARD")                                                                            \
  X(IDLE, "")
#define GP_ACT_ENUM(name, text) GP_ACT_##name,
typedef enum gp_act { GP_ACT_LIST(GP_ACT_ENUM) GP_ACT_COUNT } gp_act;
#undef GP_ACT_ENUM

const char *gp_act_name(gp_act act); /* its letters */

typedef struct gp_action {
  uint8_t op;      /* gp_act */
  bool joined;     /* one action together with the next one: "(0F4;3B1)" */
  int32_t stage;   /* -1 in an empty cell */
  int32_t micro;   /* -1 where there is none (REDUCE, UNSHARD, RESHARD) */
  int32_t version; /* of the weights: after so many updates; -1: not said */
} gp_action;

/* Lists of actions under construction, one per device: 16 bytes an action. */
typedef struct gp_rows gp_rows;

gp_status gp_rows_new(int device_count, gp_rows **rows);
void gp_rows_free(gp_rows *rows);
int gp_rows_device_count(const gp_rows *rows);
/* Append one action. Errors: GP_ERANGE for a device that is not there; GP_ENOMEM. */
gp_status gp_rows_add(gp_rows *rows, int device, const gp_action *action);
/* Append what a text holds, "0F0,0F1,(0F2;3B0)OVERLAP_F_B,,0B1,2F5@3". Errors: GP_ESCHEDULE, with
 * the number of actions before the faulty one in *position (optional). */
gp_status gp_rows_read(gp_rows *rows, int device, const char *text, int *position);
/* Actions of a device, valid until the next change. */
const gp_action *gp_rows_get(const gp_rows *rows, int device, int *count);
/* Write the text of actions[count] into text[size]; returns the length it needs without the end. */
size_t gp_rows_print(const gp_action *actions, int count, char *text, size_t size);

/* Lists of actions per device, verified: complete, in a possible order, on the right devices. */
typedef struct gp_schedule gp_schedule;

typedef struct gp_schedule_spec {
  const gp_rows *rows;
  int stage_count, copy_count; /* copy_count: devices per stage, 1 or 2 */
  const int32_t *placement;    /* stage after stage: copy_count devices each */
  int batch;                   /* micro-batches per update; 0: synchronous */
  int micro_count;             /* how many there must be; 0: as many as there are */
} gp_schedule_spec;

/* What is wrong with a schedule: see verify in docs/schedules.md for the checks. */
typedef struct gp_schedule_fault {
  const char *check;
  int device, position; /* of the action, from 0; -1: none */
} gp_schedule_fault;

/* Verify; fault (optional) receives what the text says. Ownership: actions are copied. Errors: GP_ESCHEDULE, the text prints the grid with the
 * faulty action marked. */
gp_status gp_schedule_new(const gp_schedule_spec *spec, gp_schedule **schedule,
                          gp_schedule_fault *fault);
void gp_schedule_free(gp_schedule *schedule);
/* Another schedule, of this one's forward passes alone, or of these first and then its backward passes.
 */
gp_status gp_schedule_part(const gp_schedule *schedule, bool backward, gp_schedule **part);
int gp_schedule_device_count(const gp_schedule *schedule);
/* Actions of a device as they were given. */
const gp_action *gp_schedule_get(const gp_schedule *schedule, int device, int *count);

/* What a schedule may take beside being one; negative fields (or NULL) are not checked. */
typedef struct gp_schedule_limits {
  int capacity;             /* messages a channel holds before its sender blocks; 0: they meet */
  int versions;             /* of a stage's weights alive at once, the newest included */
  int buffers;              /* of a stage: micro-batch i takes number i mod buffers */
  const int32_t *peak_live; /* per device: activations of a (stage, micro-batch) alive at once */
} gp_schedule_limits;

/* Check the limits. Errors: GP_ESCHEDULE, as gp_schedule_new. */
gp_status gp_schedule_limit(const gp_schedule *schedule, const gp_schedule_limits *limits,
                            gp_schedule_fault *fault);
/* The smallest capacity with which the schedule ends, and with which (at unit costs) it is as fast as with
 * any; channels are those of an edge, direction and pair of devices. Cost: a run per guess. */
gp_status gp_schedule_capacity(const gp_schedule *schedule, int *works, int *full_speed);
/* The most activations alive at once, per device and [stage][copy]. */
gp_status gp_schedule_peaks(const gp_schedule *schedule, int32_t *per_device, int32_t *per_stage);
/* Where the activations of a stage lie: slot[stage][micro], and count[stage][copy] of them. */
gp_status gp_schedule_slots(const gp_schedule *schedule, int32_t *slot, int32_t *count);
/* The most versions of the weights alive at once, live[stage][copy]; 1 in a synchronous schedule. */
gp_status gp_schedule_versions(const gp_schedule *schedule, int32_t *live);
int gp_schedule_stage_count(const gp_schedule *schedule);
int gp_schedule_micro_count(const gp_schedule *schedule);
int gp_schedule_copy_count(const gp_schedule *schedule);
/* Devices of the stages, [stage][copy]. */
const int32_t *gp_schedule_placement(const gp_schedule *schedule);

/* Passes: rows (new, the caller's) made of a schedule's.
 * comms: with the sends and receives of every edge that crosses devices and has none, where
 * torch.distributed.pipelining puts them; empty cells delay receives and go. merged: B for each I that its
 * W directly follows; empty cells go. compute: without sends, receives, shards and reductions. */
gp_status gp_schedule_comms(const gp_schedule *schedule, gp_rows **rows);
gp_status gp_schedule_merged(const gp_schedule *schedule, gp_rows **rows);
gp_status gp_schedule_compute(const gp_schedule *schedule, gp_rows **rows);
/* Steps it takes when each device does one action a step: torch's dry run. step (optional) receives the
 * step of each action, device after device. Cost: steps x devices. */
gp_status gp_schedule_steps(const gp_schedule *schedule, int32_t *step, int *steps);

/* ---- simulation ---------------------------------------------------------------------------- */

/* What the actions of a schedule cost, in any unit of time. Lists have one number per stage, are
 * borrowed for the call, and may be NULL: nothing. */
typedef struct gp_costs {
  int stage_count; /* numbers in a list; hop: one less */
  const double
      *act[GP_ACT_COUNT];    /* of one action; without one for B it takes I + W; P: what each of
                                      its devices does for the stage before its first action */
  const double *hop[2];      /* per stage edge: how long an activation, a gradient travels
                                      between devices; edge 0 is between stages 0 and 1 */
  double joined;             /* joined actions take this times the sum of their costs */
  bool blocking;             /* a device does nothing else while it sends */
  bool barrier;              /* no update before all gradients of the step are there */
  int capacity;              /* values a channel holds before its sender waits; -1: any number */
  const double *activation;  /* bytes per micro-batch, from F or R to the last backward action */
  const double *after_input; /* bytes of these that W reads after I; NULL: all */
  const double *resident;    /* bytes that stay on each device of the stage */
  const double *version;     /* bytes of each version of the weights beyond the newest */
} gp_costs;

typedef struct gp_device_load {
  double begin, end; /* of its first and last action */
  double work;       /* sum of the costs of its actions */
  int32_t peak_live; /* activations of one (stage, micro-batch) held at once */
  int32_t versions;  /* most versions of the weights of one stage, 1 where there are no updates */
  double peak_bytes; /* as the costs say */
} gp_device_load;

/* Why an action of the critical path began when it did: at the start, when the action before it on
 * its device ended, when a value (or the last gradient) was there, or when a full channel let its
 * device go. */
typedef enum gp_reason { GP_BY_START, GP_BY_DEVICE, GP_BY_VALUE, GP_BY_CHANNEL } gp_reason;

typedef struct gp_critical {
  int32_t device, position; /* the action, the first of joined ones */
  gp_reason reason;
} gp_critical;

/* A schedule run with costs instead of devices. It borrows the schedule. */
typedef struct gp_simulation gp_simulation;

/* Each device runs its list in order; an action begins when its device is free and its inputs have
 * arrived; joined actions begin and end together; empty cells take no time.
 * Cost: linear in the number of actions; 16 bytes each stay. Errors: GP_ERANGE for a cost that is no
 * number from 0 on; GP_ESCHEDULE where devices wait for each other, as with channels too small. */
gp_status gp_simulation_new(const gp_schedule *schedule, const gp_costs *costs,
                            gp_simulation **simulation);
void gp_simulation_free(gp_simulation *simulation);
/* From 0 to the end of the last action; and the longest that one device took, first to last. */
double gp_simulation_makespan(const gp_simulation *simulation);
double gp_simulation_span(const gp_simulation *simulation);
const gp_device_load *gp_simulation_device(const gp_simulation *simulation, int device);
/* Begin and end of the actions of a device, in the order of gp_schedule_get. */
void gp_simulation_times(const gp_simulation *simulation, int device, const double **begin,
                         const double **finish);
/* Actions from the start to the end of the step that no other could have shortened alone. */
const gp_critical *gp_simulation_critical(const gp_simulation *simulation, int *count);

/* ---- lowering ------------------------------------------------------------------------------ */

typedef enum gp_checkpoint {
  GP_CHECKPOINT_NEVER,
  GP_CHECKPOINT_ALWAYS,
  GP_CHECKPOINT_EXCEPT_LAST /* nothing is recomputed where backward directly follows forward */
} gp_checkpoint;

/* Where a synchronous schedule updates: not at all (the script does), after a barrier over all
 * devices, or stage by stage as soon as its own gradients are there. */
typedef enum gp_update_mode { GP_UPDATE_NONE, GP_UPDATE_BARRIER, GP_UPDATE_FREE } gp_update_mode;

typedef struct gp_lower_options {
  gp_checkpoint checkpoint;
  gp_update_mode update;
} gp_lower_options;

/* Rows (new, the caller's) with what lowering adds for every model: recomputation, weight gradients in
 * ascending order, reductions over two copies of a stage, updates. */
gp_status gp_schedule_lowered(const gp_schedule *schedule, const gp_lower_options *options,
                              gp_rows **rows);

/* ---- pipelines ----------------------------------------------------------------------------- */

/* A model cut into stages, each on a device, and the workers that run it. */
typedef struct gp_pipeline gp_pipeline;

typedef struct gp_device_spec {
  const char *name; /* "cpu:0" */
  int threads;      /* of its team, 1..64 */
} gp_device_spec;

/* Dynamic loss scaling, of f16: all gradients are computed times `scale`. Where they are not finite the
 * update is skipped and the scale becomes smaller, after `window` runs without that it grows. */
typedef struct gp_loss_scale {
  double scale; /* now; 0: gradients are not scaled */
  double growth, backoff, min;
  int64_t window;
  int64_t good, stuck; /* runs in a row: whose gradients were finite; that failed at the minimum */
  int64_t skipped;     /* so far */
} gp_loss_scale;

typedef struct gp_pipeline_spec {
  int stage_count, layer_count, device_count, param_count;
  int copy_count;           /* devices per stage, 1 or 2; 0 is 1 */
  const int32_t *placement; /* stage after stage: copy_count devices; NULL: stage s on device s */
  const int32_t *stage_of;  /* per layer; one entry more for the loss (the last stage) */
  const gp_device_spec *devices;
  gp_param *const *params;    /* in order of declaration, buffers included; retained */
  const int32_t *param_layer; /* per parameter: the layer that owns it, from 0 */
  gp_checkpoint checkpoint;
  uint64_t seed;   /* of dropout */
  bool finite;     /* values that are not finite fail the step */
  double watchdog; /* seconds without progress after which a run is given up; 0: never */
  bool unfused;    /* every op runs by itself: for comparisons */
  bool tf32;       /* GPUs may round the inputs of products of f32 matrices */
  gp_loss_scale loss_scale;
} gp_pipeline_spec;

/* Start the workers and move the parameters into the arenas of their stages. Threads: one worker a
 * device, its team besides. Errors: GP_ESTATE when another live pipeline owns the model; GP_EINVAL
 * for GPIPE_FAULT in the environment. */
gp_status gp_pipeline_new(const gp_pipeline_spec *spec, gp_pipeline **pipeline);
/* Stop the workers, drop the plans and give the model back; parameters keep their values.
 * Idempotent. */
void gp_pipeline_close(gp_pipeline *pipeline);
void gp_pipeline_free(gp_pipeline *pipeline); /* closes it first */

/* ---- plans: what one batch shape needs ------------------------------------------------------ */

/* Programs, memory and the lowered schedule. It belongs to its pipeline. */
typedef struct gp_plan gp_plan;

typedef enum gp_plan_kind {
  GP_PLAN_STEP,     /* forward, loss, backward as scheduled */
  GP_PLAN_SPLIT,    /* forward of all micro-batches; backward when its gradient is given */
  GP_PLAN_EVALUATE, /* forward and loss */
  GP_PLAN_FORWARD   /* forward only */
} gp_plan_kind;

/* The traced model for micro-batches of `rows` rows; there are `micros` of them. */
typedef struct gp_plan_shape {
  gp_trace *trace; /* taken */
  int64_t rows;
  int micros;
  gp_ref output;          /* what the model returns; GP_NONE in plans with a loss */
  gp_ref loss_sum;        /* scalar; GP_NONE in plans without a loss */
  gp_ref loss_count;      /* integer scalar that depends on the targets alone, or GP_NONE */
  int64_t constant_count; /* of this micro-batch, where loss_count is GP_NONE */
} gp_plan_shape;

typedef struct gp_plan_spec {
  gp_plan_kind kind;
  const gp_schedule *schedule; /* placement and order */
  gp_plan_shape shapes[2];     /* larger micro-batches first; the second may have micros = 0 */
  bool sum_loss;               /* the loss is the sum itself: no division by the count */
} gp_plan_spec;

/* Build a plan and take all the memory that its runs need. Ownership: traces are taken, also on
 * failure; the plan is the pipeline's until it is dropped or the pipeline closes. Errors:
 * GP_ESCHEDULE where the schedule does not fit the pipeline; those of the gradient rules. */
gp_status gp_plan_build(gp_pipeline *pipeline, const gp_plan_spec *spec, gp_plan **plan);
void gp_plan_drop(gp_pipeline *pipeline, gp_plan *plan);
/* Whether the pipeline has this plan; only the address is looked at. */
bool gp_pipeline_has_plan(const gp_pipeline *pipeline, const gp_plan *plan);
/* The bytes that the runs of such a plan would take on each device, with this mode: bytes[devices of the
 * pipeline]. Nothing is taken or kept. Ownership and errors: as above. */
gp_status gp_plan_measure(gp_pipeline *pipeline, const gp_plan_spec *spec, gp_checkpoint checkpoint,
                          size_t *bytes);
/* What a device has left for plans; SIZE_MAX where that is not known: on the host. Errors: GP_EDEVICE. */
gp_status gp_pipeline_free_bytes(const gp_pipeline *pipeline, int device, size_t *bytes);

/* What crosses a cut: a value that one stage makes and others read. */
typedef struct gp_edge_info {
  const char *label; /* of the layer that makes it, borrowed from the plan */
  int from, to_count;
  const int32_t *to; /* reading stages, ascending; borrowed */
  bool backward;     /* a gradient */
  int slots;         /* values that may be under way at once */
  size_t bytes;      /* of one */
} gp_edge_info;

/* What a stage needs beside its parameters, on one of its devices. */
typedef struct gp_stage_info {
  int versions;         /* of the weights, the newest included */
  int kept, recomputed; /* micro-batches whose values are kept or made again at once */
  int carried;          /* for which I ran and W did not yet */
  size_t kept_bytes, recomputed_bytes, carried_bytes; /* of one micro-batch */
} gp_stage_info;

/* The lowered schedule of a plan, as text: compute, recomputation, updates, and sends and receives of the
 * values that cross devices (">3" where it is not the next stage). Writes into text[size]; returns the
 * length that it needs without the end. */
size_t gp_plan_print(const gp_plan *plan, int device, char *text, size_t size);
int gp_plan_edge_count(const gp_plan *plan);
void gp_plan_edge_info(const gp_plan *plan, int edge, gp_edge_info *info);
void gp_plan_stage_info(const gp_plan *plan, int stage, int copy, gp_stage_info *info);
/* Multiplications and additions, and bytes moved, of an action (F, B, I, W or R) of a stage for one of the
 * larger micro-batches; zero where the plan does not run it. */
void gp_plan_cost(const gp_plan *plan, int stage, gp_act act, double *flop, double *bytes);

/* Of the output of one larger micro-batch, borrowed from the plan; NULL where it has none. */
const gp_meta *gp_plan_output_meta(const gp_plan *plan);

/* ---- running ------------------------------------------------------------------------------- */

/* See optimizers, below. */
typedef struct gp_optimizer gp_optimizer;
typedef struct gp_optim_hyper gp_optim_hyper;

typedef struct gp_run_args {
  gp_tensor *const *inputs, *const *targets; /* whole mini-batch [N, ..], contiguous */
  int input_count, target_count;             /* as many as were traced; at most 8 each */
  gp_tensor *output;   /* receives the rows of all micro-batches (FORWARD, SPLIT); contiguous */
  gp_tensor *out_grad; /* GP_PLAN_SPLIT: not NULL runs the backward half; like output */
  const gp_optim_hyper *hyper; /* per group of the optimizer in use; NULL without one */
  bool accumulate;             /* add to the gradients that are there */
} gp_run_args;

typedef struct gp_run_result {
  double loss;   /* mean (or sum, see sum_loss); 0 without a loss */
  int64_t count; /* what it was divided by: rows or valid tokens of the mini-batch */
} gp_run_result;

/* Hand the mini-batch to the workers and wait. On failure gradients are zero and parameters and
 * buffers as before. Cost: allocates nothing. Errors: the first failing action's, in schedule
 * order; GP_EINTERRUPT; GP_ETIMEOUT (see gp_pipeline_report); GP_ESTATE while a stream is open. */
gp_status gp_pipeline_run(gp_pipeline *pipeline, gp_plan *plan, const gp_run_args *args,
                          gp_run_result *result);

/* Give the mini-batch to the workers and return while they go on: for asynchronous schedules, and for
 * synchronous ones without a barrier. Asynchronous: returns when the first stage has taken it in; the
 * losses that are known then depend on the schedule alone. Without a barrier: when its loss is known.
 * The first one opens a stream, which runs this plan only. Ownership: tensors are retained until the
 * workers are done with them. Errors: as gp_pipeline_run; the stream is over then, and where stages were
 * updated already the pipeline refuses to go on until gp_pipeline_mend. */
gp_status gp_pipeline_feed(gp_pipeline *pipeline, gp_plan *plan, const gp_run_args *args);
/* Run what was fed to its end and close the stream; nothing to do without one. */
gp_status gp_pipeline_drain(gp_pipeline *pipeline);
/* The plan of the open stream; NULL without one. */
const gp_plan *gp_pipeline_stream(const gp_pipeline *pipeline);
/* Losses that became known and were not taken yet, one for each mini-batch of the schedule, in order:
 * losses[room] receives them; returns how many. */
int gp_pipeline_losses(gp_pipeline *pipeline, double *losses, int room);

typedef struct gp_use_options {
  double clip_norm;      /* of all gradients, before the update; 0: none */
  gp_update_mode update; /* GP_UPDATE_BARRIER or GP_UPDATE_FREE; NONE ends the use */
} gp_use_options;

/* Make the update an action of the schedule, on the devices of the stages; plans built before are of no
 * use afterwards: drop them. Ownership: the pipeline keeps the optimizer until another one is used or it
 * closes. Errors: GP_EINVAL where it has parameters of another pipeline. */
gp_status gp_pipeline_use(gp_pipeline *pipeline, gp_optimizer *optimizer,
                          const gp_use_options *options);
/* Some stages were updated and others not: the pipeline wants a state to be loaded. */
bool gp_pipeline_is_broken(const gp_pipeline *pipeline);
void gp_pipeline_mend(gp_pipeline *pipeline); /* after a state was loaded */

/* What every device did, and waited for, when the last run was given up (GP_ETIMEOUT, GP_EINTERRUPT): lines
 * of text, borrowed; "" where it was not. */
const char *gp_pipeline_report(const gp_pipeline *pipeline);
/* A worker never came back from such a run: nothing works any more but to close it, and what the worker may
 * use is never given back. */
bool gp_pipeline_is_lost(const gp_pipeline *pipeline);

void gp_pipeline_zero_grad(gp_pipeline *pipeline);
/* Training passes so far: the clock of dropout, so it belongs to a checkpoint. */
uint32_t gp_pipeline_step_count(const gp_pipeline *pipeline);
void gp_pipeline_set_step_count(gp_pipeline *pipeline, uint32_t steps);
/* Loss scaling as it stands; settable between runs: it belongs to a checkpoint too. */
void gp_pipeline_loss_scale(const gp_pipeline *pipeline, gp_loss_scale *scale);
void gp_pipeline_set_loss_scale(gp_pipeline *pipeline, const gp_loss_scale *scale);

typedef struct gp_device_stats {
  double busy, span; /* seconds of the last run: inside actions; from first begin to last end */
  int peak_live;     /* activations (of a stage and micro-batch) kept at once */
  size_t peak_bytes; /* of the device's activation memory */
} gp_device_stats;

/* Figures of the last run; zero before the first. device: from 0. */
void gp_pipeline_stats(const gp_pipeline *pipeline, int device, gp_device_stats *stats);
double gp_pipeline_seconds(const gp_pipeline *pipeline); /* wall time */
/* One action of the last run; seconds from its begin. wait: when the device began to wait for it. */
typedef struct gp_timed_action {
  gp_action action;
  double wait, begin, end;
} gp_timed_action;

/* Actions of a device in the order they ran; of a stream the last ones. i: from 0. */
int gp_pipeline_event_count(const gp_pipeline *pipeline, int device);
void gp_pipeline_event(const gp_pipeline *pipeline, int device, int i, gp_timed_action *timed);

/* ---- optimizers ---------------------------------------------------------------------------- */

typedef enum gp_optim_kind { GP_OPTIM_SGD, GP_OPTIM_ADAM, GP_OPTIM_ADAMW } gp_optim_kind;

/* Names and meaning as in torch.optim; what a kind does not use is ignored. */
struct gp_optim_hyper {
  gp_optim_kind kind;
  double lr, weight_decay, momentum, beta1, beta2, eps;
  bool nesterov;
};

/* gp_optimizer: moments and the number of steps, for parameters of one pipeline. */

/* Parameters that share hyper-parameters. */
typedef struct gp_optim_group {
  gp_param *const *params; /* retained */
  int count;
} gp_optim_group;

/* Make one with moments of zero. */
gp_status gp_optimizer_new(gp_optim_kind kind, const gp_optim_group *groups, int group_count,
                           gp_optimizer **optimizer);
void gp_optimizer_free(gp_optimizer *optimizer);
/* Update every parameter that has a gradient; hyper[] has one entry per group. The workers of the
 * stages do it. Errors: GP_ESTATE where the parameters belong to no live pipeline or to two;
 * GP_EINVAL for hyper-parameters out of range.
 * Does nothing where the loss scale overflowed (gp_loss_scale).
 * Source: torch.optim.SGD (dampening 0), Adam and AdamW. */
gp_status gp_optimizer_step(gp_optimizer *optimizer, const gp_optim_hyper *hyper);
/* Updates so far: Adam's bias correction depends on it. */
int64_t gp_optimizer_steps(const gp_optimizer *optimizer);
void gp_optimizer_set_steps(gp_optimizer *optimizer, int64_t steps);
/* The k-th moment (0-based) of a parameter, NULL where there is none. Ownership: receives a new
 * reference to memory that lives as long as the optimizer. */
void gp_optimizer_moment(const gp_optimizer *optimizer, const gp_param *param, int k,
                         gp_tensor **moment);
/* Scale all gradients so that their global Euclidean norm is at most max; norm receives what it was
 * before. The sum has one order for every cut. */
gp_status gp_clip_grad_norm(gp_param *const *params, int count, double max, double *norm);

/* ---- archives: safetensors files ------------------------------------------------------------ */

/* Named tensors and string metadata, in order. */
typedef struct gp_archive gp_archive;

gp_status gp_archive_new(gp_archive **archive);
void gp_archive_free(gp_archive *archive);
/* Append a tensor (retained) or a metadata pair (copied). Errors: GP_EINVAL for a name given twice,
 * too long or not UTF-8. */
gp_status gp_archive_add(gp_archive *archive, const char *name, gp_tensor *tensor);
gp_status gp_archive_add_text(gp_archive *archive, const char *key, const char *value);

/* What these return is borrowed; index < count. */
size_t gp_archive_count(const gp_archive *archive);
const char *gp_archive_name(const gp_archive *archive, size_t index);
gp_tensor *gp_archive_tensor(const gp_archive *archive, size_t index);
size_t gp_archive_text_count(const gp_archive *archive);
const char *gp_archive_text_key(const gp_archive *archive, size_t index);
const char *gp_archive_text_value(const gp_archive *archive, size_t index);

/* Write as safetensors: a temporary file, fsync, rename, fsync of the folder; the old file stays on
 * any failure. Errors: GP_EIO; GP_EINVAL where the header would exceed what the format allows. */
gp_status gp_archive_save(const gp_archive *archive, const char *path);
/* Read a safetensors file, which is not trusted: every offset is checked against the file.
 * Errors: GP_EIO, GP_EFORMAT. */
gp_status gp_archive_load(const char *path, gp_archive **archive);

/* ---- the process: memory, machine, interrupts ----------------------------------------------- */

typedef struct gp_memory_info {
  size_t live, peak;    /* bytes of everything the runtime holds */
  uint64_t allocations; /* calls so far: flat while a pipeline steps */
} gp_memory_info;

gp_memory_info gp_memory(void);
/* Let the n-th allocation from now on fail (1 is the next one; 0 turns it off). For tests. */
void gp_memory_fail_at(uint64_t n);

typedef struct gp_machine {
  int cores;       /* cores this process may use: affinity mask and cgroup quota */
  size_t memory;   /* bytes this process may use: RAM and cgroup limit */
  const char *isa; /* "avx512", "avx2", "baseline" */
  char model[64];  /* processor name */
} gp_machine;

gp_machine gp_machine_info(void);

/* A GPU. */
typedef struct gp_gpu_facts {
  char model[96];
  int major, minor, sm_count; /* compute capability; multiprocessors */
  size_t memory;              /* bytes */
  size_t live, peak;          /* bytes that this process holds there, by its own account */
} gp_gpu_facts;

/* Errors: GP_EDEVICE with the reason where there is no GPU. */
gp_status gp_gpus_count(int *count);
bool gp_gpus_known(void); /* has anybody asked yet? The first question loads libraries */
gp_status gp_gpu_describe(int ordinal, gp_gpu_facts *facts);
/* Is this the name of a device that is here? Errors: GP_EINVAL, GP_EDEVICE, GP_ERANGE. */
gp_status gp_device_check(const char *name);
/* Close the GPUs that nothing is held on any more: before the process or its last script ends. */
void gp_gpus_close(void);
/* "oneDNN 2.6.3", or "" when none is loadable; loads the library. why (optional) receives the
 * loader's reason. */
const char *gp_gemm_library(const char **why);

/* Ask running steps to stop between two actions, and take the request back. Threads: any; the
 * request is async-signal-safe. */
void gp_interrupt_request(void);
void gp_interrupt_clear(void);
bool gp_interrupt_pending(void);

#endif
