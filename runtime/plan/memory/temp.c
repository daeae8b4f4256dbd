/* plan/memory/temp.c - offsets of values that live inside one program.
 *
 * Lifetimes are counted in groups, because a group's instructions run interleaved, block by block.
 * An elementwise result takes over the memory of an input that dies with it: a temporary's, or the
 * place of a value that an earlier program kept and that no later one reads (the gradient of logits
 * lies where the logits were). Or it is kept itself, for a backward program: then the input is made
 * where the result will lie. The rest is arranged (plan/arrange) in the temporary area and in what
 * kept values leave free: once they have died, in a backward program, and until they are made, in
 * the program that makes them.
 */
#include "base/memory.h"
#include "base/tensor.h"
#include "plan/arrange/arrange.h"
#include "plan/program/program.h"

enum { ALIGNMENT = 64 };

/* One piece of memory: a value and those that took it over. */
typedef struct span {
  gp_ref value;
  gp_place kept;       /* of a value that another program made or will read; base -1: a temporary */
  int32_t first, last; /* groups */
  int32_t reads;       /* so far */
  size_t bytes;
  gp_place place; /* of a temporary */
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
  const bool kept = gp_base_is_kept(l->places[base].base);
  return kept && l->spec->frees && !(l->spec->later && l->spec->later[base]);
}

/* Does the value lie in a slot of its micro-batch, which this program fills for a later one? Until
 * it is made, the place is free. */
static bool is_kept(const layout *l, gp_ref base) {
  const int32_t area = l->places[base].base;
  return !l->spec->frees && gp_base_is_kept(area) && !gp_base_is_away(area);
}

/* Is it certain that every other instruction of this group reads the span row by row? */
static bool free_in_group(const layout *l, const span *s, int32_t group) {
  return s->reads == 0 || s->first == group || l->program->groups[group].count == 1;
}

/* Do the elements of two values have the same places, one dtype and one shape? */
static bool lies_alike(const gp_meta *a, const gp_meta *b) {
  for (int d = 0; d < a->shape.rank && d < b->shape.rank; d++)
    if (a->shape.dim[d] != 1 && a->stride[d] != b->stride[d]) return false;
  return gp_meta_equal(a, b);
}

/* The meta of the memory that a value takes over with this one: its own or, where it is all but the
 * padding of its base (graph/pad.c), the base's. A last dimension of 1 may be broadcast. */
static const gp_meta *whole_of(const gp_graph *graph, gp_ref ref) {
  const gp_meta *own = &graph->values[ref].meta;
  const gp_meta *all = &graph->values[gp_graph_base(graph, ref)].meta;
  const int last = own->shape.rank - 1;
  if (last < 0 || all->shape.rank != last + 1 || own->dtype != all->dtype) return own;
  for (int d = 0; d <= last; d++)
    if (own->stride[d] != all->stride[d] || (d < last && own->shape.dim[d] != all->shape.dim[d]))
      return own;
  return own->shape.dim[last] > 1 ? all : own;
}

