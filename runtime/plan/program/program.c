/* plan/program/program.c - node list -> instructions, groups, resolved operands. */
#include <string.h>

#include "plan/program/program.h"

#include "base/memory.h"
#include "base/tensor.h"
#include "ops/cut.h"
#include "ops/half/half.h"

/* ---- instructions -------------------------------------------------------------------------- */

/* Count how often each instance of a value is read: reads[] for those that the program makes, by
 * execution and output; the readers in the notes for those that it finds outside. Going backward,
 * reads belong to the execution that is met next. */
static void count_reads(const gp_program_spec *spec, int32_t *reads) {
  int32_t *readers = spec->notes->readers;
  for (int32_t k = spec->node_count - 1; k >= 0; k--) {
    const gp_node *node = &spec->graph->nodes[spec->nodes[k]];
    for (int o = 0; o < node->n_out; o++) {
      const gp_ref out = node->out + o;
      if (gp_graph_base(spec->graph, out) != out) continue;
      reads[k * GP_MAX_OUTPUTS + o] = readers[out];
      readers[out] = 0;
    }
    for (int i = 0; i < node->n_in; i++) readers[gp_graph_base(spec->graph, node->in[i])]++;
  }
}

/* Count the outputs that an op must make. An output without a place is read in this program or
 * nowhere; some ops can spare their last one if it is read nowhere. */
static int wanted_outputs(const gp_program_spec *spec, const gp_node *node, const int32_t *reads) {
  gp_ref last = node->out + node->n_out - 1;
  bool spare = gp_op_get(node->op)->flags & GP_OP_SPARES &&
               gp_program_makes_temp(spec, node, last) && !reads[node->n_out - 1];
  return node->n_out - spare;
}

/* Fill in an instruction: metas, attributes and the cut are settled here, and only addresses change
 * from run to run. */
static void make_instr(const gp_program_spec *spec, int32_t index, const int32_t *reads,
                       gp_instr *instr) {
  const gp_graph *graph = spec->graph;
  const gp_node *node = &graph->nodes[index];
  const gp_op_def *def = gp_op_get(node->op);
  instr->op = node->op;
  instr->node = index;
  instr->call = (gp_call){.attr = &node->attr,
                          .n_in = node->n_in,
                          .n_out = wanted_outputs(spec, node, reads),
                          .accumulate = node->accumulate};
  for (int i = 0; i < node->n_in; i++) instr->call.in[i].meta = &graph->values[node->in[i]].meta;
  for (int k = 0; k < instr->call.n_out; k++)
    instr->call.out[k].meta = &graph->values[node->out + k].meta;
  instr->cut = gp_op_cut(def, &instr->call);
  instr->phases = gp_half_has_phases(def, &instr->call);
  if (def->cpu.state && !gp_half_widens(def, &instr->call))
    instr->state.bytes = def->cpu.state(&instr->call);
}

/* Make the instructions. Scratch is for one instruction at a time, so the largest counts. */
static gp_status make_instrs(const gp_program_spec *spec, const int32_t *reads,
                             gp_program *program) {
  size_t room = (size_t)spec->node_count + 1;
  GP_TRY(gp_alloc_array(room, sizeof(gp_instr), (void **)&program->instrs));
  GP_TRY(gp_alloc_array(room, sizeof(gp_group), (void **)&program->groups));
  for (int32_t i = 0; i < spec->node_count; i++) {
    gp_instr *instr = &program->instrs[program->instr_count++];
    make_instr(spec, spec->nodes[i], &reads[i * GP_MAX_OUTPUTS], instr);
    const gp_op_def *def = gp_op_get(instr->op);
    const size_t bytes = gp_half_scratch(def, &instr->call);
    if (bytes > program->scratch_bytes) program->scratch_bytes = bytes;
    const size_t shared = instr->phases ? gp_half_shared(def, &instr->call) : 0;
    if (shared > program->shared_bytes) program->shared_bytes = shared;
  }
  return GP_OK;
}

/* ---- groups -------------------------------------------------------------------------------- */

/* Groups under construction: an instruction may join the last one only. */
typedef struct grouping {
  gp_program *program;
  int32_t *group_of; /* per base value: number + 1 of the group that wrote it last */
} grouping;

/* Does the last group write this memory? An op that writes a view writes its base. */
static bool written_in(const grouping *g, gp_ref base) {
  return g->group_of[base] == g->program->group_count;
}

static void note_writes(const grouping *g, const gp_instr *instr) {
  const gp_graph *graph = g->program->graph;
  const gp_node *node = &graph->nodes[instr->node];
  for (int k = 0; k < node->n_out; k++)
    g->group_of[gp_graph_base(graph, node->out + k)] = g->program->group_count;
}

/* Is input i of instr read row by row, each row where the group's rows are? */
static bool reads_rows(const gp_program *p, const gp_instr *instr, int i) {
  const gp_value *value = &p->graph->values[p->graph->nodes[instr->node].in[i]];
  int64_t numel = gp_meta_numel(&value->meta);
  bool by_row = gp_op_get(instr->op)->row_inputs >> i & 1;
  bool whole = value->meta.offset == 0 && gp_meta_is_contiguous(&value->meta) &&
               numel == gp_meta_numel(&p->graph->values[value->base].meta);
  int64_t units = instr->cut.units;
  bool same = units > 0 && numel >= units && numel % units == 0; /* without rows, none is read */
  if (gp_op_get(instr->op)->flags & GP_OP_STRIDED) /* elementwise: a smaller input is broadcast */
    same = same && numel == gp_meta_numel(instr->call.out[0].meta);
  return by_row && whole && same;
}

/* May instr follow the group's row-wise chain? What it reads of the group, it must read row by
 * row. */
