/* ops/half/half.c - see half.h: where the converted operands lie, and the conversion in both
 * directions.
 *
 * A row-wise op has a few rows converted at a time, so that they stay in the cache: the kernel gets
 * the whole operand's shape, and an address so far before the scratch that its rows lie there.
 * Operands that are not read by rows are converted once a piece. Ops with another cut get
 * everything at once: threads convert the operands, run the pieces that the kernel has in f32, and
 * convert the results. */
#include "ops/half/half.h"

#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"

enum {
  OPERANDS = GP_MAX_INPUTS + GP_MAX_OUTPUTS,
  ROW_BYTES = 64 << 10,
  ALIGNMENT = 64,
  PIECE = 32 << 10 /* elements that a thread converts at a time */
};

/* One operand of a call. */
typedef struct operand {
  const gp_arg *from;
  gp_meta meta;  /* of its f32 form */
  int64_t row;   /* elements of a unit; 0: converted whole */
  size_t offset; /* of its f32 form in the scratch */
  bool widened;
} operand;

/* A call and how its operands are converted: inputs, then outputs. */
typedef struct layout {
  operand list[OPERANDS];
  int count;
  int64_t rows; /* units converted at a time; 0: all */
  size_t own;   /* scratch of the kernel itself: at the front, except for calls with phases */
  size_t bytes; /* for each thread; with phases for all of them */
} layout;

bool gp_half_widens(const gp_op_def *def, const gp_call *call) {
  unsigned met = 0; /* dtypes, as bits */
  if (def->flags & GP_OP_HALVES) return false;
  for (int i = 0; i < call->n_in; i++) met |= 1u << call->in[i].meta->dtype;
  for (int k = 0; k < call->n_out; k++) met |= 1u << call->out[k].meta->dtype;
  return met & GP_ALL_HALVES & ~def->cpu.halves;
}

static bool is_whole(const gp_op_def *def, const gp_call *call) {
  if (!(def->flags & GP_OP_ROWS)) return true;
  const int64_t units = def->cpu.cut(call).units;
  for (int k = 0; k < call->n_out; k++)
    if (units < 1 || gp_meta_numel(call->out[k].meta) % units != 0) return true;
  return false;
}

bool gp_half_has_phases(const gp_op_def *def, const gp_call *call) {
  return gp_half_widens(def, call) && is_whole(def, call);
}

/* ---- layout -------------------------------------------------------------------------------- */

/* Return the meta in f32: channels-last if the op wants that and the operand is so,
 * else row-major. */
static gp_meta widen_meta(const gp_op_def *def, const gp_meta *meta) {
  gp_meta wide = {0};
  (void)gp_meta_make(GP_F32, &meta->shape, &wide); /* it has as many elements */
  if (def->flags & GP_OP_CHANNELS_LAST && gp_meta_is_channels_last(meta))
    gp_meta_set_channels_last(&wide);
  return wide;
}

static void add_operand(layout *l, const gp_op_def *def, const gp_arg *arg, int64_t units) {
  operand *o = &l->list[l->count++];
  const int64_t n = gp_meta_numel(arg->meta);
  *o = (operand){.from = arg, .widened = gp_half_is(arg->meta->dtype)};
  if (!o->widened) return;
  o->meta = widen_meta(def, arg->meta);
  if (units > 0 && n >= units && n % units == 0 && gp_meta_is_contiguous(arg->meta))
    o->row = n / units;
}

