/* tests/c/plan/program_test.c - programs give the bits of their ops run one after the other,
 * whatever shares memory.
 *
 * Random graphs with their gradients run twice. The first run gives every value memory of its own,
 * and runs one op after the other. The second is a program, or three of them, with groups, in-place
 * results, temporary memory and the pieces of each group last first; or it runs op by op on two
 * queues, in any order that their waits allow. */
#include <stdlib.h>

#include "toy.h"

/* Everything but temporaries lies at an absolute address, relative to a base of NULL. */
enum { ABSOLUTE = GP_BASE_GRAD, BASES };

enum { VALUES = 24576, MAX_POOL = 64 };

static uint32_t state = 1;

static uint32_t draw(uint32_t below) {
  state = state * 1664525 + 1013904223;
  return (state >> 8) % below;
}

/* ---- running ------------------------------------------------------------------------------- */

static void bind(gp_program *p, char *temp) {
  static const gp_step_block step = {
      .seed = 3, .step = 2, .rows = 5, .inverse_count = 0.125, .scale = 1};
  char *frame[BASES] = {[GP_BASE_TEMP] = temp}; /* the others: NULL */
  for (int32_t n = 0; n < p->instr_count; n++) {
    gp_instr *instr = &p->instrs[n];
    instr->call.step = &step;
    for (int i = 0; i < instr->call.n_in; i++)
      instr->call.in[i].data = (void *)((uintptr_t)frame[instr->in[i].base] + instr->in[i].offset);
    for (int k = 0; k < instr->call.n_out; k++)
      instr->call.out[k].data =
          (void *)((uintptr_t)frame[instr->out[k].base] + instr->out[k].offset);
  }
}

static void run_piece(const gp_program *p, int32_t n, int64_t piece, char *scratch) {
  const gp_instr *instr = &p->instrs[n];
  int64_t first = piece * instr->cut.grain, last = first + instr->cut.grain;
  gp_span span = {.first = first,
                  .last = last < instr->cut.units ? last : instr->cut.units,
                  .scratch = scratch};
  CHECK_STATUS(gp_op_get(instr->op)->cpu.run(&instr->call, span), GP_OK);
}

/* Pieces of a group may run in any order; running the last one first finds pieces that depend on
 * others. */
static void run_groups(const gp_program *p, char *scratch) {
  for (int32_t g = 0; g < p->group_count; g++) {
    const gp_group *group = &p->groups[g];
    int32_t first = group->first, end = first + group->count;
    int64_t chained = group->side_by_side ? 0 : group->pieces;
    for (int64_t piece = chained - 1; piece >= 0; piece--)
      for (int32_t n = first; n < end; n++) run_piece(p, n, piece, scratch);
    for (int32_t n = end - 1; !chained && n >= first; n--)
      for (int64_t piece = gp_instr_pieces(&p->instrs[n]) - 1; piece >= 0; piece--)
        run_piece(p, n, piece, scratch);
  }
}

static void run_program(gp_program *p) {
  void *temp = NULL, *scratch = NULL;
  CHECK_STATUS(gp_alloc(p->temp_bytes + 1, &temp), GP_OK);
  CHECK_STATUS(gp_alloc(p->scratch_bytes + 1, &scratch), GP_OK);
  memset(temp, 0xff, p->temp_bytes);
  bind(p, temp);
  run_groups(p, scratch);
  gp_free(temp);
  gp_free(scratch);
}

/* ---- memory of values ---------------------------------------------------------------------- */

typedef struct layout {
  int32_t count; /* number of values */
  gp_place places[VALUES];
  void *memory[VALUES]; /* owned; NULL where the program places the value itself */
} layout;

/* Allocates a place of its own for a value. */
static void *place(layout *l, const gp_graph *graph, gp_ref r) {
  CHECK_STATUS(gp_alloc(gp_meta_bytes(&graph->values[r].meta) + 1, &l->memory[r]), GP_OK);
  l->places[r] = (gp_place){ABSOLUTE, (size_t)l->memory[r]};
  return l->memory[r];
}

