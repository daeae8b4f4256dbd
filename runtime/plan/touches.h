/* plan/touches.h - what the tasks of a plan touch: the third of a plan's lists.
 *
 * A plan has buffers (the areas that areas.h and memory/layout.h describe), tasks (task.h) and
 * accesses: which buffer a task reads, writes or adds to, which instance of it, and whether it has
 * to wait for that or tells others. Accesses follow from the task alone: from the bases of its
 * program's operands, from the edges that it uses, or from what it does at the end of a mini-batch.
 * No task touches memory that its accesses do not name; builds with the address sanitizer check
 * that (engine/watch/guard.h). */
#ifndef GP_PLAN_TOUCHES_H
#define GP_PLAN_TOUCHES_H

#include "plan/plan.h"

/* X(NAME, text): the buffers of a device that a task may touch. */
#define GP_TOUCHED_LIST(X)                                                                         \
  X(BATCH, "batch")              /* inputs, targets and gradients of outputs of the script */      \
  X(WEIGHTS, "weights")          /* parameters of the stage, in one version */                     \
  X(NEIGHBOUR, "weights of")     /* parameters or buffers of another stage of this device */       \
  X(BUFFERS, "buffers")          /* of the stage */                                                \
  X(CONSTANTS, "constants")      /* of the model */                                                \
  X(PACKED, "packed weights")    /* copies in the order that products want */                      \
  X(HALVES, "weights in halves") /* copies in halves */                                            \
  X(PREPARED, "prepared")        /* what else P makes of the weights */                            \
  X(SAVED, "saved")              /* slot of what F keeps */                                        \
  X(HELD, "held")                /* the same of a micro-batch whose other values R makes again */  \
  X(AWAY, "saved for the host")  /* the same of what goes to the host's memory and back */         \
  X(RECOMPUTED, "recomputed")    /* slot of what R makes again */                                  \
  X(CARRIED, "carried")          /* slot of what I leaves for W */                                 \
  X(GRADIENTS, "gradients")      /* of the stage's copy */                                         \
  X(EXTRAS, "extra gradients")   /* accumulators of parameters that other layers own */            \
  X(PARTIALS, "partial sums")    /* of gradients, and of such accumulators */                      \
  X(RECORDS, "records")          /* what F of a micro-batch leaves for buffers, in the plan */     \
  X(GATHER, "gather")  /* parts of all replicas, in the middle of the task (gathers.h) */          \
  X(EDGE, "edge")      /* slot of a value or gradient that crosses a cut */                        \
  X(STEP, "step edge") /* what crosses devices once per step */                                    \
  X(LOSS, "loss")                                                                                  \
  X(COUNTED, "count") /* what the loss is divided by */                                            \
  X(OUTPUTS, "outputs")                                                                            \
  X(INPUT_GRADIENTS, "input gradients")                                                            \
  X(TEMPORARY, "temporary")                                                                        \
  X(NORMS, "norms")     /* one sum per gradient of the stage */                                    \
  X(MOMENTS, "moments") /* of the optimizer */                                                     \
  X(VERSIONS, "older weights")
#define GP_TOUCHED_ENUM(name, text) GP_TOUCHED_##name,
typedef enum gp_touched { GP_TOUCHED_LIST(GP_TOUCHED_ENUM) GP_TOUCHED_COUNT } gp_touched;
#undef GP_TOUCHED_ENUM

/* ADD reads too; a task that opens a gradient WRITEs it instead. */
enum { GP_TOUCH_READ = 1, GP_TOUCH_WRITE = 2, GP_TOUCH_ADD = 4 };

typedef struct gp_touch {
  gp_touched buffer;
  unsigned modes;
  int32_t
      instance; /* slot, version, edge, gather, or stage (NEIGHBOUR, EXTRAS); -1: the only one */
  int32_t use;  /* EDGE and STEP: number among the task's uses; else -1 */
  int part;     /* SAVED, HELD, AWAY and RECOMPUTED: GP_PART_* */
} gp_touch;

/* List what a task touches in list[gp_plan_touches_most]; returns how much it is. */
int32_t gp_plan_touches(const gp_plan *plan, const gp_task *task, gp_touch *list);
int32_t gp_plan_touches_most(const gp_plan *plan, const gp_task *task);
const char *gp_touched_name(gp_touched buffer);
/* The buffer of a task's slot, by its base. */
gp_touched gp_touched_slot(const gp_task *task, int32_t base);

#endif