static size_t take(layout *l, int64_t elements) {
  size_t at = l->bytes;
  l->bytes += ((size_t)elements * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return at;
}

/* Return the call with the f32 metas; operands that are not converted keep their addresses. */
static gp_call widen_call(const layout *l, const gp_call *call) {
  gp_call wide = *call;
  wide.state = NULL;
  for (int i = 0; i < call->n_in; i++)
    if (l->list[i].widened) wide.in[i].meta = &l->list[i].meta;
  for (int k = 0; k < call->n_out; k++)
    if (l->list[call->n_in + k].widened) wide.out[k].meta = &l->list[call->n_in + k].meta;
  return wide;
}

/* Take as many rows as 64 KiB hold, a block at most; the shapes alone decide. */
static int64_t rows_at_once(const layout *l) {
  int64_t bytes = 1;
  for (int i = 0; i < l->count; i++) bytes += l->list[i].row * (int64_t)sizeof(float);
  const int64_t rows = ROW_BYTES / bytes;
  return rows < 1 ? 1 : rows < GP_ROW_BLOCK ? rows : GP_ROW_BLOCK;
}

static void lay_out(layout *l, const gp_op_def *def, const gp_call *call) {
  const bool whole = is_whole(def, call);
  const int64_t units = whole ? 0 : def->cpu.cut(call).units;
  *l = (layout){0};
  for (int i = 0; i < call->n_in; i++)
    add_operand(l, def, &call->in[i], def->row_inputs >> i & 1 ? units : 0);
  for (int k = 0; k < call->n_out; k++) add_operand(l, def, &call->out[k], units);
  l->rows = whole ? 0 : rows_at_once(l);
  const gp_call wide = widen_call(l, call);
  l->own = def->cpu.scratch ? def->cpu.scratch(&wide) : 0;
  if (!whole) take(l, (int64_t)((l->own + 3) / sizeof(float)));
  for (int i = 0; i < l->count; i++) {
    operand *o = &l->list[i];
    if (o->widened) o->offset = take(l, o->row ? o->row * l->rows : gp_meta_numel(&o->meta));
  }
}

size_t gp_half_scratch(const gp_op_def *def, const gp_call *call) {
  layout l;
  if (!gp_half_widens(def, call)) return def->cpu.scratch ? def->cpu.scratch(call) : 0;
  lay_out(&l, def, call);
  return l.rows ? l.bytes : l.own;
}

size_t gp_half_shared(const gp_op_def *def, const gp_call *call) {
  layout l;
  if (!gp_half_has_phases(def, call)) return 0;
  lay_out(&l, def, call);
  return l.bytes;
}

/* ---- conversion in both directions --------------------------------------------------------- */

static float *wide_of(const operand *o, char *scratch) {
  return (float *)(void *)(scratch + o->offset);
}

/* Convert elements [first, first + n) of dense values, which lie at `wide` in f32. */
static void convert(const operand *o, float *wide, int64_t first, int64_t n, bool back) {
  uint16_t *at = (uint16_t *)o->from->data + first;
  if (back)
    gp_half_narrow(o->from->meta->dtype, wide, n, 1, at);
  else
    gp_half_widen(o->from->meta->dtype, at, 1, n, wide);
}

static void convert_whole(const operand *o, char *scratch, bool back) {
  gp_meta half = *o->from->meta;
  half.offset = 0; /* the address includes it */
  if (back)
    gp_view_copy(&half, o->from->data, &o->meta, wide_of(o, scratch));
  else
    gp_view_copy(&o->meta, wide_of(o, scratch), &half, o->from->data);
}

/* Tell whether operand i is converted: inputs, and outputs that are added to; or, back, outputs. */
static bool is_converted(const layout *l, const gp_call *call, int i, bool back) {
  const bool output = i >= call->n_in;
  return l->list[i].widened && (back ? output : !output || call->accumulate);
}

/* Convert the operands that are read by rows, or those that are not. */
static void convert_all(const layout *l, const gp_call *call, gp_span rows, bool by_row,
                        bool back) {
  char *scratch = rows.scratch;
  for (int i = 0; i < l->count; i++) {
    const operand *o = &l->list[i];
    if (!is_converted(l, call, i, back) || (o->row > 0) != by_row) continue;
    if (by_row)
      convert(o, wide_of(o, scratch), rows.first * o->row, (rows.last - rows.first) * o->row, back);
    else
      convert_whole(o, scratch, back);
  }
}

/* Return where element 0 would lie if all rows before `first` were there. This is integer
 * arithmetic: no such address is read. */
static void *address(const operand *o, char *scratch, int64_t first) {
  const size_t before = (size_t)(first * o->row) * sizeof(float);
  return (void *)((uintptr_t)(scratch + o->offset) - before);
}

static void set_addresses(const layout *l, gp_call *wide, char *scratch, int64_t first) {
  for (int i = 0; i < l->count; i++) {
    gp_arg *arg = i < wide->n_in ? &wide->in[i] : &wide->out[i - wide->n_in];
    if (l->list[i].widened) arg->data = address(&l->list[i], scratch, first);
  }
}

/* ---- a piece ------------------------------------------------------------------------------- */

static gp_status run_rows(const gp_op_def *def, const layout *l, const gp_call *call,
                          gp_span span) {
  gp_call wide = widen_call(l, call);
  convert_all(l, call, span, false, false);
  for (int64_t first = span.first; first < span.last; first += l->rows) {
    const int64_t left = span.last - first;
    const gp_span rows = gp_span_part(span, first, first + (left < l->rows ? left : l->rows));
    convert_all(l, call, rows, true, false);
    set_addresses(l, &wide, span.scratch, first);
    GP_TRY(def->cpu.run(&wide, rows));
    convert_all(l, call, rows, true, true);
  }
  return GP_OK;
}

gp_status gp_half_run(const gp_op_def *def, const gp_call *call, gp_span span) {
  layout l;
  if (!gp_half_widens(def, call)) return def->cpu.run(call, span);
  lay_out(&l, def, call);
  return run_rows(def, &l, call, span);
}

/* ---- in phases ----------------------------------------------------------------------------- */

typedef struct phases {
  const gp_op_def *def;
  const layout *l;
  const gp_call *call;
  gp_call wide;
  gp_cut cut;
  gp_half_room room;
  bool back;
} phases;

/* Tell whether the operand is in the same order in both forms, so that pieces can be cut
 * anywhere. */
static bool is_dense(const operand *o) {
  return gp_meta_is_contiguous(o->from->meta) ||
         (gp_meta_is_channels_last(o->from->meta) && gp_meta_is_channels_last(&o->meta));
}

static int64_t pieces_of(const phases *p, int i) {
  const operand *o = &p->l->list[i];
  if (!is_converted(p->l, p->call, i, p->back)) return 0;
  return is_dense(o) ? (gp_meta_numel(&o->meta) + PIECE - 1) / PIECE : 1;
}

static int64_t conversions(const phases *p) {
  int64_t count = 0;
  for (int i = 0; i < p->l->count; i++) count += pieces_of(p, i);
  return count;
}

/* Convert a piece; pieces are numbered through the operands, one after the other. */
static gp_status convert_piece(void *context, int64_t piece, int member) {
  const phases *p = context;
  int i = 0;
  (void)member;
  for (; piece >= pieces_of(p, i); i++) piece -= pieces_of(p, i);
  const operand *o = &p->l->list[i];
  const int64_t first = piece * PIECE, left = gp_meta_numel(&o->meta) - first;
  if (is_dense(o))
    convert(o, wide_of(o, p->room.shared) + first, first, left < PIECE ? left : PIECE, p->back);
  else
    convert_whole(o, p->room.shared, p->back);
  return GP_OK;
}

static gp_status run_piece(void *context, int64_t piece, int member) {
  const phases *p = context;
  const int64_t first = piece * p->cut.grain, last = first + p->cut.grain;
  char *scratch = p->room.scratch ? p->room.scratch + (size_t)member * p->room.stride : NULL;
  return p->def->cpu.run(&p->wide, (gp_span){.first = first,
                                             .last = last < p->cut.units ? last : p->cut.units,
                                             .scratch = scratch});
}

gp_status gp_half_run_phases(const gp_op_def *def, const gp_call *call, const gp_lane *lane,
                             gp_half_room room) {
  layout l;
  lay_out(&l, def, call);
  phases p = {.def = def, .l = &l, .call = call, .wide = widen_call(&l, call), .room = room};
  set_addresses(&l, &p.wide, room.shared, 0);
  p.cut = gp_op_cut(def, &p.wide);
  GP_TRY(lane->work->pieces(lane, conversions(&p), convert_piece, &p));
  GP_TRY(lane->work->pieces(lane, (p.cut.units + p.cut.grain - 1) / p.cut.grain, run_piece, &p));
  p.back = true;
  return lane->work->pieces(lane, conversions(&p), convert_piece, &p);
}
