/* plan/memory/places.h - a shape under construction, and the places of its values. */
#ifndef GP_PLAN_MEMORY_PLACES_H
#define GP_PLAN_MEMORY_PLACES_H

#include "plan/make.h"
#include "plan/remat/recipe.h"

enum { GP_PLACE_ALIGNMENT = 64 }; /* a cache line: no two threads write to one */

typedef struct gp_shaper {
  const gp_plan_env *env;
  const gp_schedule *schedule;
  const bool *apart;     /* per stage: I and W run as programs of their own */
  const bool *hoisted;   /* per stage: something runs between an R and its backward pass */
  const size_t *budgets; /* per device: bytes that AUTO may keep and have in work; NULL: no limit */
  const bool *keeps;     /* per stage: see gp_plan_spec; NULL: none */
  bool stays, whole, refine; /* likewise */
  const gp_lowered *lowered; /* the schedule's actions, with an R wherever the mode has one */
  gp_graph *graph;
  gp_shape_plan *shape;
  gp_place *outside; /* per value: memory that is not the stage's own; base -1 otherwise */
  gp_place *places;  /* the same, and what the stage keeps */
  gp_program_notes notes;
  gp_ref *own; /* base values that the stage at hand reads or makes, ascending */
  int32_t own_count;
  /* Per value, for those of the stage: it is listed; W reads it; B or I reads it. */
  bool *seen, *later, *backward;
  gp_recipe (*recipes)[GP_VARIANTS]; /* per stage */
  size_t *states;                    /* per node: see gp_place_states */
} gp_shaper;

/* Turn to a stage: list the base values that it reads or makes in s->own, so that work for a stage
 * costs what the stage holds. */
gp_status gp_shaper_enter(gp_shaper *s, int32_t stage);

/* Has the value memory that is not the stage's own? */
bool gp_is_outside(const gp_shaper *s, gp_ref r);
/* Fill in outside[] for every base value whose memory is not a stage's own. */
gp_status gp_place_outside(gp_shaper *s);
/* Fill in outside[] for what P makes on a stage, and measure the memory that it needs. */
gp_status gp_place_prepared(gp_shaper *s, int32_t stage);
/* The parameter that a node packs. */
gp_param *gp_packed_param(const gp_graph *graph, const gp_node *node);

/* Mark the memory that the programs of a list read; read[] per base value. */
void gp_mark_reads(const gp_graph *graph, const gp_node_list *list, bool *read);
/* gp_find_constants lists the constants that a stage's device cannot read; gp_place_constants
 * places them, and parameters where the stage finds them (constants.c). */
gp_status gp_find_constants(gp_shaper *s, int32_t stage);
void gp_place_constants(gp_shaper *s, int32_t stage);
/* Place the states of a stage's kernels, once its programs are built (states.c). */
gp_status gp_place_states(gp_shaper *s, int32_t stage);

/* Find the parameters of other devices that each stage reads (crossings.c). */
gp_status gp_shape_add_crossings(gp_shaper *s);

/* Say for every stage what its programs execute and keep (recipes.c). */
gp_status gp_shape_add_recipes(gp_shaper *s);
void gp_shape_free_recipes(gp_shaper *s);

/* Find the edges that the actions of every stage touch (touched.c). */
gp_status gp_shape_add_touched(gp_shaper *s);
void gp_shape_free_touched(gp_shape_plan *shape);

/* Build the programs of the stages that the plan holds (stage_programs.c). */
gp_status gp_shape_add_programs(gp_shaper *s);

/* Allocate the arrays of a shaper that are as long as the graph's values or nodes (variant.c). Also
 * on failure the caller frees them. */
gp_status gp_shaper_room_new(gp_shaper *s);
void gp_shaper_room_free(gp_shaper *s);
/* Build the programs of a variant by its recipe, for the stage that was entered last and whose
 * outside values have their places. */
gp_status gp_build_variant(gp_shaper *s, int32_t stage, int variant);
/* Build a program that keeps nothing; *program stays NULL if the list is empty. */
gp_status gp_shaper_build(gp_shaper *s, const gp_node_list *list, gp_program **program);
/* Forget what a variant kept, and place parameters and constants where the stage finds them. */
void gp_reset_places(gp_shaper *s, int32_t stage);

/* Does the pipeline hold what the node packs, for all plans? */
bool gp_is_shared_pack(const gp_shaper *s, const gp_node *node);
/* Does the device of the stage keep halves of its weights, which updates write? Not where weights
 * have versions or two copies. */
bool gp_keeps_halves(const gp_shaper *s, int32_t stage);
/* Is what the node makes kept with the weights, here or where they come from, so that no program
 * makes it? For nodes of P that have their places. */
bool gp_is_shared_half(const gp_shaper *s, const gp_node *node);

#endif