/* Is the whole memory of an input free for output 0 once the instruction has read it? */
static bool dies(const layout *l, const gp_node *node, int i, int32_t group) {
  const gp_graph *graph = l->program->graph;
  gp_ref in = node->in[i], base = gp_graph_base(graph, in);
  if (graph->values[in].meta.offset != 0) return false;
  const gp_meta *meta = whole_of(graph, in);
  return l->span_of[base] && !is_kept(l, base) && l->readers[base] == 1 &&
         (gp_meta_is_contiguous(meta) || gp_meta_is_channels_last(meta)) &&
         lies_alike(meta, &graph->values[node->out].meta) &&
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

/* Reserve the place of a kept output to the end of the program. A temporary that it takes over
 * (taken: number + 1 of its span) is moved, from its beginning, to that place. */
static void make_kept(layout *l, gp_ref out, int32_t taken, int32_t group) {
  if (l->span_of[out]) return; /* R makes it again */
  l->span_of[out] = taken ? taken : ++l->count;
  span *s = &l->spans[l->span_of[out] - 1];
  if (!taken) s->first = group;
  s->last = l->program->group_count;
  s->value = out;
  s->kept = l->places[out];
  s->bytes = 0;
}

static void note_read(span *s, int32_t group) {
  if (group > s->last) s->last = group;
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
    if (gp_graph_base(graph, out) != out) continue;
    if (is_kept(l, out)) make_kept(l, out, k ? 0 : taken, group);
    if (!gp_program_makes_temp(l->spec, node, out)) continue;
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

/* Memory that the program may use, one after the other on a line: what dies in the slots of its
 * micro-batch leaves room there, and the temporary area lies behind. Nothing may reach from one
 * into the next, so a wall stands between them. */
enum { TEMPORARY = GP_KEPT_BASES, REGIONS, WALLS = REGIONS - 1, WALL = ALIGNMENT };

/* Where the regions begin: one for each base of such slots, in their order. */
static void find_regions(const layout *l, size_t begin[REGIONS]) {
  begin[0] = 0;
  for (int r = 1; r < REGIONS; r++) begin[r] = begin[r - 1] + l->spec->room[r - 1] + WALL;
}

/* Describe a span; a kept value stays where it is until it dies. */
static gp_lifespan describe(const layout *l, const span *s, const size_t begin[REGIONS]) {
  gp_lifespan life = {.first = s->first, .last = s->last, .bytes = s->bytes};
  if (s->kept.base < 0) return life;
  const int region = s->kept.base - GP_BASE_SAVED;
  if (!l->spec->room[region]) return life; /* no bytes: there is no room to share */
  const size_t bytes = gp_meta_bytes(&l->program->graph->values[s->value].meta);
  life.bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  life.offset = begin[region] + s->kept.offset;
  life.fixed = true;
  return life;
}

/* Place a span where the arrangement says. */
static void take_place(span *s, size_t offset, const size_t begin[REGIONS]) {
  int region = TEMPORARY;
  while (region > 0 && offset < begin[region]) region--;
  const int32_t base = region == TEMPORARY ? GP_BASE_TEMP : GP_BASE_SAVED + region;
  s->place = (gp_place){base, offset - begin[region]};
}

/* Times are inclusive: within a group everything overlaps. */
static gp_status arrange(const layout *l, gp_lifespan *buffers) {
  size_t begin[REGIONS], peak;
  find_regions(l, begin);
  for (int32_t i = 0; i < l->count; i++) buffers[i] = describe(l, &l->spans[i], begin);
  for (int w = 0; w < WALLS; w++)
    buffers[l->count + w] = (gp_lifespan){.first = -1,
                                          .last = l->program->group_count,
                                          .bytes = WALL,
                                          .offset = begin[w + 1] - WALL,
                                          .fixed = true};
  GP_TRY(gp_arrange(buffers, l->count + WALLS, &gp_arrange_quick, &peak));
  for (int32_t i = 0; i < l->count; i++)
    if (l->spans[i].kept.base < 0) take_place(&l->spans[i], buffers[i].offset, begin);
  l->program->temp_bytes = peak - begin[TEMPORARY];
  return GP_OK;
}

static gp_status place_spans(const layout *l) {
  gp_lifespan *buffers;
  GP_TRY(gp_alloc_array((size_t)l->count + WALLS, sizeof *buffers, (void **)&buffers));
  gp_status status = arrange(l, buffers);
  gp_free(buffers);
  return status;
}

/* ---- operands ------------------------------------------------------------------------------ */

/* Resolve an operand; the offset of a view counts from where its base begins. */
static gp_place operand(const layout *l, gp_ref ref) {
  const gp_value *value = &l->program->graph->values[ref];
  const int32_t own = l->span_of[value->base];
  gp_place place = l->places[value->base];
  if (own) {
    const span *s = &l->spans[own - 1];
    place = s->kept.base >= 0 ? s->kept : s->place;
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
      if (own && gp_base_is_kept(instr->out[k].base)) instr->ahead |= 1u << k;
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
