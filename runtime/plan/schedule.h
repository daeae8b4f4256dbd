/* plan/schedule.h - a pipeline schedule as data: one list of actions per device. */
#ifndef GP_PLAN_SCHEDULE_H
#define GP_PLAN_SCHEDULE_H

#include "base/status.h"

/* X(NAME, letter): compute ops of the text form, then what lowering adds. */
#define GP_ACT_LIST(X)                                                                             \
  X(F, 'F') X(B, 'B') X(I, 'I') X(W, 'W') X(R, 'R') X(U, 'U') X(C, 'C') X(P, 'P')
#define GP_ACT_ENUM(name, letter) GP_ACT_##name,
typedef enum gp_act { GP_ACT_LIST(GP_ACT_ENUM) GP_ACT_COUNT } gp_act;
#undef GP_ACT_ENUM
char gp_act_letter(gp_act act);

typedef struct gp_action {
  gp_act op;
  int32_t stage, micro;
} gp_action;

struct gp_schedule {
  int32_t device_count, stage_count, micro_count;
  int32_t *placement;      /* per stage: its device */
  gp_action *actions;      /* device after device */
  int32_t *first;          /* per device: its first action; first[device_count] is the total */
  int32_t *order;          /* per action: position in the verified topological order; NULL before */
  gp_schedule_fault fault; /* of a schedule that was refused */
};

/* Check the schedule and fill in order: complete and unique, on the right device, forward before
 * backward, free of cycles. Errors: GP_ESCHEDULE; the text shows the grid with the fault marked. */
gp_status gp_schedule_check(struct gp_schedule *schedule);

#endif
