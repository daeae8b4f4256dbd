/* ops/elementwise/walk.c - from shapes and strides to long runs with constant steps; see loops.h.
 *
 * A walk depends on shapes and strides alone. Contiguous operands of one shape are one run, which
 * is quickly recognised. If operands are broadcast or strided, the walk is an instruction's state:
 * a plan computes it once, and not for every piece of every micro-batch.
 *
 * Where a stage works channels-last on a value that crossed a cut row-major, operands lie in two
 * orders. A line of one is then a column of the other: its elements lie in as many lines of the
 * cache and pages of memory. So such operands are turned tile by tile, as copies of them are,
 * which is two to three times as fast (8 x 256 x 14 x 14: relu 0.28 -> 0.09 ms, relu_dx 0.25 ->
 * 0.11). Halves are not, because strips gather what they widen, at the same speed. */
#include "base/tensor.h"
#include "base/turn.h"
#include "ops/elementwise/loops.h"
#include "ops/half/half.h"

enum { OPERANDS = 1 + GP_MAP_INPUTS }; /* operand 0 is the output */

/* The dims that are left after merging, outermost first. */
typedef struct walk {
  int operands, rank;
  int64_t dim[GP_MAX_RANK];
  int64_t stride[OPERANDS][GP_MAX_RANK]; /* elements */
  int64_t size[OPERANDS];                /* bytes of one element */
} walk;

/* Return the stride of an operand along dim d of the output; 0 if it is broadcast. */
static int64_t aligned_stride(const gp_meta *meta, int rank, int d) {
  int own = d - (rank - meta->shape.rank);
  return own < 0 || meta->shape.dim[own] == 1 ? 0 : meta->stride[own];
}

/* Tell whether dim `size` with these strides can be one with the dim before it: in every operand, a
 * step of that dim is `size` steps of this one. */
static bool merges(const walk *w, int64_t size, const int64_t *stride) {
  if (w->rank == 0) return false;
  for (int k = 0; k < w->operands; k++)
    if (w->stride[k][w->rank - 1] != size * stride[k]) return false;
  return true;
}

/* Add a dim behind the others, merged into the last one if that is possible. */
static void append_dim(walk *w, int64_t size, const int64_t *stride) {
  bool merged = merges(w, size, stride);
  int d = merged ? w->rank - 1 : w->rank++;
  w->dim[d] = merged ? w->dim[d] * size : size;
  for (int k = 0; k < w->operands; k++) w->stride[k][d] = stride[k];
}

static void add_operand(walk *w, const gp_arg *arg) {
  w->size[w->operands++] = (int64_t)gp_dtype_size(arg->meta->dtype);
}

/* Operand 0 is the output, whose shape the others are aligned to. */
static void plan_walk(walk *w, const gp_call *call) {
  const gp_shape *shape = &call->out[0].meta->shape;
  w->operands = w->rank = 0; /* the rest is written before it is read; zeros would cost more */
  add_operand(w, &call->out[0]);
  for (int i = 0; i < call->n_in; i++) add_operand(w, &call->in[i]);
  for (int d = 0; d < shape->rank; d++) {
    if (shape->dim[d] == 1) continue;
    int64_t stride[OPERANDS];
    stride[0] = call->out[0].meta->stride[d];
    for (int i = 0; i < call->n_in; i++)
      stride[1 + i] = aligned_stride(call->in[i].meta, shape->rank, d);
    append_dim(w, shape->dim[d], stride);
  }
  if (w->rank == 0) append_dim(w, 1, (const int64_t[OPERANDS]){1, 1, 1, 1});
}

/* Tell whether the operands are contiguous and of one shape, and so one run. */
static bool is_flat(const gp_call *call) {
  const gp_meta *out = call->out[0].meta;
  bool flat = gp_meta_is_contiguous(out);
  for (int i = 0; i < call->n_in; i++)
    flat = flat && gp_meta_is_contiguous(call->in[i].meta) &&
           gp_meta_numel(call->in[i].meta) == gp_meta_numel(out);
  return flat;
}

/* Return the position of an operand's element at the index, in bytes from its first one. */
static int64_t position(const walk *w, int k, const int64_t *index) {
  int64_t at = 0;
  for (int d = 0; d < w->rank; d++) at += index[d] * w->stride[k][d];
  return at * w->size[k];
}

/* Split position `flat`, in row-major order, into an index. */
static void split_index(const walk *w, int64_t flat, int64_t *index) {
  for (int d = w->rank - 1; d >= 0; d--) {
    index[d] = flat % w->dim[d];
    flat /= w->dim[d];
  }
}

/* Carry into the outer dims, after a run that ended at the end of the last dim. */
static void next_index(const walk *w, int64_t *index) {
  index[w->rank - 1] = 0;
  for (int d = w->rank - 2; d >= 0; d--) {
    if (++index[d] < w->dim[d]) return;
    index[d] = 0;
  }
}