/* Returns where the value of a parameter lies, and draws it now. */
static gp_place value_place(gp_param *param) {
  gp_tensor *value = NULL;
  CHECK_STATUS(gp_param_value(param, &value), GP_OK);
  void *data = gp_tensor_data(value);
  gp_tensor_free(value); /* the parameter keeps it */
  return (gp_place){ABSOLUTE, (size_t)data};
}

/* Places inputs with numbers in them, parameters where they live, accumulators at zero. */
static void place_outside(layout *l, const gp_graph *graph, gp_ref r) {
  const gp_value *value = &graph->values[r];
  if (value->kind == GP_VALUE_PARAM)
    l->places[r] = value_place(graph->params[value->index]);
  else if (value->kind == GP_VALUE_CONST)
    l->places[r].offset = (size_t)gp_tensor_data(graph->constants[value->index]);
  else
    place(l, graph, r);
  l->places[r].base = ABSOLUTE;
  float *numbers = l->memory[r];
  for (int64_t i = 0; value->kind <= GP_VALUE_TARGET && i < gp_meta_numel(&value->meta); i++)
    numbers[i] = (float)((i * 37 + r) % 19) / 19 - 0.5f;
}

/* Lays out the values. own: every value has memory of its own; else only the outside ones and the
 * results. */
static layout *lay_out(const gp_graph *graph, bool own, const gp_ref *results, int count) {
  layout *l = calloc(1, sizeof *l);
  l->count = graph->value_count;
  for (gp_ref r = 0; r < graph->value_count; r++) {
    l->places[r].base = -1;
    if (graph->values[r].base != r) continue;
    bool result = own;
    for (int i = 0; i < count; i++) result |= gp_graph_base(graph, results[i]) == r;
    if (graph->values[r].kind != GP_VALUE_NODE)
      place_outside(l, graph, r);
    else if (result)
      place(l, graph, r);
  }
  return l;
}

static void lay_off(layout *l) {
  for (int32_t r = 0; r < l->count; r++) gp_free(l->memory[r]);
  free(l);
}

/* ---- random graphs ------------------------------------------------------------------------- */

typedef struct pool {
  toy t;
  gp_ref values[MAX_POOL];
  int count;
} pool;

static gp_ref any(const pool *p) {
  int recent = p->count < 6 ? p->count : 6; /* prefers the newest values, which makes chains */
  return p->values[draw(4) ? p->count - 1 - (int)draw((uint32_t)recent)
                           : (int)draw((uint32_t)p->count)];
}

/* Applies an op if its inputs fit and are small; keeps the result. */
static void attempt(pool *p, gp_op op, const gp_attrs *attrs, int n, const gp_ref *in) {
  gp_ref out[GP_MAX_OUTPUTS];
  int outputs;
  for (int i = 0; i < n; i++)
    if (gp_meta_numel(gp_trace_meta(p->t.trace, in[i])) > 600) return;
  if (p->count == MAX_POOL || gp_trace_apply(p->t.trace, op, attrs, in, n, out, &outputs)) return;
  if (gp_trace_meta(p->t.trace, out[0])->dtype == GP_F32) p->values[p->count++] = out[0];
}

static void attempt_view(pool *p) {
  gp_ref in = any(p);
  const gp_shape *shape = &gp_trace_meta(p->t.trace, in)->shape;
  int64_t rows = shape->dim[0], width = shape->rank > 1 ? shape->dim[1] : 1;
  gp_attrs turn = {.permute = {{2, {1, 0}}}}, fold = {.reshape = {{2, {rows * width, 1}}}},
           flat = {.reshape = {{1, {rows * width}}}};
  gp_attrs part = {.narrow = {0, rows > 1, rows > 1 ? rows - 1 : rows}};
  switch (draw(4)) {
  case 0: attempt(p, GP_OP_permute, &turn, 1, &in); break;
  case 1: attempt(p, GP_OP_reshape, &fold, 1, &in); break;
  case 2: attempt(p, GP_OP_reshape, &flat, 1, &in); break;
  default: attempt(p, GP_OP_narrow, &part, 1, &in);
  }
}

