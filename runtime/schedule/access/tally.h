/* schedule/access/tally.h - see tally.c; and which actions make and read what a micro-batch keeps.
 */
#ifndef GP_SCHEDULE_TALLY_H
#define GP_SCHEDULE_TALLY_H

#include "schedule/access/access.h"

/* What an action does to an instance of a class. F makes what its micro-batch keeps, R makes it
 * again but for the input, backward actions read it; I leaves the rest for W. */
typedef struct gp_tally_use {
  uint8_t makes, reads; /* a bit for each class */
} gp_tally_use;

enum {
  GP_TALLY_INPUT = 1 << GP_BUFFER_INPUT,
  GP_TALLY_ACTIVATION = 1 << GP_BUFFER_ACTIVATION,
  GP_TALLY_HEAD = 1 << GP_BUFFER_HEAD,
  GP_TALLY_CARRIED = 1 << GP_BUFFER_CARRIED,
  GP_TALLY_KEPT = GP_TALLY_ACTIVATION | GP_TALLY_HEAD
};

static inline gp_tally_use gp_tally_use_of(gp_act op) {
  switch (op) {
  case GP_ACT_F: return (gp_tally_use){GP_TALLY_INPUT | GP_TALLY_KEPT, 0};
  case GP_ACT_R: return (gp_tally_use){GP_TALLY_KEPT, GP_TALLY_INPUT};
  case GP_ACT_B: return (gp_tally_use){0, GP_TALLY_INPUT | GP_TALLY_KEPT};
  case GP_ACT_I: return (gp_tally_use){GP_TALLY_CARRIED, GP_TALLY_INPUT | GP_TALLY_KEPT};
  case GP_ACT_W: return (gp_tally_use){0, GP_TALLY_INPUT | GP_TALLY_ACTIVATION | GP_TALLY_CARRIED};
  default: return (gp_tally_use){0, 0};
  }
}

/* Lives that begin or end together: of one stage and micro-batch, with one action. */
typedef struct gp_tally_lives {
  int32_t place; /* of the stage, among those that the device holds */
  uint8_t classes;
} gp_tally_lives;

/* What a tally tells its caller: of joined actions first what begins, then what ends. */
typedef struct gp_tally_watch {
  void *context;
  uint8_t classes; /* that are asked for */
  void (*born)(void *context, gp_tally_lives lives);
  void (*dead)(void *context, gp_tally_lives lives);
} gp_tally_watch;

/* Tell the watch what lives on a device. */
gp_status gp_schedule_tally(const gp_schedule *schedule, int32_t device,
                            const gp_tally_watch *watch);

#endif
