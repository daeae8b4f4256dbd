/* ops/half/half.c - see half.h: where the converted operands lie, and the way there and back.
 *
 * Of row-wise ops a few rows are converted at a time, so that they stay in the cache: the kernel is
 * told the whole operand's shape and an address so far before the scratch that its rows come to
 * lie there. Operands that are not read by rows are converted once a piece. Ops of another cut get
 * everything at once, and run their own pieces one after the other: their bits are the same for
 * any number of threads. */
#include "ops/half/half.h"

#include "base/status.h"
#include "base/tensor.h"
#include "ops/cut.h"

enum { OPERANDS = GP_MAX_INPUTS + GP_MAX_OUTPUTS, ROW_BYTES = 64 << 10, ALIGNMENT = 64 };

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
  size_t own;   /* scratch of the kernel itself, at the front */
  size_t bytes;
} layout;

bool gp_half_widens(const gp_op_def *def, const gp_call *call) {
  unsigned met = 0; /* dtypes, as bits */
  if (def->flags & GP_OP_HALVES) return false;
  for (int i = 0; i < call->n_in; i++) met |= 1u << call->in[i].meta->dtype;
  for (int k = 0; k < call->n_out; k++) met |= 1u << call->out[k].meta->dtype;
  return met & GP_ALL_HALVES & ~def->cpu.halves;
}

bool gp_half_is_whole(const gp_op_def *def, const gp_call *call) {
  if (!(def->flags & GP_OP_ROWS)) return true;
  const int64_t units = def->cpu.cut(call).units;
  for (int k = 0; k < call->n_out; k++)
    if (units < 1 || gp_meta_numel(call->out[k].meta) % units != 0) return true;
  return false;
}

/* ---- layout -------------------------------------------------------------------------------- */

/* In f32: in the same order where that is dense, else row-major. */
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

/* The call with the f32 metas; of the operands that stay, with their addresses. */
static gp_call widen_call(const layout *l, const gp_call *call) {
  gp_call wide = *call;
  wide.state = NULL;
  for (int i = 0; i < call->n_in; i++)
    if (l->list[i].widened) wide.in[i].meta = &l->list[i].meta;
  for (int k = 0; k < call->n_out; k++)
    if (l->list[call->n_in + k].widened) wide.out[k].meta = &l->list[call->n_in + k].meta;
  return wide;
}

/* As many rows as 64 KiB hold, a block at most: by the shapes alone. */
static int64_t rows_at_once(const layout *l) {
  int64_t bytes = 1;
  for (int i = 0; i < l->count; i++) bytes += l->list[i].row * (int64_t)sizeof(float);
  const int64_t rows = ROW_BYTES / bytes;
  return rows < 1 ? 1 : rows < GP_ROW_BLOCK ? rows : GP_ROW_BLOCK;
}

static void lay_out(layout *l, const gp_op_def *def, const gp_call *call) {
  const bool whole = gp_half_is_whole(def, call);
  const int64_t units = whole ? 0 : def->cpu.cut(call).units;
  *l = (layout){0};
  for (int i = 0; i < call->n_in; i++)
    add_operand(l, def, &call->in[i], def->row_inputs >> i & 1 ? units : 0);
  for (int k = 0; k < call->n_out; k++) add_operand(l, def, &call->out[k], units);
  l->rows = whole ? 0 : rows_at_once(l);
  const gp_call wide = widen_call(l, call);
  take(l, (int64_t)(((def->cpu.scratch ? def->cpu.scratch(&wide) : 0) + 3) / sizeof(float)));
  for (int i = 0; i < l->count; i++) {
    operand *o = &l->list[i];
    if (o->widened) o->offset = take(l, o->row ? o->row * l->rows : gp_meta_numel(&o->meta));
  }
}

size_t gp_half_scratch(const gp_op_def *def, const gp_call *call) {
  layout l;
  if (!gp_half_widens(def, call)) return def->cpu.scratch ? def->cpu.scratch(call) : 0;
  lay_out(&l, def, call);
  return l.bytes;
}

/* ---- there and back -------------------------------------------------------------------------- */

/* Elements [first, first + n) of dense values. */
static void convert(const operand *o, char *scratch, int64_t first, int64_t n, bool back) {
  uint16_t *at = (uint16_t *)o->from->data + first;
  float *wide = (float *)(void *)(scratch + o->offset);
  if (back)
    gp_half_narrow(o->from->meta->dtype, wide, n, 1, at);
  else
    gp_half_widen(o->from->meta->dtype, at, 1, n, wide);
}

static void convert_whole(const operand *o, char *scratch, bool back) {
  gp_meta half = *o->from->meta;
  half.offset = 0; /* the address has it */
  if (back)
    gp_view_copy(&half, o->from->data, &o->meta, scratch + o->offset);
  else
    gp_view_copy(&o->meta, scratch + o->offset, &half, o->from->data);
}

/* Inputs, and outputs that are added to; or back, outputs. by_row: operands of that kind. */
static void convert_all(const layout *l, const gp_call *call, gp_span rows, bool by_row,
                        bool back) {
  char *scratch = rows.scratch;
  for (int i = 0; i < l->count; i++) {
    const operand *o = &l->list[i];
    const bool output = i >= call->n_in;
    if (!o->widened || (o->row > 0) != by_row) continue;
    if (back ? !output : output && !call->accumulate) continue;
    if (by_row)
      convert(o, scratch, rows.first * o->row, (rows.last - rows.first) * o->row, back);
    else
      convert_whole(o, scratch, back);
  }
}

/* Where element 0 would lie if all rows before `first` were there. Integer arithmetic: nothing of
 * the sort is read. */
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
    const gp_span rows = {first, first + (left < l->rows ? left : l->rows), span.scratch};
    convert_all(l, call, rows, true, false);
    set_addresses(l, &wide, span.scratch, first);
    GP_TRY(def->cpu.run(&wide, rows));
    convert_all(l, call, rows, true, true);
  }
  return GP_OK;
}

static gp_status run_whole(const gp_op_def *def, const layout *l, const gp_call *call,
                           gp_span span) {
  gp_call wide = widen_call(l, call);
  set_addresses(l, &wide, span.scratch, 0);
  convert_all(l, call, span, false, false);
  const gp_cut cut = def->cpu.cut(&wide);
  const int64_t grain = cut.grain > 0 ? cut.grain : 1;
  for (int64_t first = 0; first < cut.units; first += grain) {
    const int64_t last = cut.units - first < grain ? cut.units : first + grain;
    GP_TRY(def->cpu.run(&wide, (gp_span){first, last, span.scratch}));
  }
  convert_all(l, call, span, false, true);
  return GP_OK;
}

gp_status gp_half_run(const gp_op_def *def, const gp_call *call, gp_span span) {
  layout l;
  if (!gp_half_widens(def, call)) return def->cpu.run(call, span);
  lay_out(&l, def, call);
  return (l.rows ? run_rows : run_whole)(def, &l, call, span);
}