/* Returns a parameter of this shape: an existing one (two uses, one accumulator), or a new one. */
static gp_param *weight_of(pool *p, gp_shape shape) {
  for (int i = 0; i < p->t.param_count && draw(2); i++)
    if (gp_shape_equal(&gp_param_meta(p->t.params[i])->shape, &shape)) return p->t.params[i];
  return toy_param(&p->t, shape, false, false);
}

static void attempt_heavy(pool *p) {
  gp_ref in[3] = {any(p)};
  const gp_shape *shape = &gp_trace_meta(p->t.trace, in[0])->shape;
  int64_t width = shape->rank ? shape->dim[shape->rank - 1] : 1;
  bool norm = draw(2);
  if (p->t.param_count + 2 > TOY_PARAMS || width > 256) return;
  in[1] = toy_use(&p->t, weight_of(p, norm ? SHAPE(width) : SHAPE(width, width)));
  in[2] = toy_use(&p->t, weight_of(p, SHAPE(width)));
  const gp_attrs eps = {.layer_norm = {1e-5}};
  attempt(p, norm ? GP_OP_layer_norm : GP_OP_linear, norm ? &eps : &toy_plain, 3, in);
}

/* True: graphs have permuted views in many places. */
static bool turning;

static void attempt_any(pool *p) {
  static const gp_attrs by_tanh = {.gelu = {GP_GELU_TANH}};
  static const gp_op unary[] = {GP_OP_tanh, GP_OP_sigmoid, GP_OP_relu,        GP_OP_neg, GP_OP_gelu,
                                GP_OP_silu, GP_OP_softmax, GP_OP_log_softmax, GP_OP_copy};
  static const gp_op binary[] = {GP_OP_add, GP_OP_sub, GP_OP_mul};
  gp_ref in[2] = {any(p), any(p)};
  uint32_t chosen = draw(9);
  if (turning && draw(3) == 0)
    attempt(p, GP_OP_permute, &(gp_attrs){.permute = {{2, {1, 0}}}}, 1, in);
  switch (draw(9)) {
  case 0: attempt_view(p); break;
  case 1: attempt_heavy(p); break;
  case 2: attempt(p, GP_OP_sum, &(gp_attrs){.sum = {1 + draw(2), true}}, 1, in); break;
  case 3: attempt(p, GP_OP_dropout, &(gp_attrs){.dropout = {0.25}}, 1, in); break;
  case 4:
  case 5: attempt(p, binary[draw(3)], &toy_plain, 2, in); break;
  case 6: attempt(p, GP_OP_linear, &toy_plain, 2, in); break; /* a weight that is a value */
  default: attempt(p, unary[chosen], unary[chosen] == GP_OP_gelu ? &by_tanh : &toy_plain, 1, in);
  }
}

/* Makes a graph whose loss is the sum of the last few values, with its gradient. */
static pool random_graph(gp_ref *loss) {
  static const int64_t rows[] = {1, 2, 5, 64, 65, 130};
  pool p = {.t = toy_new(rows[draw(6)])};
  toy_layer(&p.t, 0);
  p.t.value = toy_op2(&p.t, GP_OP_mul, p.t.x,
                      toy_use(&p.t, toy_param(&p.t, SHAPE(TOY_WIDTH), false, false)));
  p.values[p.count++] = p.t.x;
  p.values[p.count++] = p.t.value;
  for (uint32_t k = 0, n = 5 + draw(40); k < n; k++) attempt_any(&p);
  *loss = toy_op1(&p.t, GP_OP_sum, p.values[p.count - 1]);
  for (int k = 2; k <= 4 && k <= p.count; k++)
    *loss = toy_op2(&p.t, GP_OP_add, *loss, toy_op1(&p.t, GP_OP_sum, p.values[p.count - k]));
  gp_gradient_root root = {.value = *loss, .layer = 0, .is_loss = true};
  CHECK_STATUS(gp_graph_gradient(&p.t.trace->graph, &root, 1), GP_OK);
  return p;
}

/* Lists all nodes that have a kernel, the backward ones in the order of a backward program if
 * asked. */
