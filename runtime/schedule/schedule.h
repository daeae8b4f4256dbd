/* schedule/schedule.h - a pipeline schedule as data: one list of actions per device.
 *
 *   edges.c      where each action stands, and which action takes whose value
 *   rows.c       lists under construction
 *   text.c       their text form, both ways
 *   schedule.c   a schedule of them
 *   verify/      is it one?
 *   access/      what its actions touch, and how long it is held
 *   simulate/    what would it cost?
 *   passes.c     what is added to it before it runs, whatever the model; lowered.c: as a schedule
 *   turns.c      which device goes next when lists run without work; runner.c: they run
 *   messages.c   what is sent from where to where, and in which order
 *   comms.c      sends and receives, where torch puts them; steps.c: torch's dry run
 *   part.c       its forward passes alone
 */
#ifndef GP_SCHEDULE_SCHEDULE_H
#define GP_SCHEDULE_SCHEDULE_H

#include "base/status.h"
#include "gpipe/schedule.h"

/* One action as text, "2F0" or "2F5@3" or "0SEND_F1"; returns text. */
enum { GP_ACTION_TEXT = 48 };
char *gp_action_print(const gp_action *action, char text[GP_ACTION_TEXT]);

struct gp_schedule {
  int32_t device_count, stage_count, micro_count, copy_count;
  int32_t replicas;        /* of one schedule, with copy_count / replicas copies each; 1: none */
  int32_t replica_micros;  /* replica r runs those from r * replica_micros on, of each batch if the
                            * schedule is asynchronous; 0: no replicas */
  int32_t batch;           /* micro-batches per update; 0: synchronous */
  bool micros_given;       /* micro_count was asked for, not counted */
  int32_t *placement;      /* per stage and copy: its device */
  gp_action *actions;      /* device after device */
  int32_t *first;          /* per device: its first action; first[device_count] is the total */
  int32_t *order;          /* per action: position in the verified topological order; NULL before,
                            * and where lowering made the schedule (gp_schedule_find_order) */
  int32_t *held_first;     /* per device: the first of its stages in `held`, and their number */
  int32_t *held;           /* device after device: its stages, ascending */
  gp_schedule_fault fault; /* why the schedule was refused */
};

/* Do its letters end with the number of a micro-batch or update? Not for REDUCE to RESHARD and
 * SEND to DECIDE. */
bool gp_act_has_micro(gp_act act);
/* The place of an act among those that end a mini-batch of all stages: REDUCE, TIE, NORM, VOTE,
 * DECIDE, CLIP, U. 0: it comes before them. */
enum { GP_ACT_ENDINGS = 7 };
static inline int gp_act_ending(gp_act act) {
  switch (act) {
  case GP_ACT_REDUCE: return 1;
  case GP_ACT_TIE: return 2;
  case GP_ACT_NORM: return 3;
  case GP_ACT_VOTE: return 4;
  case GP_ACT_DECIDE: return 5;
  case GP_ACT_CLIP: return 6;
  case GP_ACT_U: return GP_ACT_ENDINGS;
  default: return 0;
  }
}
/* Does a plan add it for a device as a whole, not for a stage? */
static inline bool gp_act_is_own(gp_act act) { return act >= GP_ACT_SEND && act <= GP_ACT_DECIDE; }
static inline bool gp_act_ends(gp_act act) { return gp_act_ending(act) > 0; }

/* Does this device hold the stage, or one of its copies? */
bool gp_schedule_holds(const gp_schedule *schedule, int32_t device, int32_t stage);

/* The stages that a device holds, ascending, each once. */
typedef struct gp_stage_list {
  const int32_t *stages;
  int32_t count;
} gp_stage_list;
static inline gp_stage_list gp_schedule_stages(const struct gp_schedule *s, int32_t device) {
  const int32_t first = s->held_first[device];
  return (gp_stage_list){&s->held[first], s->held_first[device + 1] - first};
}

/* The copy of a stage on one of its devices, the first one if two of them are the same device;
 * copy_count on any other device. */
int32_t gp_schedule_copy_on(const gp_schedule *schedule, int32_t stage, int32_t device);
/* The replica that runs a micro-batch, and the one that a copy belongs to. */
static inline int32_t gp_schedule_replica_of(const struct gp_schedule *s, int32_t micro) {
  if (s->replicas <= 1) return 0;
  return (s->batch ? micro % s->batch : micro) / s->replica_micros;
}

/* The position behind the joined actions that begin at a. */
static inline int32_t gp_action_group_end(const gp_action *actions, int32_t a) {
  while (actions[a].joined) a++;
  return a + 1;
}
static inline int32_t gp_schedule_group_end(const struct gp_schedule *s, int32_t a) {
  return gp_action_group_end(s->actions, a);
}

/* Check that actions are complete and unique, on the right device, forward before backward and free
 * of cycles; fill in `order`. Errors: GP_ESCHEDULE; the text shows the grid with the fault
 * marked. */
gp_status gp_schedule_check(struct gp_schedule *schedule);
/* Fill order[actions] for a schedule that is known to be right. */
gp_status gp_schedule_find_order(const gp_schedule *schedule, int32_t *order);
/* Make a schedule with the same numbers and placement, still without actions. */
gp_status gp_schedule_like(const gp_schedule *schedule, gp_schedule **like);

/* Append actions to the list of a device that is there. Errors: GP_ERANGE, GP_ENOMEM. */
gp_status gp_rows_append(gp_rows *rows, int device, const gp_action *actions, int32_t count);

#endif
