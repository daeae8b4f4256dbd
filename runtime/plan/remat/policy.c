/* plan/remat/policy.c - see policy.h. */
#include "plan/remat/policy.h"

#include "base/memory.h"
#include "plan/remat/recipe.h"

typedef struct writer {
  gp_remat_list *list;
  size_t room;
} writer;

static gp_status append(writer *w, gp_remat_act act, int32_t layer, int32_t option) {
  gp_remat_list *list = w->list;
  GP_TRY(gp_grow_array((size_t)list->count, &w->room, sizeof *list->steps, (void **)&list->steps));
  list->steps[list->count++] = (gp_remat_step){act, layer, option};
  return GP_OK;
}

static const int32_t option_of[GP_LAYER_REMAT_COUNT] = {
    [GP_LAYER_KEEP] = GP_RECIPE_KEEPS,
    [GP_LAYER_SELECTIVE] = GP_RECIPE_SELECTS,
    [GP_LAYER_RECOMPUTE] = GP_RECIPE_KEEPS, /* of what runs again */
    [GP_LAYER_OFFLOAD] = GP_RECIPE_OFFLOADS,
};

/* A layer that runs again does so right before its backward, from its input. */
static gp_status append_layer(writer *w, int32_t layer, gp_layer_remat mode) {
  if (mode == GP_LAYER_RECOMPUTE) GP_TRY(append(w, GP_REMAT_KEEP, layer, 0));
  return append(w, GP_REMAT_BACKWARD, layer, option_of[mode]);
}

static gp_status write_layers(writer *w, gp_remat policy, const gp_layer_remat *modes,
                              int32_t count) {
  for (int32_t l = count - 1; l >= 0; l--) {
    gp_layer_remat mode = GP_LAYER_KEEP;
    if (policy == GP_REMAT_SELECTIVE) mode = GP_LAYER_SELECTIVE;
    if (policy == GP_REMAT_OFFLOAD) mode = GP_LAYER_OFFLOAD;
    if (policy == GP_REMAT_BY_LAYER) mode = modes[l];
    GP_TRY(append_layer(w, l, mode));
  }
  return GP_OK;
}

gp_status gp_remat_policy(gp_remat policy, const gp_layer_remat *modes, int32_t count,
                          gp_remat_list *list) {
  writer w = {.list = list};
  gp_status status = GP_OK;
  *list = (gp_remat_list){0};
  if (policy == GP_REMAT_EXCEPT_LAST || policy == GP_REMAT_ALWAYS)
    for (int32_t l = 0; !status && l < count; l++) status = append(&w, GP_REMAT_KEEP, l, 0);
  list->backward_begins = 0; /* all of these steps belong to B */
  if (!status) status = write_layers(&w, policy, modes, count);
  if (status) {
    gp_free(list->steps);
    *list = (gp_remat_list){0};
  }
  return status;
}