static gp_node_list node_list(const gp_graph *graph, bool ordered) {
  gp_node_list list = {calloc((size_t)graph->node_count + 1, sizeof(int32_t)), 0};
  int32_t forward = 0;
  for (int32_t n = 0; n < graph->node_count; n++) {
    if (gp_op_get(graph->nodes[n].op)->flags & GP_OP_VIEW) continue;
    list.nodes[list.count++] = n;
    if (graph->nodes[n].phase == GP_FORWARD) forward = list.count;
  }
  if (ordered)
    CHECK_STATUS(gp_program_order(graph, list.nodes + forward, list.count - forward), GP_OK);
  return list;
}

static gp_program *build_graph(const gp_graph *graph, layout *l, bool own) {
  gp_node_list list = node_list(graph, !own);
  gp_program *program = NULL;
  gp_program_notes notes;
  CHECK_STATUS(gp_program_notes_new(graph, &notes), GP_OK);
  gp_program_spec spec = {graph, list.nodes, list.count, l->places, &notes, own, false, NULL, {0}};
  CHECK_STATUS(gp_program_build(&spec, &program), GP_OK);
  gp_program_notes_free(&notes);
  free(list.nodes);
  return program;
}

static void run_graph(const gp_graph *graph, layout *l, bool own) {
  gp_program *program = build_graph(graph, l, own);
  if (program) run_program(program);
  gp_program_free(program);
}

/* Do results and accumulators have the same bits in both layouts? Values kept from one program for
 * another are skipped, because they may have been overwritten. */
static bool same_results(const gp_graph *graph, const layout *a, const layout *b) {
  bool same = true;
  for (gp_ref r = 0; r < graph->value_count; r++) {
    bool compared =
        graph->values[r].kind == GP_VALUE_NODE || graph->values[r].kind == GP_VALUE_SLOT;
    if (b->places[r].base == GP_BASE_SAVED) continue;
    if (!compared || !a->memory[r] || !b->memory[r]) continue;
    same &= !memcmp(a->memory[r], b->memory[r], gp_meta_bytes(&graph->values[r].meta));
  }
  return same;
}

TEST(programs_give_the_bits_of_their_ops) {
  size_t live = gp_memory().live;
  int slots = 0;
  for (uint32_t seed = 1; seed <= 3000; seed++) {
    gp_ref results[2];
    state = seed;
    pool p = random_graph(&results[0]);
    const gp_graph *graph = toy_graph(&p.t);
    results[1] = p.values[draw((uint32_t)p.count)];
    CHECK(graph->value_count < VALUES);
    layout *apart = lay_out(graph, true, NULL, 0), *packed = lay_out(graph, false, results, 2);
    run_graph(graph, apart, true);
    run_graph(graph, packed, false);
    if (!same_results(graph, apart, packed)) printf("seed %u\n", seed);
    CHECK(same_results(graph, apart, packed));
    for (gp_ref r = 0; r < graph->value_count; r++) slots += graph->values[r].kind == GP_VALUE_SLOT;
    lay_off(apart);
    lay_off(packed);
    toy_free(&p.t);
  }
  CHECK(slots > 400); /* the graphs must have gradients */
  CHECK(gp_memory().live == live);
}

/* ---- several programs ----------------------------------------------------------------------- */

typedef struct cut_list {
  const gp_graph *graph;
  gp_node_list parts[3]; /* F, I and W of one list */
  bool read[3][VALUES];  /* per base value: does the part read it? */
} cut_list;

/* Cuts a graph into its forward nodes and two parts of the backward ones, anywhere. */
static cut_list *cut(const gp_graph *graph) {
  cut_list *c = calloc(1, sizeof *c);
  gp_node_list all = node_list(graph, true);
  int32_t forward = 0;
  while (forward < all.count && graph->nodes[all.nodes[forward]].phase == GP_FORWARD) forward++;
  int32_t middle = forward + (int32_t)draw((uint32_t)(all.count - forward) + 1);
  c->graph = graph;
  c->parts[0] = (gp_node_list){all.nodes, forward};
  c->parts[1] = (gp_node_list){all.nodes + forward, middle - forward};
  c->parts[2] = (gp_node_list){all.nodes + middle, all.count - middle};
  for (int k = 0; k < 3; k++)
    for (int32_t i = 0; i < c->parts[k].count; i++) {
      const gp_node *node = &graph->nodes[c->parts[k].nodes[i]];
      for (int j = 0; j < node->n_in; j++) c->read[k][gp_graph_base(graph, node->in[j])] = true;
    }
  return c;
}

