/* plan/memory/temp.c - offsets of values that live inside one program.
 *
 * Lifetimes are counted in groups, because a group's instructions run interleaved, block by block.
 * An elementwise result takes over the memory of an input that dies with it: a temporary's, or the
 * place of a value that an earlier program kept and that no later one reads (the gradient of logits
 * lies where the logits were). plan/arrange places the rest.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "plan/arrange/arrange.h"
#include "plan/program/program.h"

enum { ALIGNMENT = 64 };

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
  gp_place *places;
  span *spans;
  int32_t count;
  int32_t *span_of; /* per value: index + 1 of the span of its base; 0: placed elsewhere */
  int32_t *readers; /* per base value: reads left */
} layout;

static bool is_temp(const layout *l, gp_ref base) { return l->places[base].base < 0; }

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

/* Follow an instruction: its inputs first, because one that dies here may become the output. */
static gp_status visit(layout *l, const gp_instr *instr, int32_t group) {
  const gp_graph *graph = l->program->graph;
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

/* Times are inclusive: within a group everything overlaps. A kept value has no bytes here. */
static gp_status place_spans(const layout *l) {
  gp_lifespan *buffers;
  GP_TRY(gp_alloc_array((size_t)l->count + 1, sizeof *buffers, (void **)&buffers));
  for (int32_t i = 0; i < l->count; i++) {
    const span *s = &l->spans[i];
    buffers[i] = (gp_lifespan){.first = s->first, .last = s->last, .bytes = s->bytes};
  }
  gp_status status = gp_arrange(buffers, l->count, &gp_arrange_quick, &l->program->temp_bytes);
  for (int32_t i = 0; !status && i < l->count; i++) l->spans[i].offset = buffers[i].offset;
  gp_free(buffers);
  return status;
}

/* Write down where the outputs lie that no earlier program placed. */
static void note_places(const layout *l) {
  const gp_graph *graph = l->program->graph;
  for (int32_t n = 0; n < l->program->instr_count; n++) {
    const gp_instr *instr = &l->program->instrs[n];
    gp_ref out = graph->nodes[instr->node].out;
    for (gp_ref r = out; r < out + instr->call.n_out; r++) {
      if (!l->span_of[r]) continue;
      const span *s = &l->spans[l->span_of[r] - 1];
      l->places[r] = s->kept.base >= 0 ? s->kept : (gp_place){GP_BASE_TEMP, s->offset};
    }
  }
}

gp_status gp_program_place_temps(gp_program *program, const gp_program_spec *spec) {
  enum { VALUES = GP_MAX_OUTPUTS + GP_MAX_INPUTS }; /* of an instruction */
  layout l = {.program = program,
              .spec = spec,
              .places = spec->places,
              .span_of = spec->notes->span,
              .readers = spec->notes->readers};
  GP_TRY(
      gp_alloc_array((size_t)program->instr_count * VALUES + 1, sizeof(span), (void **)&l.spans));
  gp_status status = find_spans(&l);
  if (!status) status = place_spans(&l);
  if (!status) note_places(&l);
  gp_free(l.spans);
  return status;
}
