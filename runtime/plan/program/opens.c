/* plan/program/opens.c - which instructions may write a gradient where they would add to it.
 *
 * The first micro-batch of a mini-batch finds nothing in its gradients, so the first instruction
 * that adds to one may write it instead, and it need not be filled with zeros before. An
 * instruction writes all of its outputs or adds to all of them. One that is not the first for each
 * of its outputs adds, and so do those that come after it.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "plan/program/program.h"

/* A gradient that an instruction adds to. */
typedef struct addition {
  gp_gradient_part to;
  int32_t instr;
  bool whole; /* all of the gradient, where it begins */
} addition;

static int compare(const void *left, const void *right) {
  const addition *a = left, *b = right;
  if (a->to.base != b->to.base) return a->to.base < b->to.base ? -1 : 1;
  if (a->to.offset != b->to.offset) return a->to.offset < b->to.offset ? -1 : 1;
  return a->instr < b->instr ? -1 : a->instr > b->instr;
}

static bool is_gradient(int32_t base) { return base == GP_BASE_GRAD || base == GP_BASE_EXTRA; }

/* Describe what instruction n adds to its output k. A gradient begins on a cache line of its own,
 * whose rest stays zero, so its own bytes are all that must be written. */
static addition addition_of(const gp_program *p, int32_t n, int k) {
  const gp_instr *instr = &p->instrs[n];
  const gp_graph *graph = p->graph;
  gp_ref out = graph->nodes[instr->node].out + k;
  size_t bytes = gp_meta_bytes(&graph->values[out].meta);
  size_t own = gp_meta_bytes(&graph->values[gp_graph_base(graph, out)].meta);
  return (addition){
      .to = {instr->out[k].base, instr->out[k].offset, bytes}, .instr = n, .whole = bytes == own};
}

static bool adds(const gp_instr *instr) {
  return instr->call.accumulate || instr->op == GP_OP_accumulate;
}

static int32_t list_additions(const gp_program *p, addition *list) {
  int32_t count = 0;
  for (int32_t n = 0; n < p->instr_count; n++)
    for (int k = 0; adds(&p->instrs[n]) && k < p->instrs[n].call.n_out; k++)
      if (is_gradient(p->instrs[n].out[k].base)) list[count++] = addition_of(p, n, k);
  return count;
}

/* Is addition i the first to its gradient that runs? The list is sorted by gradient, then by
 * instruction. */
static bool is_first(const addition *list, int32_t i) {
  return list[i].whole && (i == 0 || list[i].to.base != list[i - 1].to.base ||
                           list[i].to.offset != list[i - 1].to.offset);
}

static void mark(gp_program *p, const addition *list, int32_t count) {
  for (int32_t i = 0; i < count; i++) p->instrs[list[i].instr].opens = true;
  for (int32_t i = 0; i < count; i++)
    if (!is_first(list, i)) p->instrs[list[i].instr].opens = false;
}

gp_status gp_program_find_opening(gp_program *p) {
  addition *list;
  int32_t room = 0;
  for (int32_t n = 0; n < p->instr_count; n++)
    if (adds(&p->instrs[n])) room += p->instrs[n].call.n_out;
  if (room == 0) return GP_OK;
  GP_TRY(gp_alloc_array((size_t)room, sizeof *list, (void **)&list));
  int32_t count = list_additions(p, list);
  if (count) qsort(list, (size_t)count, sizeof *list, compare);
  mark(p, list, count);
  gp_status status = gp_alloc_array((size_t)count + 1, sizeof *p->opened, (void **)&p->opened);
  for (int32_t i = 0; !status && i < count; i++)
    if (p->instrs[list[i].instr].opens) p->opened[p->opened_count++] = list[i].to;
  gp_free(list);
  return status;
}
