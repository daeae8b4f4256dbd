/* plan/program/side.c - what a program may run on a second queue of its device, and what its two
 * queues wait for.
 *
 * What the gradient of a parameter is made of is there long before anybody wants the gradient, and
 * most of these products are too small to fill a GPU. So instructions that only add to gradients
 * may run beside the others. Their memory is laid out by the order of the program all the same:
 * where one instruction writes what another reads or writes, the later of the two comes after the
 * earlier, on whichever queue they are. Within a queue that is so anyway; between the two the later
 * waits for an event. So gradients receive what is added to them in the same order, and a device
 * with one queue runs the program as it stands.
 */
#include "base/tensor.h"
#include "plan/program/program.h"

/* ---- choosing ------------------------------------------------------------------------------ */

/* Ids out of range go to the device's one word for faults, which both queues would write. */
static bool reads_ids(gp_op op) {
  for (const gp_operand *o = gp_op_contract(op)->operands; o->role; o++)
    if (o->kind == GP_KIND_IDS) return true;
  return false;
}

/* Only instructions that add to the same gradients read what it makes. What goes to an accumulator
 * beside a main one stays on the first queue: it is mostly the product of a tied head, which fills
 * a GPU by itself. */
static bool adds_only(const gp_program *p, const gp_place *places, const gp_instr *instr) {
  gp_ref out = p->graph->nodes[instr->node].out;
  if (!instr->call.accumulate || reads_ids(instr->op)) return false;
  for (int k = 0; k < instr->call.n_out; k++)
    if (places[gp_graph_base(p->graph, out + k)].base != GP_BASE_GRAD) return false;
  return true;
}

/* The first has nothing to run beside. Of several in a row every second one goes. */
void gp_program_choose_side(gp_program *p, const gp_program_spec *spec) {
  for (int32_t n = 1; spec->side && n < p->instr_count; n++) {
    gp_instr *instr = &p->instrs[n];
    instr->side = !p->instrs[n - 1].side && adds_only(p, spec->places, instr);
    if (instr->side) p->last_side = n;
  }
}

/* ---- what waits for what --------------------------------------------------------------------- */

/* Memory that an instruction reads or writes: of views all of what they are views of. */
typedef struct range {
  gp_place at;
  size_t bytes;
} range;

static range range_of(const gp_program *p, const gp_place *places, gp_ref ref) {
  gp_ref base = gp_graph_base(p->graph, ref);
  return (range){places[base], gp_meta_bytes(&p->graph->values[base].meta)};
}

static bool overlap(range a, range b) {
  if (a.at.base != b.at.base) return false;
  return a.at.offset < b.at.offset + b.bytes && b.at.offset < a.at.offset + a.bytes;
}

/* Does a write what b reads or writes? */
static bool disturbs(const gp_program *p, const gp_place *places, const gp_instr *a,
                     const gp_instr *b) {
  const gp_node *of_a = &p->graph->nodes[a->node], *of_b = &p->graph->nodes[b->node];
  for (int k = 0; k < a->call.n_out; k++) {
    range written = range_of(p, places, of_a->out + k);
    for (int i = 0; i < b->call.n_in; i++)
      if (overlap(written, range_of(p, places, of_b->in[i]))) return true;
    for (int i = 0; i < b->call.n_out; i++)
      if (overlap(written, range_of(p, places, of_b->out + i))) return true;
  }
  return false;
}

/* The last instruction of the other queue before n, and after `known`, that n must not overtake;
 * -1: none. */
static int32_t find_wait(const gp_program *p, const gp_place *places, int32_t n, int32_t known) {
  const gp_instr *instr = &p->instrs[n];
  for (int32_t m = n - 1; m > known; m--) {
    const gp_instr *other = &p->instrs[m];
    if (other->side == instr->side) continue;
    if (disturbs(p, places, other, instr) || disturbs(p, places, instr, other)) return m;
  }
  return -1;
}

static void tell(gp_program *p, int32_t n) {
  if (p->instrs[n].event < 0) p->instrs[n].event = p->event_count++;
}

/* The second queue begins when the program has: after its first instruction. It is over when the
 * program is: whoever runs the program sees to that with the event of the last one. */
void gp_program_order_side(gp_program *p, const gp_program_spec *spec) {
  int32_t known[2] = {-1, -1}; /* per queue: what it has waited for so far */
  for (int32_t n = 0; n < p->instr_count && p->last_side >= 0; n++) {
    gp_instr *instr = &p->instrs[n];
    int32_t *own = &known[instr->side];
    instr->after = find_wait(p, spec->places, n, *own);
    if (instr->side && *own < 0 && instr->after < 0) instr->after = 0;
    if (instr->after < 0) continue;
    *own = instr->after;
    tell(p, instr->after);
  }
  if (p->last_side >= 0) tell(p, p->last_side);
}