/* Point the run at the elements of the index. */
static void set_run(const walk *w, const int64_t *index, gp_row_run *run) {
  const gp_call *call = run->call;
  run->out = (char *)call->out[0].data + position(w, 0, index);
  for (int k = 1; k < w->operands; k++)
    run->in[k - 1] = (const char *)call->in[k - 1].data + position(w, k, index);
}

/* ---- halves --------------------------------------------------------------------------------- */

enum { STRIP = 512 }; /* elements: strips of all operands stay in the first-level cache */

/* Return elements [at, at + n) of an input: in f32 in the buffer if they are halves, else in place.
 * One that is broadcast stays one element. */
static const void *input_strip(const gp_row_run *run, int k, int64_t at, int64_t n, float *buffer,
                               int64_t *step) {
  const gp_dtype dtype = run->call->in[k].meta->dtype;
  const char *from = (const char *)run->in[k] + at * *step * (int64_t)gp_dtype_size(dtype);
  if (!gp_half_is(dtype)) return from;
  const uint16_t *halves = (const uint16_t *)(const void *)from;
  gp_half_widen(dtype, halves, *step, *step ? n : 1, buffer);
  *step = *step ? 1 : 0;
  return buffer;
}

/* Run a loop for f32 on operands that are halves: it computes strips of them in f32, and each
 * element is rounded once. */
static void run_strips(const gp_row_run *run, gp_loop loop) {
  float buffers[OPERANDS][STRIP];
  const gp_dtype dtype = run->call->out[0].meta->dtype;
  for (int64_t at = 0; at < run->n; at += STRIP) {
    const int64_t n = run->n - at < STRIP ? run->n - at : STRIP;
    char *out = (char *)run->out + at * run->out_step * (int64_t)gp_dtype_size(dtype);
    gp_row_run strip = *run;
    strip.at += at, strip.n = n, strip.out = out;
    for (int k = 0; k < run->call->n_in; k++)
      strip.in[k] = input_strip(run, k, at, n, buffers[k], &strip.step[k]);
    if (gp_half_is(dtype)) strip.out = buffers[OPERANDS - 1], strip.out_step = 1;
    loop(&strip);
    uint16_t *halves = (uint16_t *)(void *)out;
    if (gp_half_is(dtype)) gp_half_narrow(dtype, buffers[OPERANDS - 1], n, run->out_step, halves);
  }
}