/* Values that F makes for the other parts are kept in memory that those may overwrite; values that
 * I makes for W are carried. */
static void place_kept(layout *l, const cut_list *c) {
  for (int k = 0; k < 2; k++)
    for (int32_t i = 0; i < c->parts[k].count; i++) {
      const gp_node *node = &c->graph->nodes[c->parts[k].nodes[i]];
      for (gp_ref r = node->out; r < node->out + node->n_out; r++) {
        bool read = c->read[2][r] || (k == 0 && c->read[1][r]);
        if (!read || l->places[r].base >= 0 || c->graph->values[r].base != r) continue;
        place(l, c->graph, r);
        if (k == 0) l->places[r].base = GP_BASE_SAVED;
      }
    }
}

/* How many results took over kept values, and how many operands were made where a kept value comes
 * to lie. */
typedef struct takeovers {
  int later, ahead;
} takeovers;

/* Runs the three parts. */
static void run_parts(const cut_list *c, layout *l, takeovers *taken) {
  gp_program_notes notes;
  CHECK_STATUS(gp_program_notes_new(c->graph, &notes), GP_OK);
  for (int k = 0; k < 3; k++) {
    gp_program *p = NULL;
    const bool *later = k == 1 ? c->read[2] : NULL;
    gp_program_spec spec = {
        c->graph, c->parts[k].nodes, c->parts[k].count, l->places, &notes, false, k > 0, later,
        {0}};
    CHECK_STATUS(gp_program_build(&spec, &p), GP_OK);
    for (int32_t n = 0; n < p->instr_count; n++) {
      const gp_ref out = gp_graph_base(c->graph, c->graph->nodes[p->instrs[n].node].out);
      const bool kept = p->instrs[n].out[0].base == GP_BASE_SAVED;
      taken->later += k > 0 && kept;
      taken->ahead += k == 0 && kept && l->places[out].base != GP_BASE_SAVED;
    }
    run_program(p);
    gp_program_free(p);
  }
  gp_program_notes_free(&notes);
}

/* A result may take the memory of a kept value whose last reader is in the same program; a value
 * may lie where the kept one that takes it over will. */
TEST(kept_values_that_die_are_written_over_without_changing_bits) {
  takeovers taken = {0};
  for (uint32_t seed = 1; seed <= 3000; seed++) {
    gp_ref loss;
    state = seed;
    pool p = random_graph(&loss);
    const gp_graph *graph = toy_graph(&p.t);
    layout *apart = lay_out(graph, true, NULL, 0), *packed = lay_out(graph, false, &loss, 1);
    cut_list *c = cut(graph);
    place_kept(packed, c);
    run_graph(graph, apart, true);
    run_parts(c, packed, &taken);
    if (!same_results(graph, apart, packed)) printf("seed %u\n", seed);
    CHECK(same_results(graph, apart, packed));
    free(c->parts[0].nodes);
    free(c);
    lay_off(apart);
    lay_off(packed);
    toy_free(&p.t);
  }
  CHECK(taken.later > 3000 && taken.ahead > 1000);
}

/* Graphs run op by op, and with neighbours fused: loss and all accumulators must be equal. */
TEST(fused_graphs_give_the_bits_of_their_ops) {
  int32_t saved = 0;
  for (uint32_t seed = 1; seed <= 3000; seed++) {
    gp_ref loss;
    state = seed;
    pool plain = random_graph(&loss);
    state = seed;
    pool fused = random_graph(&loss);
    CHECK_STATUS(gp_graph_fuse(&fused.t.trace->graph, false), GP_OK);
    const gp_graph *graph = toy_graph(&plain.t);
    saved += graph->node_count - toy_graph(&fused.t)->node_count;
    layout *apart = lay_out(graph, true, NULL, 0);
    layout *packed = lay_out(toy_graph(&fused.t), false, &loss, 1);
    run_graph(graph, apart, true);
    run_graph(toy_graph(&fused.t), packed, false);
    if (!same_results(graph, apart, packed)) printf("seed %u\n", seed);
    CHECK(same_results(graph, apart, packed));
    lay_off(apart);
    lay_off(packed);
    toy_free(&plain.t);
    toy_free(&fused.t);
  }
  CHECK(saved > 1000); /* there must be something to fuse */
}

