/* plan/memory/temp.c - offsets of values that live inside one program.
 *
 * Lifetimes are counted in groups, because a group's instructions run interleaved, block by block.
 * An elementwise result takes over the memory of an input that dies with it: a temporary's, or the
 * place of a value that an earlier program kept and that no later one reads (the gradient of logits
 * lies where the logits were). The rest is placed largest first at the lowest offset that is free
 * over its lifetime, or, if that would take long, in order of time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "plan/program/program.h"

enum { ALIGNMENT = 64, LOOKS = 1 << 25 }; /* looks at placed spans: some hundredths of a second */

/* One piece of memory: a value and those that took it over. */
typedef struct span {
  gp_ref value;
  gp_place kept;       /* of a value that another program made; base -1: a temporary */
  int32_t first, last; /* groups */
  int32_t reads;       /* so far */
  size_t bytes, offset;
} span;

typedef struct layout {
  gp_program *program;
  const gp_program_spec *spec;
  const gp_place *places;
  const int32_t *reads; /* per instruction and output */
  span *spans;
  int32_t count;
  int32_t *span_of; /* per base value: index + 1 of the span at hand; 0: placed elsewhere */
  int32_t *readers; /* per base value: reads left, of the instance at hand */
  int32_t *made;    /* per instruction and output: index + 1 of its span; 0: placed elsewhere */
} layout;

/* Is the memory of a value that another program kept free once this program has read it? */
static bool is_freed(const layout *l, gp_ref base) {
  const int32_t area = l->places[base].base;
  const bool kept = area == GP_BASE_SAVED || area == GP_BASE_RECOMPUTED;
  return kept && l->spec->frees && !(l->spec->later && l->spec->later[base]);
}

/* Is it certain that every other instruction of this group reads the span row by row? */
static bool free_in_group(const layout *l, const span *s, int32_t group) {
  return s->reads == 0 || s->first == group || l->program->groups[group].count == 1;
}

/* Is the whole memory of an input free for output 0 once the instruction has read it? */
static bool dies(const layout *l, const gp_node *node, int i, int32_t group) {
  const gp_graph *graph = l->program->graph;
  gp_ref in = node->in[i], base = gp_graph_base(graph, in);
  const gp_meta *meta = &graph->values[in].meta;
  return l->span_of[base] && l->readers[base] == 1 && meta->offset == 0 &&
         gp_meta_is_contiguous(meta) && gp_meta_equal(meta, &graph->values[node->out].meta) &&
         gp_meta_numel(meta) == gp_meta_numel(&graph->values[base].meta) &&
         free_in_group(l, &l->spans[l->span_of[base] - 1], group);
}

/* Find the span of an input that dies here and that output 0 may take over; 0: there is none. The
 * place of a kept value is there in any case, so it comes before a temporary, whose memory is free
 * for others then. */
static int32_t dying_input(const layout *l, const gp_instr *instr, int32_t group) {
  const gp_graph *graph = l->program->graph;
  const gp_node *node = &graph->nodes[instr->node];
  int32_t taken = 0;
  if (!(gp_op_get(instr->op)->flags & GP_OP_INPLACE)) return 0;
  for (int i = 0; i < node->n_in; i++) {
    int32_t own = l->span_of[gp_graph_base(graph, node->in[i])];
    if (!dies(l, node, i, group)) continue;
    if (l->spans[own - 1].kept.base >= 0) return own;
    if (!taken) taken = own;
  }
  return taken;
}

/* Open the span of a value that the group makes. Two values never share a cache line, because
 * threads write them at once. */
static gp_status open_span(layout *l, gp_ref value, int32_t group) {
  size_t bytes = gp_meta_bytes(&l->program->graph->values[value].meta);
  GP_TRY(gp_size_align(bytes ? bytes : 1, ALIGNMENT, &bytes));
  l->spans[l->count] =
      (span){.value = value, .kept.base = -1, .first = group, .last = group, .bytes = bytes};
  l->span_of[value] = ++l->count;
  return GP_OK;
}

/* Open the span of a kept value at its first read. It was there before any group, and needs no
 * bytes here. */
static void open_kept(layout *l, gp_ref base) {
  l->spans[l->count] = (span){.value = base, .kept = l->places[base], .first = -1, .last = -1};
  l->span_of[base] = ++l->count;
}

static void note_read(span *s, int32_t group) {
  s->last = group;
  s->reads++;
}