static bool has_halves(const gp_call *call) {
  bool any = gp_half_is(call->out[0].meta->dtype);
  for (int i = 0; i < call->n_in; i++) any |= gp_half_is(call->in[i].meta->dtype);
  return any;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

/* A piece of rows (GP_ROW_BLOCK) is a line of tiles, so each line of the cache is read once. Tiles
 * of 32 lines were no faster than long steps. */
enum { TILE_LINES = 64, TILE_WIDTH = 64, TILE = TILE_LINES * TILE_WIDTH };

/* Fewer lines are not worth it: a line of the cache holds no more of them. */
enum { FEW_LINES = 8 };

/* A tile of the last two dims: `at` is the flat position of its first element. */
typedef struct tile {
  int64_t at, lines, width;
  char *out;
  const char *in[GP_MAP_INPUTS];
} tile;

/* Does input k - 1 lie along the dim before the last? Outputs are row-major. */
static bool is_crossed(const walk *w, int k) {
  return k > 0 && w->rank > 1 && w->stride[k][w->rank - 2] == 1 && w->stride[k][w->rank - 1] > 1;
}

static bool has_crossed(const walk *w) {
  bool any = false;
  for (int k = 1; k < w->operands; k++) any |= is_crossed(w, k);
  return any;
}

/* Turn a crossed input's tile into lines. */
static void turn(const walk *w, int k, const tile *t, char *buffer) {
  gp_turn_tile(&(gp_turn){.size = (size_t)w->size[k],
                          .from = t->in[k - 1],
                          .from_pitch = w->stride[k][w->rank - 1],
                          .to = buffer,
                          .to_pitch = TILE_WIDTH,
                          .lines = t->lines,
                          .width = t->width});
}

static void run_tile(const walk *w, gp_row_run run, tile *t, gp_loop loop) {
  _Alignas(64) char buffers[GP_MAP_INPUTS][TILE * 4];
  int64_t pitch[OPERANDS]; /* bytes from line to line */
  for (int k = 0; k < w->operands; k++) {
    const bool crossed = is_crossed(w, k);
    pitch[k] = (crossed ? TILE_WIDTH : w->stride[k][w->rank - 2]) * w->size[k];
    if (!crossed) continue;
    turn(w, k, t, buffers[k - 1]);
    t->in[k - 1] = buffers[k - 1];
    run.step[k - 1] = 1;
  }
  run.n = t->width;
  for (int64_t line = 0; line < t->lines; line++) {
    run.at = t->at + line * w->dim[w->rank - 1];
    run.out = t->out + line * pitch[0];
    for (int k = 1; k < w->operands; k++) run.in[k - 1] = t->in[k - 1] + line * pitch[k];
    loop(&run);
  }
}

/* Has an operand elements of eight bytes? */
static bool has_long(const walk *w) {
  bool any = false;
  for (int k = 0; k < w->operands; k++) any |= w->size[k] > 4;
  return any;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Run over so many whole lines, which begin where the run is. */
__attribute__((noinline)) static void run_lines(const walk *w, const gp_row_run *run, int64_t lines,
                                                gp_loop loop) {
  const int a = w->rank - 1, b = w->rank - 2;
  const int64_t most = has_long(w) ? TILE_LINES / 2 : TILE_LINES;
  for (int64_t i = 0; i < lines; i += most)
    for (int64_t c = 0; c < w->dim[a]; c += TILE_WIDTH) {
      tile t = {.at = run->at + i * w->dim[a] + c,
                .lines = least(lines - i, most),
                .width = least(w->dim[a] - c, TILE_WIDTH),
                .out = (char *)run->out + (i * w->stride[0][b] + c * w->stride[0][a]) * w->size[0]};
      for (int k = 1; k < w->operands; k++)
        t.in[k - 1] =
            (const char *)run->in[k - 1] + (i * w->stride[k][b] + c * w->stride[k][a]) * w->size[k];
      run_tile(w, *run, &t, loop);
    }
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* How many whole lines of a block begin at the index, within so many elements. */
static int64_t lines_at(const walk *w, const int64_t *index, int64_t elements) {
  const int a = w->rank - 1, b = w->rank - 2;
  return index[a] ? 0 : least(elements / w->dim[a], w->dim[b] - index[b]);
}

/* Run over elements [first, last) in flat order: the rest of a line, whole lines, the
 * beginning of one. */
static void run_range(const walk *w, gp_row_run *run, int64_t first, int64_t last, gp_loop loop,
                      bool strips) {
  int64_t index[GP_MAX_RANK];
  const bool crossed = !strips && has_crossed(w);
  split_index(w, first, index);
  while (first < last) {
    const int64_t lines = crossed ? lines_at(w, index, last - first) : 0;
    run->at = first;
    run->n = least(w->dim[w->rank - 1] - index[w->rank - 1], last - first);
    set_run(w, index, run);
    if (lines >= FEW_LINES) {
      run_lines(w, run, lines, loop);
      first += lines * w->dim[w->rank - 1];
      index[w->rank - 2] += lines - 1;
    } else {
      strips ? run_strips(run, loop) : loop(run);
      first += run->n;
    }
    next_index(w, index);
  }
}

/* ---- what ops call -------------------------------------------------------------------------- */

static gp_status map(const gp_call *call, gp_span span, gp_loop loop, bool strips) {
  int64_t first, last;
  const gp_meta *out = call->out[0].meta;
  gp_rows_elements(gp_meta_numel(out), gp_rows_count(out), span, &first, &last);
  if (first == last) return GP_OK;
  walk own;
  const walk *w = call->state ? call->state : &own;
  if (!call->state) plan_walk(&own, call);
  gp_row_run run = {.call = call, .out_step = w->stride[0][w->rank - 1]};
  for (int k = 1; k < w->operands; k++) run.step[k - 1] = w->stride[k][w->rank - 1];
  run_range(w, &run, first, last, loop, strips);
  return GP_OK;
}

gp_status gp_map(const gp_call *call, gp_span span, gp_loop loop) {
  return map(call, span, loop, false);
}

size_t gp_map_state(const gp_call *call) { return is_flat(call) ? 0 : sizeof(walk); }

gp_status gp_map_prepare(const gp_call *call, void *state) {
  plan_walk(state, call);
  return GP_OK;
}

gp_status gp_map_float(const gp_call *call, gp_span span, gp_loop f32, gp_loop f64) {
  const bool wide = call->in[call->n_in - 1].meta->dtype == GP_F64;
  return map(call, span, wide ? f64 : f32, has_halves(call));
}

gp_status gp_map_number(const gp_call *call, gp_span span, const gp_loop loops[4]) {
  static const int place[GP_DTYPE_COUNT] = {[GP_F64] = 1, [GP_I64] = 2, [GP_I32] = 3};
  return map(call, span, loops[place[call->in[0].meta->dtype]], has_halves(call));
}

gp_status gp_map_infer(gp_sig *sig) {
  gp_shape shape;
  GP_TRY(gp_infer_broadcast(sig, &shape));
  return gp_infer_out(sig, sig->in[0]->dtype, &shape);
}

gp_status gp_map_dx_infer(gp_sig *sig) {
  GP_TRY(gp_infer_same_shape(sig, 0, 1));
  return gp_infer_like(sig, 0);
}

gp_cost gp_map_cost_light(const gp_sig *sig) { return gp_cost_elements(sig, 1); }
gp_cost gp_map_cost_middle(const gp_sig *sig) { return gp_cost_elements(sig, 10); }
gp_cost gp_map_cost_heavy(const gp_sig *sig) { return gp_cost_elements(sig, 30); }
