/* plan/memory/layout.h - where the parameters of a model lie, for one cut of it: offsets in
 * areas of its stages.
 *
 * Each stage has one area for values, one for gradients, one for buffers, so that an update is one
 * pass and a version of the weights one copy; accumulators of parameters that other layers own,
 * packed weights and weights in halves have areas that grow as plans ask for them. All plans of a
 * pipeline share one layout; the engine gives the areas memory (engine/memory/arena.c).
 */
#ifndef GP_PLAN_MEMORY_LAYOUT_H
#define GP_PLAN_MEMORY_LAYOUT_H

#include "base/map.h"
#include "gpipe/plan.h"
#include "plan/program/program.h"

/* Every parameter and every accumulator begins on a cache line of its own. */
enum { GP_GRADIENT_ALIGNMENT = 64 };

/* Frozen parameters need no gradient and no moments, so they lie behind the trainable ones. */
typedef enum gp_region { GP_REGION_TRAINABLE, GP_REGION_FROZEN, GP_REGION_BUFFER } gp_region;

typedef struct gp_layout_param {
  int32_t stage, layer; /* that own it */
  int32_t owner;        /* the copy of the stage whose device sums its gradient and updates it */
  gp_region region;
  int32_t crossing;      /* number + 1 among the parameters that cross; 0: it does not */
  int32_t half_crossing; /* the same of its halves: a stage reads them, or all of it */
  size_t offset;         /* in the stage's values (and gradients), or buffers */
} gp_layout_param;

/* The accumulator of (param, layer) beside the main one, in the extras of the layer's stage. */
typedef struct gp_layout_extra {
  int32_t param, layer, stage;
  size_t offset;
} gp_layout_extra;

/* What one copy of a stage owns, one behind the other: trainable values, which lie at the same
 * offset as their gradients, and the frozen ones for the first copy. */
typedef struct gp_layout_slice {
  size_t begin, values, grads; /* offset; bytes from there */
} gp_layout_slice;

/* Bytes of the areas of a stage. */
typedef struct gp_layout_stage {
  size_t values, grads, buffers;
  size_t extras, packed; /* so far */
  size_t halves;         /* 0 until a plan reads weights in halves */
  gp_dtype half;         /* which halves */
} gp_layout_stage;

typedef struct gp_layout {
  int32_t stage_count, copy_count, param_count;
  int32_t replicas; /* the copies that own something are the first ones of each replica */
  /* Copies have values of their own, also in one memory: replicas of a stream are at different
   * updates at a time. Otherwise copies in one memory share the values. */
  bool apart;
  const int32_t *stage_of, *placement; /* borrowed: per layer; per stage and copy */
  gp_param *const *params;             /* borrowed */
  gp_layout_param *at;                 /* per parameter */
  gp_layout_stage *stages;
  gp_layout_slice *slices; /* per stage and copy */
  gp_layout_extra *extras;
  size_t extra_count, extra_room;
  int32_t crossing_count;
  gp_map
      found; /* parameters; extras by (param, layer); offsets of packed weights by (param, stage) */
} gp_layout;

/* Lay out the parameters of a pipeline. Only what the fields above name is read of spec. */
gp_status gp_layout_new(const gp_pipeline_spec *spec, const int32_t *placement, gp_layout *layout);
/* Copy a layout, so that a plan may ask for more of it. */
gp_status gp_layout_copy(const gp_layout *from, gp_layout *to);
/* Replace `to` by a layout that was copied from it and grew; all that lay there lies where it
 * did. */
void gp_layout_adopt(gp_layout *to, gp_layout *from);
void gp_layout_free(gp_layout *layout); /* what it holds; not the struct */

int32_t gp_layout_find(const gp_layout *layout, const gp_param *param); /* -1: not the model's */
/* Does a copy of a stage run on another device than the owner of parameter i, which is another
 * stage's, so that the parameter has to cross to it? */
bool gp_layout_crosses(const gp_layout *layout, int32_t i, int32_t stage);
/* Give parameter i, or its halves, a number among those that cross, unless it has one. */
void gp_layout_cross(gp_layout *layout, int32_t i, bool half);
/* Find where a stage reads a parameter: at the base of its crossing if it comes from another
 * device; base -1 if it is not the model's. */
gp_place gp_layout_value(const gp_layout *layout, const gp_param *param, int32_t stage);
/* Find the accumulator of (param, layer); an extra one is added when missing. Errors: GP_EINVAL for
 * a parameter that is not trained. */
gp_status gp_layout_slot(gp_layout *layout, const gp_param *param, int32_t layer, gp_place *place);
/* Give every trainable parameter an owner among the replicas (owners.c). */
gp_status gp_layout_deal(gp_layout *layout);
/* A parameter packed for a stage; the op that packs it says how many bytes. */
typedef struct gp_layout_pack {
  const gp_param *param;
  int32_t stage;
  int32_t form; /* which of the forms that one parameter may be packed in */
  size_t bytes;
} gp_layout_pack;
/* Find where it lies; it is added when missing. All plans share it. */
gp_status gp_layout_packed(gp_layout *layout, const gp_layout_pack *pack, gp_place *place);

/* Find where the halves of a parameter lie, which every update writes again: at half of its own
 * offset, so that neighbours are neighbours there too. Returns false unless the parameter is an f32
 * one of this stage, no buffer, and the stage has no halves of another dtype. */
bool gp_layout_half(gp_layout *layout, const gp_param *param, int32_t stage, gp_dtype dtype,
                    gp_place *place);

#endif