/* Follow instruction n: its inputs first, because one that dies here may become the output. */
static gp_status visit(layout *l, int32_t n, int32_t group) {
  const gp_graph *graph = l->program->graph;
  const gp_instr *instr = &l->program->instrs[n];
  const gp_node *node = &graph->nodes[instr->node];
  for (int i = 0; i < node->n_in; i++) {
    gp_ref base = gp_graph_base(graph, node->in[i]);
    if (!l->span_of[base] && is_freed(l, base)) open_kept(l, base);
  }
  int32_t taken = dying_input(l, instr, group);
  for (int i = 0; i < node->n_in; i++) {
    gp_ref base = gp_graph_base(graph, node->in[i]);
    l->readers[base]--;
    if (l->span_of[base]) note_read(&l->spans[l->span_of[base] - 1], group);
  }
  for (int k = 0; k < instr->call.n_out; k++) {
    gp_ref out = node->out + k;
    if (gp_graph_base(graph, out) != out || !gp_program_makes_temp(l->spec, node, out)) continue;
    l->readers[out] = l->reads[n * GP_MAX_OUTPUTS + k];
    if (k == 0 && taken)
      l->span_of[out] = taken;
    else
      GP_TRY(open_span(l, out, group));
    l->made[n * GP_MAX_OUTPUTS + k] = l->span_of[out];
  }
  return GP_OK;
}

/* Time is counted in groups. */
static gp_status find_spans(layout *l) {
  for (int32_t g = 0; g < l->program->group_count; g++) {
    const gp_group *group = &l->program->groups[g];
    for (int32_t n = group->first; n < group->first + group->count; n++) GP_TRY(visit(l, n, g));
  }
  return GP_OK;
}

/* ---- placement ----------------------------------------------------------------------------- */