static int32_t count_copies(const gp_graph *graph) {
  int32_t n = 0;
  for (int32_t i = 0; i < graph->node_count; i++) n += graph->nodes[i].op == GP_OP_copy;
  return n;
}

/* Arranges the second graph and compares; returns how many copies that saved. */
static int32_t compare_arranged(const pool *plain, const pool *turned, gp_ref loss) {
  const gp_arrange_spec spec = {(const int32_t[]){0}, &loss, 1};
  gp_graph *graph = &turned->t.trace->graph;
  int32_t copies = count_copies(graph);
  CHECK_STATUS(gp_graph_arrange(graph, &spec), GP_OK);
  layout *apart = lay_out(toy_graph(&plain->t), true, NULL, 0);
  layout *packed = lay_out(graph, false, &loss, 1);
  run_graph(toy_graph(&plain->t), apart, true);
  run_graph(graph, packed, false);
  CHECK(same_results(toy_graph(&plain->t), apart, packed));
  lay_off(apart);
  lay_off(packed);
  return copies - count_copies(graph);
}

/* The same holds where chains lie in other orders, for single ops and for fused neighbours. */
TEST(arranged_graphs_give_the_bits_of_their_ops) {
  int32_t saved = 0;
  turning = true;
  for (uint32_t seed = 1; seed <= 3000; seed++) {
    gp_ref loss;
    int failures = test_failures;
    state = seed;
    pool plain = random_graph(&loss);
    state = seed;
    pool turned = random_graph(&loss);
    if (seed % 2) CHECK_STATUS(gp_graph_fuse(&turned.t.trace->graph, false), GP_OK);
    saved += compare_arranged(&plain, &turned, loss);
    if (test_failures > failures) printf("seed %u\n", seed);
    toy_free(&plain.t);
    toy_free(&turned.t);
  }
  turning = false;
  CHECK(saved > 1000); /* there must be something to arrange */
}

/* ---- groups and temporary memory ------------------------------------------------------------ */

/* Builds the program of all that the toy applied; only outside values are placed. */
static gp_program *program_of(const toy *t, bool separate, layout **l) {
  gp_node_list list = node_list(toy_graph(t), false);
  gp_program *program = NULL;
  *l = lay_out(toy_graph(t), false, NULL, 0);
  gp_program_notes notes;
  CHECK_STATUS(gp_program_notes_new(toy_graph(t), &notes), GP_OK);
  gp_program_spec spec = {toy_graph(t), list.nodes, list.count, (*l)->places, &notes,
                          separate,     false,      NULL,       {0}};
  CHECK_STATUS(gp_program_build(&spec, &program), GP_OK);
  gp_program_notes_free(&notes);
  free(list.nodes);
  return program;
}

TEST(row_wise_ops_run_as_one_chain_and_in_one_piece_of_memory) {
  toy t = toy_new(130);
  layout *l;
  toy_linear(&t);
  toy_tanh(&t);
  t.value = toy_op1(&t, GP_OP_neg, t.value);
  t.value = toy_op1(&t, GP_OP_softmax, t.value);
  gp_program *p = program_of(&t, false, &l);
  CHECK(p->group_count == 1 && p->groups[0].count == 4 && p->groups[0].pieces == 3);
  CHECK(p->temp_bytes == (130 * TOY_WIDTH * 4 + 63) / 64 * 64); /* each op reuses the memory */
  gp_program_free(p);
  lay_off(l);
  p = program_of(&t, true, &l);
  CHECK(p->group_count == 4);
  gp_program_free(p);
  lay_off(l);
  toy_free(&t);
}

