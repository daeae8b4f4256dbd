/* plan/remat/least.h - the fewest bytes with which a stage can run, exactly. */
#ifndef GP_PLAN_REMAT_LEAST_H
#define GP_PLAN_REMAT_LEAST_H

#include "plan/remat/moves.h"

/* Compute per range (gp_remat_place) the least bytes with which its layers run forward and back, as
 * the curves of a table count them; SIZE_MAX where there is no layer. once: all its layers are
 * kept; only ranges that own their input. */
gp_status gp_remat_least_ranges(const gp_remat_chain *chain, bool once, size_t **least);

/* The forward pass of a stage, as a path from its first value to its last. */
typedef struct gp_remat_path {
  const gp_remat_chain *chain; /* borrowed: of the model */
  const size_t *ranges;        /* borrowed: from gp_remat_least_ranges */
  int32_t first, end;
  bool once;      /* no layer is kept in the forward pass */
  size_t *parked; /* per value, and again per value that the rest owns: the fewest bytes that are
                     parked there, the owned value not included */
  int32_t *from;  /* the same: the value at which the last move to it begins */
} gp_remat_path;

gp_status gp_remat_path_new(gp_remat_path *path); /* chain to once are set */
void gp_remat_path_free(gp_remat_path *path);     /* what it holds; not the struct */
size_t gp_remat_path_place(const gp_remat_path *path, int32_t value, bool owned);
/* Find the fewest bytes that a micro-batch parks if the active one may have `active` bytes alive;
 * SIZE_MAX: that is too little. */
size_t gp_remat_path_parked(gp_remat_path *path, size_t active);

/* What a micro-batch parks, and how many bytes the active one has alive: together the least
 * (in_flight - 1) x parked + active. */
typedef struct gp_remat_share {
  size_t parked, active;
} gp_remat_share;

gp_remat_share gp_remat_least_share(gp_remat_path *path, int32_t in_flight);

#endif