/* Compare by size, then by value, so that the layout is the same every time. */
static int larger_first(const void *a, const void *b) {
  const span *x = *(const span *const *)a, *y = *(const span *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->value < y->value ? -1 : x->value > y->value;
}

/* Bounds are inclusive: within a group everything overlaps. */
static bool alive_together(const span *a, const span *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* Find the lowest offset at which s overlaps nothing placed before it: by_offset[0 .. placed - 1],
 * ascending. */
static size_t lowest_free(span *const *by_offset, int32_t placed, const span *s) {
  size_t offset = 0;
  for (int32_t i = 0; i < placed; i++) {
    const span *other = by_offset[i];
    if (!alive_together(s, other)) continue;
    if (other->offset >= offset + s->bytes) break;
    if (other->offset + other->bytes > offset) offset = other->offset + other->bytes;
  }
  return offset;
}

/* Insert a span; the list stays ascending. */
static void insert(span **by_offset, int32_t placed, span *s) {
  int32_t low = 0, high = placed;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    if (by_offset[middle]->offset <= s->offset)
      low = middle + 1;
    else
      high = middle;
  }
  memmove(&by_offset[low + 1], &by_offset[low], (size_t)(placed - low) * sizeof *by_offset);
  by_offset[low] = s;
}

/* Place spans greedily by size, which is not optimal, but close to it on chains. Gives up and
 * returns false after LOOKS looks at placed spans. */
static bool place_by_size(const layout *l, span **order, span **by_offset) {
  int64_t looks = 0;
  for (int32_t i = 0; i < l->count; i++) order[i] = &l->spans[i];
  qsort(order, (size_t)l->count, sizeof *order, larger_first);
  for (int32_t i = 0; i < l->count && looks < LOOKS; i++, looks += i) {
    order[i]->offset = lowest_free(by_offset, i, order[i]);
    insert(by_offset, i, order[i]);
  }
  return looks < LOOKS;
}

/* ---- many values --------------------------------------------------------------------------- */

/* Free memory of one size, which values of that size use again. */
typedef struct shelf {
  size_t bytes;
  int32_t free; /* span whose place is free next; -1: none */
} shelf;

static int by_bytes(const void *a, const void *b) {
  const shelf *x = a, *y = b;
  return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Make a shelf for each size, ascending, and return how many. */
static int32_t find_sizes(const layout *l, shelf *shelves) {
  int32_t count = 0;
  for (int32_t i = 0; i < l->count; i++)
    shelves[i] = (shelf){.bytes = l->spans[i].bytes, .free = -1};
  qsort(shelves, (size_t)l->count, sizeof *shelves, by_bytes);
  for (int32_t i = 0; i < l->count; i++)
    if (!count || shelves[count - 1].bytes != shelves[i].bytes) shelves[count++] = shelves[i];
  return count;
}

static shelf *shelf_of(shelf *shelves, int32_t count, size_t bytes) {
  shelf key = {.bytes = bytes};
  return bsearch(&key, shelves, (size_t)count, sizeof *shelves, by_bytes);
}

/* Place spans in the order of time: a value takes the place of one of its size that is over, or a
 * new one at the end. This is as good where sizes are few, as they are in long chains of one shape,
 * and quick where values are many. ends: per group, the first span whose last group it is; next: of
 * the same list, or of the same shelf. */
static void place_in_order(const layout *l, shelf *shelves, int32_t *ends, int32_t *next) {
  int32_t sizes = find_sizes(l, shelves), over = 0;
  size_t end = 0;
  for (int32_t g = 0; g < l->program->group_count; g++) ends[g] = -1;
  for (int32_t i = 0; i < l->count; i++)
    next[i] = ends[l->spans[i].last], ends[l->spans[i].last] = i;
  for (int32_t i = 0; i < l->count; i++) {
    span *s = &l->spans[i];
    for (; over < s->first; over++)
      for (int32_t k = ends[over], after; k >= 0; k = after) {
        shelf *own = shelf_of(shelves, sizes, l->spans[k].bytes);
        after = next[k];
        next[k] = own->free;
        own->free = k;
      }
    shelf *own = shelf_of(shelves, sizes, s->bytes);
    int32_t free = own->free;
    s->offset = free < 0 ? end : l->spans[free].offset;
    if (free < 0) end += s->bytes;
    if (free >= 0) own->free = next[free];
  }
}

/* ---- all of it ----------------------------------------------------------------------------- */

static gp_status place_many(const layout *l) {
  shelf *shelves;
  int32_t *lists;
  size_t count = (size_t)l->count;
  GP_TRY(gp_alloc_array(count, sizeof *shelves, (void **)&shelves));
  gp_status status =
      gp_alloc_array(count + (size_t)l->program->group_count, sizeof *lists, (void **)&lists);
  if (!status) place_in_order(l, shelves, lists + count, lists);
  gp_free(shelves);
  gp_free(lists);
  return status;
}

static size_t area_of(const layout *l) {
  size_t bytes = 0;
  for (int32_t i = 0; i < l->count; i++) {
    size_t end = l->spans[i].offset + l->spans[i].bytes;
    if (end > bytes) bytes = end;
  }
  return bytes;
}

static gp_status place_spans(const layout *l) {
  span **order;
  size_t count = (size_t)l->count;
  GP_TRY(gp_alloc_array(2 * count + 1, sizeof *order, (void **)&order));
  bool placed = place_by_size(l, order, order + count);
  gp_free(order);
  if (!placed) GP_TRY(place_many(l));
  l->program->temp_bytes = area_of(l);
  return GP_OK;
}

/* ---- operands ------------------------------------------------------------------------------ */

/* Resolve an operand; the offset of a view counts from where its base begins. */
static gp_place operand(const layout *l, gp_ref ref) {
  const gp_value *value = &l->program->graph->values[ref];
  const int32_t own = l->span_of[value->base];
  gp_place place = l->places[value->base];
  if (own) {
    const span *s = &l->spans[own - 1];
    place = s->kept.base >= 0 ? s->kept : (gp_place){GP_BASE_TEMP, s->offset};
  }
  place.offset += (size_t)value->meta.offset * gp_dtype_size(value->meta.dtype);
  return place;
}

/* Resolve the operands of all instructions: each reads the instance that was made last. */
static void resolve(const layout *l) {
  const gp_graph *graph = l->program->graph;
  for (int32_t s = 0; s < l->count; s++) l->span_of[l->spans[s].value] = 0;
  for (int32_t n = 0; n < l->program->instr_count; n++) {
    const gp_instr *instr = &l->program->instrs[n];
    for (int k = 0; k < instr->call.n_out; k++) l->span_of[graph->nodes[instr->node].out + k] = 0;
  }
  for (int32_t n = 0; n < l->program->instr_count; n++) {
    gp_instr *instr = &l->program->instrs[n];
    const gp_node *node = &graph->nodes[instr->node];
    for (int i = 0; i < node->n_in; i++) instr->in[i] = operand(l, node->in[i]);
    for (int k = 0; k < instr->call.n_out; k++) {
      const int32_t own = l->made[n * GP_MAX_OUTPUTS + k];
      if (own) l->span_of[node->out + k] = own;
      instr->out[k] = operand(l, node->out + k);
    }
  }
}

gp_status gp_program_place_temps(gp_program *program, const gp_program_spec *spec,
                                 const int32_t *reads) {
  enum { VALUES = GP_MAX_OUTPUTS + GP_MAX_INPUTS }; /* of an instruction */
  layout l = {.program = program,
              .spec = spec,
              .places = spec->places,
              .reads = reads,
              .span_of = spec->notes->span,
              .readers = spec->notes->readers};
  const size_t instrs = (size_t)program->instr_count;
  GP_TRY(gp_alloc_array(instrs * VALUES + 1, sizeof(span), (void **)&l.spans));
  gp_status status = gp_alloc_array(instrs * GP_MAX_OUTPUTS + 1, sizeof *l.made, (void **)&l.made);
  if (!status) status = find_spans(&l);
  if (!status) status = place_spans(&l);
  if (!status) resolve(&l);
  gp_free(l.spans);
  gp_free(l.made);
  return status;
}