static bool chains(const grouping *g, const gp_group *group, const gp_instr *instr) {
  const gp_program *p = g->program;
  const gp_instr *first = &p->instrs[group->first];
  if (group->side_by_side && group->count > 1) return false;
  if (!(gp_op_get(instr->op)->flags & gp_op_get(first->op)->flags & GP_OP_ROWS)) return false;
  if (instr->cut.units != first->cut.units || instr->cut.grain != first->cut.grain) return false;
  const gp_node *node = &p->graph->nodes[instr->node];
  for (int i = 0; i < node->n_in; i++)
    if (written_in(g, gp_graph_base(p->graph, node->in[i])) && !reads_rows(p, instr, i))
      return false;
  return true;
}

/* May instr run beside the group's instructions? It reads and writes nothing that they write.
 * Row-wise ops stay out: they do better in a chain. */
static bool runs_beside(const grouping *g, const gp_group *group, const gp_instr *instr) {
  const gp_program *p = g->program;
  const gp_node *node = &p->graph->nodes[instr->node];
  bool chained = !group->side_by_side && group->count > 1;
  if (chained || gp_op_get(instr->op)->flags & GP_OP_ROWS) return false;
  if (gp_op_get(p->instrs[group->first].op)->flags & GP_OP_ROWS) return false;
  for (int i = 0; i < node->n_in; i++)
    if (written_in(g, gp_graph_base(p->graph, node->in[i]))) return false;
  for (int k = 0; k < node->n_out; k++)
    if (written_in(g, gp_graph_base(p->graph, node->out + k))) return false;
  return true;
}

/* The last piece may be smaller. */
int64_t gp_instr_pieces(const gp_instr *instr) {
  return (instr->cut.units + instr->cut.grain - 1) / instr->cut.grain;
}

/* Does the instruction have a group of its own: one with phases, or one that all replicas take part
 * in? */
static bool is_alone(const gp_instr *instr) {
  return instr->phases || instr->op == GP_OP_replica_gather;
}

/* The last group, if the instruction may join it. */
static gp_group *open_group(const gp_program *p, const gp_instr *instr) {
  gp_group *last = p->group_count ? &p->groups[p->group_count - 1] : NULL;
  return last && !is_alone(instr) && !is_alone(&p->instrs[last->first]) ? last : NULL;
}

/* Group the instructions greedily and in order: each joins the group before it or opens the
 * next. */
static void make_groups(gp_program *p, bool separate, int32_t *group_of) {
  grouping g = {.program = p, .group_of = group_of};
  for (int32_t i = 0; i < p->instr_count; i++) {
    gp_group *last = separate ? NULL : open_group(p, &p->instrs[i]);
    int64_t pieces = gp_instr_pieces(&p->instrs[i]);
    if (last && chains(&g, last, &p->instrs[i])) {
      last->count++;
    } else if (last && runs_beside(&g, last, &p->instrs[i])) {
      last->side_by_side = true;
      last->pieces += pieces;
      last->count++;
    } else {
      p->groups[p->group_count++] = (gp_group){.first = i, .count = 1, .pieces = pieces};
    }
    note_writes(&g, &p->instrs[i]);
  }
}

/* ---- notes --------------------------------------------------------------------------------- */

gp_status gp_program_notes_new(const gp_graph *graph, gp_program_notes *notes) {
  size_t values = (size_t)graph->value_count + 1;
  GP_TRY(gp_alloc_array(3 * values, sizeof(int32_t), (void **)&notes->span));
  notes->readers = notes->span + values;
  notes->group = notes->readers + values;
  return GP_OK;
}

void gp_program_notes_free(gp_program_notes *notes) {
  gp_free(notes->span);
  *notes = (gp_program_notes){0};
}

static void forget(const gp_program_spec *spec, gp_ref base) {
  spec->notes->span[base] = spec->notes->readers[base] = spec->notes->group[base] = 0;
}

/* Clear the notes of the values that the program reads and makes. */
static void forget_all(const gp_program_spec *spec) {
  for (int32_t k = 0; k < spec->node_count; k++) {
    const gp_node *node = &spec->graph->nodes[spec->nodes[k]];
    for (int i = 0; i < node->n_in; i++) forget(spec, gp_graph_base(spec->graph, node->in[i]));
    for (int o = 0; o < node->n_out; o++) forget(spec, gp_graph_base(spec->graph, node->out + o));
  }
}

/* ---- all of it ----------------------------------------------------------------------------- */

static gp_status build_with(const gp_program_spec *spec, int32_t *reads, gp_program *program) {
  count_reads(spec, reads);
  GP_TRY(make_instrs(spec, reads, program));
  make_groups(program, spec->separate, spec->notes->group);
  GP_TRY(gp_program_place_temps(program, spec, reads));
  return gp_program_find_opening(program);
}

static gp_status build(const gp_program_spec *spec, gp_program *program) {
  int32_t *reads;
  GP_TRY(gp_alloc_array((size_t)spec->node_count * GP_MAX_OUTPUTS + 1, sizeof *reads,
                        (void **)&reads));
  gp_status status = build_with(spec, reads, program);
  gp_free(reads);
  return status;
}

gp_status gp_program_build(const gp_program_spec *spec, gp_program **program) {
  gp_program *made = NULL;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->graph = spec->graph;
  gp_status status = build(spec, made);
  forget_all(spec);
  if (status) return gp_program_free(made), status;
  *program = made;
  return GP_OK;
}

void gp_program_free(gp_program *program) {
  if (!program) return;
  gp_free(program->instrs);
  gp_free(program->groups);
  gp_free(program->opened);
  gp_free(program);
}
