/* plan/memory/temp.c - offsets of values that live inside one program.
 *
 * Lifetimes are counted in groups, because a group's instructions run interleaved, block by block. An
 * elementwise result takes over the memory of an input that dies with it; the rest is placed largest
 * first at the lowest offset that is free over its lifetime.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "plan/program.h"

enum { ALIGNMENT = 64 };

/* One piece of memory: a value and those that took it over. */
typedef struct span {
  gp_ref value;
  int32_t first, last; /* groups */
  int32_t reads;       /* so far */
  size_t bytes, offset;
} span;

typedef struct layout {
  gp_program *program;
  gp_place *places;
  span *spans;
  int32_t count;
  int32_t *span_of; /* per value: index + 1 of the span of its base; 0: placed elsewhere */
  int32_t *readers; /* per base value: reads left */
} layout;

static bool is_temp(const layout *l, gp_ref base) { return l->places[base].base < 0; }

/* Reads left decide who is the last reader. */
static void count_reads(layout *l) {
  const gp_program *p = l->program;
  for (int32_t n = 0; n < p->instr_count; n++) {
    const gp_node *node = &p->graph->nodes[p->instrs[n].node];
    for (int i = 0; i < node->n_in; i++) l->readers[gp_graph_base(p->graph, node->in[i])]++;
  }
}

/* Nobody else of this group may still read the span otherwise than row by row. */
static bool free_in_group(const layout *l, const span *s, int32_t group) {
  return s->reads == 0 || s->first == group || l->program->groups[group].count == 1;
}

/* The span of an input that dies here and that output 0 may take over; 0 when there is none. */
static int32_t dying_input(const layout *l, const gp_instr *instr, int32_t group) {
  const gp_graph *graph = l->program->graph;
  const gp_node *node = &graph->nodes[instr->node];
  if (!(gp_op_get(instr->op)->flags & GP_OP_INPLACE)) return 0;
  for (int i = 0; i < node->n_in; i++) {
    gp_ref in = node->in[i], base = gp_graph_base(graph, in);
    const gp_meta *meta = &graph->values[in].meta;
    if (is_temp(l, base) && l->span_of[base] && l->readers[base] == 1 && meta->offset == 0 &&
        gp_meta_is_contiguous(meta) && gp_meta_equal(meta, &graph->values[node->out].meta) &&
        gp_meta_numel(meta) == gp_meta_numel(&graph->values[base].meta) &&
        free_in_group(l, &l->spans[l->span_of[base] - 1], group))
      return l->span_of[base];
  }
  return 0;
}

/* Cache lines are not shared by two values: threads write them at once. */
static gp_status open_span(layout *l, gp_ref value, int32_t group) {
  size_t bytes = gp_meta_bytes(&l->program->graph->values[value].meta);
  GP_TRY(gp_size_align(bytes ? bytes : 1, ALIGNMENT, &bytes));
  l->spans[l->count] = (span){.value = value, .first = group, .last = group, .bytes = bytes};
  l->span_of[value] = ++l->count;
  return GP_OK;
}

/* Inputs first: one that dies here may become the output. */
static gp_status visit(layout *l, const gp_instr *instr, int32_t group) {
  const gp_graph *graph = l->program->graph;
  const gp_node *node = &graph->nodes[instr->node];
  int32_t taken = dying_input(l, instr, group);
  for (int i = 0; i < node->n_in; i++) {
    gp_ref base = gp_graph_base(graph, node->in[i]);
    l->readers[base]--;
    if (!is_temp(l, base) || !l->span_of[base]) continue;
    l->spans[l->span_of[base] - 1].last = group;
    l->spans[l->span_of[base] - 1].reads++;
  }
  for (int k = 0; k < instr->call.n_out; k++) {
    gp_ref out = node->out + k;
    if (gp_graph_base(graph, out) != out || !is_temp(l, out)) continue;
    if (k == 0 && taken)
      l->span_of[out] = taken;
    else
      GP_TRY(open_span(l, out, group));
  }
  return GP_OK;
}

/* Time is counted in groups. */
static gp_status find_spans(layout *l) {
  for (int32_t g = 0; g < l->program->group_count; g++) {
    const gp_group *group = &l->program->groups[g];
    for (int32_t n = group->first; n < group->first + group->count; n++)
      GP_TRY(visit(l, &l->program->instrs[n], g));
  }
  return GP_OK;
}

/* ---- placement ----------------------------------------------------------------------------- */

/* Ties by value, so that the layout is the same every time. */
static int larger_first(const void *a, const void *b) {
  const span *x = *(const span *const *)a, *y = *(const span *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->value < y->value ? -1 : x->value > y->value;
}

/* Bounds are inclusive: within a group everything overlaps. */
static bool alive_together(const span *a, const span *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* Lowest offset at which s overlaps nothing placed before it (order[0 .. placed - 1]). */
static size_t lowest_free(span *const *order, int32_t placed, const span *s) {
  size_t offset = 0;
  for (int32_t i = 0; i < placed; i++) {
    const span *other = order[i];
    if (!alive_together(s, other) || offset + s->bytes <= other->offset ||
        other->offset + other->bytes <= offset)
      continue;
    offset = other->offset + other->bytes;
    i = -1; /* look at all of them again from here */
  }
  return offset;
}

/* Greedy by size: not optimal, close to it on chains, and quick. */
static gp_status place_spans(layout *l) {
  span **order;
  GP_TRY(gp_alloc_array((size_t)l->count + 1, sizeof *order, (void **)&order));
  for (int32_t i = 0; i < l->count; i++) order[i] = &l->spans[i];
  qsort(order, (size_t)l->count, sizeof *order, larger_first);
  for (int32_t i = 0; i < l->count; i++) {
    order[i]->offset = lowest_free(order, i, order[i]);
    size_t end = order[i]->offset + order[i]->bytes;
    if (end > l->program->temp_bytes) l->program->temp_bytes = end;
  }
  gp_free(order);
  return GP_OK;
}

static gp_status lay_out(layout *l) {
  count_reads(l);
  GP_TRY(find_spans(l));
  GP_TRY(place_spans(l));
  for (gp_ref r = 0; r < l->program->graph->value_count; r++)
    if (l->span_of[r])
      l->places[r] = (gp_place){.base = GP_BASE_TEMP, .offset = l->spans[l->span_of[r] - 1].offset};
  return GP_OK;
}

gp_status gp_program_place_temps(gp_program *program, gp_place *places) {
  layout l = {.program = program, .places = places};
  size_t values = (size_t)program->graph->value_count + 1;
  gp_status status = gp_alloc_array((size_t)program->instr_count * GP_MAX_OUTPUTS + 1, sizeof(span),
                                    (void **)&l.spans);
  if (!status) status = gp_alloc_array(values, sizeof(int32_t), (void **)&l.span_of);
  if (!status) status = gp_alloc_array(values, sizeof(int32_t), (void **)&l.readers);
  if (!status) status = lay_out(&l);
  gp_free(l.spans);
  gp_free(l.span_of);
  gp_free(l.readers);
  return status;
}