/* No op here reads the value before GELU, and none outside can. */
TEST(spare_outputs_that_nobody_reads_are_not_made) {
  toy t = toy_new(130);
  layout *l;
  toy_linear(&t);
  t.value = toy_apply(&t, GP_OP_gelu, &(gp_attrs){.gelu = {GP_GELU_TANH}}, 1, &t.value);
  toy_tanh(&t);
  CHECK_STATUS(gp_graph_fuse(&t.trace->graph, false), GP_OK);
  gp_program *p = program_of(&t, false, &l);
  CHECK(toy_node(&t, 0)->n_out == 2 && p->instrs[0].call.n_out == 1);
  CHECK(p->temp_bytes == (130 * TOY_WIDTH * 4 + 63) / 64 * 64);
  gp_program_free(p);
  lay_off(l);
  toy_free(&t);
}

TEST(what_reads_other_rows_ends_a_chain) {
  toy t = toy_new(130);
  layout *l;
  gp_ref half = toy_op1(&t, GP_OP_tanh, t.x);
  gp_ref column = toy_apply(&t, GP_OP_sum, &(gp_attrs){.sum = {1, true}}, 1, &half); /* [1, W] */
  toy_op2(&t, GP_OP_add, half, column); /* each row reads an element that needs a whole row */
  gp_program *p = program_of(&t, false, &l);
  CHECK(p->group_count == 3);
  gp_program_free(p);
  lay_off(l);
  toy_free(&t);
}

TEST(a_value_that_is_still_read_is_not_taken_over) {
  toy t = toy_new(5);
  layout *l;
  gp_ref a = toy_op1(&t, GP_OP_tanh, t.x), b = toy_op1(&t, GP_OP_neg, a);
  toy_op2(&t, GP_OP_add, a, b);
  gp_program *p = program_of(&t, false, &l);
  CHECK(p->instrs[0].out[0].base == GP_BASE_TEMP);
  CHECK(p->instrs[0].out[0].offset != p->instrs[1].out[0].offset);
  gp_program_free(p);
  lay_off(l);
  toy_free(&t);
}

TEST(values_of_no_elements_have_places) {
  toy t = toy_new(0);
  layout *l;
  toy_linear(&t);
  toy_tanh(&t);
  gp_program *p = program_of(&t, false, &l);
  run_program(p);
  gp_program_free(p);
  lay_off(l);
  toy_free(&t);
}

/* There are so many values that a search for the best place of each would take long. None of them
 * meet, and there is no more memory than all of them need at once. */
TEST(thousands_of_values_find_their_places) {
  enum { MANY = 9000 };
  toy t = toy_new(2);
  gp_ref *made = calloc(MANY, sizeof *made);
  for (int i = 0; i < MANY; i++) made[i] = toy_op1(&t, i % 2 ? GP_OP_tanh : GP_OP_exp, t.x);
  t.value = made[0];
  for (int i = 1; i < MANY; i++) t.value = toy_op2(&t, GP_OP_add, t.value, made[i]);
  const gp_graph *graph = toy_graph(&t);
  CHECK(graph->value_count < VALUES);
  layout *apart = lay_out(graph, true, NULL, 0), *packed = lay_out(graph, false, &t.value, 1), *l;
  run_graph(graph, apart, true);
  run_graph(graph, packed, false);
  CHECK(same_results(graph, apart, packed));
  gp_program *p = program_of(&t, true, &l);
  CHECK(p->temp_bytes <= (MANY + 1) * 64);
  gp_program_free(p);
  lay_off(l);
  lay_off(apart);
  lay_off(packed);
  free(made);
  toy_free(&t);
}

TEST_MAIN(programs_give_the_bits_of_their_ops,
          kept_values_that_die_are_written_over_without_changing_bits,
          arranged_graphs_give_the_bits_of_their_ops, fused_graphs_give_the_bits_of_their_ops,
          spare_outputs_that_nobody_reads_are_not_made,
          row_wise_ops_run_as_one_chain_and_in_one_piece_of_memory,
          what_reads_other_rows_ends_a_chain, a_value_that_is_still_read_is_not_taken_over,
          values_of_no_elements_have_places, thousands_of_values_find_their_places)
