/* plan/refine/appraise.c - see appraise.h. */
#include "plan/refine/appraise.h"

#include <string.h>

#include "base/memory.h"

/* ---- moments --------------------------------------------------------------------------------- */

/* Count what an action makes; what is read last by it goes behind it. Each kind of slot lives as in
 * memory/slots.c. */
static void begin(gp_held_moment *held, gp_act op) {
  const int first = op == GP_ACT_F ? 0 : GP_HELD_AGAIN;
  held->op = op;
  for (int part = 0; part < GP_PARTS && (op == GP_ACT_F || op == GP_ACT_R); part++)
    held->slots[first + part]++;
  if (op == GP_ACT_I) held->slots[GP_HELD_CARRIED]++;
}

static void drop(gp_held_moment *held, int part) {
  held->slots[part]--;
  held->slots[GP_HELD_AGAIN + part]--;
}

static void end(gp_held_moment *held, gp_act op) {
  if (op == GP_ACT_R) drop(held, GP_PART_AGAIN);
  if (op == GP_ACT_I || op == GP_ACT_B) drop(held, GP_PART_HEAD);
  if (op == GP_ACT_W || op == GP_ACT_B) drop(held, GP_PART_REST);
  if (op == GP_ACT_W) held->slots[GP_HELD_CARRIED]--;
}

static gp_status note(gp_appraiser *a, size_t *room, const gp_held_moment *held) {
  for (int32_t i = 0; i < a->moment_count; i++)
    if (!memcmp(&a->moments[i], held, sizeof *held)) return GP_OK;
  GP_TRY(gp_grow_array((size_t)a->moment_count, room, sizeof *held, (void **)&a->moments));
  a->moments[a->moment_count++] = *held;
  return GP_OK;
}

/* Follow the stage's actions on a device. */
static gp_status note_moments(gp_appraiser *a, int32_t device, size_t *room) {
  const gp_lowered *l = a->shaper.lowered;
  gp_held_moment held;
  memset(&held, 0, sizeof held);
  for (int32_t i = l->first[device]; i < l->first[device + 1]; i++) {
    const gp_act op = (gp_act)l->actions[i].op;
    if (l->actions[i].stage != a->stage || op > GP_ACT_R) continue;
    begin(&held, op);
    GP_TRY(note(a, room, &held));
    end(&held, op);
  }
  return GP_OK;
}

static size_t padded(size_t bytes) {
  return (bytes + GP_PLACE_ALIGNMENT - 1) / GP_PLACE_ALIGNMENT * GP_PLACE_ALIGNMENT;
}

/* The bytes of a moment. Padding is that of the work area (memory/work.c). */
static size_t bytes_at(const gp_appraiser *a, const gp_held_moment *moment) {
  const gp_stage_programs *p = &a->shape.programs[a->stage];
  const gp_program *program = gp_stage_program_of(p, moment->op, GP_BY_MODE);
  const size_t *made = p->recomputed_bytes, *saved = p->saved_bytes[GP_BY_MODE];
  size_t bytes = (size_t)moment->slots[GP_HELD_CARRIED] * padded(p->carried_bytes);
  for (int part = 0; part < GP_PARTS; part++) {
    if (moment->slots[part] > 0) bytes += (size_t)moment->slots[part] * padded(saved[part]);
    const int32_t again = moment->slots[GP_HELD_AGAIN + part];
    if (again > 0) bytes += (size_t)again * padded(made[part]);
  }
  return program ? bytes + padded(program->temp_bytes) + padded(program->shared_bytes) : bytes;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Mark what belongs to no program of the stage. Where it lies matters to nothing here. */
static void place_outside(gp_appraiser *a) {
  gp_shaper *s = &a->shaper;
  const gp_node_list *prepare = &s->shape->stages->stages[a->stage].prepare;
  for (int32_t i = 0; i < s->own_count; i++)
    s->outside[s->own[i]].base = gp_is_outside(s, s->own[i]) ? GP_BASE_VALUE : -1;
  for (int32_t i = 0; i < prepare->count; i++) {
    const gp_node *node = &s->graph->nodes[prepare->nodes[i]];
    for (gp_ref r = node->out; r < node->out + node->n_out; r++)
      s->outside[r].base = GP_BASE_INVARIANT;
  }
}

static void free_programs(gp_appraiser *a) {
  gp_program *list[GP_STAGE_PROGRAM_KINDS];
  if (!a->shape.programs) return;
  const int count = gp_stage_programs_list(&a->shape.programs[a->stage], list);
  for (int i = 0; i < count; i++) gp_program_free(list[i]);
  a->shape.programs[a->stage] = (gp_stage_programs){0};
}

static double seconds_of(const gp_appraiser *a) {
  const gp_stage_programs *p = &a->shape.programs[a->stage];
  const bool apart = a->shaper.apart[a->stage];
  const gp_act back[] = {apart ? GP_ACT_I : GP_ACT_B, GP_ACT_W};
  double seconds = gp_program_seconds(p->forward[GP_BY_MODE], a->rates) +
                   gp_program_seconds(p->recompute, a->rates);
  for (int k = 0; k <= apart; k++)
    seconds += gp_program_seconds(gp_stage_program_of(p, back[k], GP_BY_MODE), a->rates);
  return seconds;
}

gp_status gp_appraise(gp_appraiser *a, const gp_recipe *recipe, gp_worth *worth) {
  a->shaper.recipes[a->stage][GP_BY_MODE] = *recipe;
  gp_status status = gp_build_variant(&a->shaper, a->stage, GP_BY_MODE);
  *worth = (gp_worth){0};
  if (!status) worth->seconds = seconds_of(a);
  for (int32_t i = 0; !status && i < a->moment_count; i++) {
    const size_t bytes = bytes_at(a, &a->moments[i]);
    if (bytes > worth->bytes) worth->bytes = bytes;
  }
  free_programs(a);
  return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

gp_status gp_appraiser_new(const gp_shaper *shaper, int32_t stage, gp_remat_rates rates,
                           gp_appraiser *a) {
  const size_t stages = (size_t)shaper->env->stage_count;
  size_t room = 0;
  *a = (gp_appraiser){.shaper = *shaper, .shape = *shaper->shape, .stage = stage, .rates = rates};
  gp_shaper *s = &a->shaper;
  s->shape = &a->shape;
  s->recipes = NULL;
  a->shape.programs = NULL;
  GP_TRY(gp_shaper_room_new(s));
  GP_TRY(gp_alloc_array(stages, sizeof *s->recipes, (void **)&s->recipes));
  GP_TRY(gp_alloc_array(stages, sizeof(gp_stage_programs), (void **)&a->shape.programs));
  GP_TRY(gp_shaper_enter(s, stage));
  place_outside(a);
  for (int32_t d = 0; d < s->lowered->device_count; d++) GP_TRY(note_moments(a, d, &room));
  return GP_OK;
}

void gp_appraiser_free(gp_appraiser *a) {
  free_programs(a);
  gp_free(a->shape.programs);
  gp_free(a->shaper.recipes);
  gp_shaper_room_free(&a->shaper);
  gp_free(a->moments);
}
