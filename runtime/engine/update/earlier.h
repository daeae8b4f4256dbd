/* engine/update/earlier.h - gradients of earlier steps, where the sums of a step follow a tree
 * (plan/sums.h).
 *
 * A step that accumulates could let its first micro-batch add to what is there. With a tree that
 * micro-batch may run on another replica than the one that owns the gradient, and the tree would no
 * longer be that of a step. So each owner puts its gradients aside before the step and adds them
 * behind it: earlier + tree, for every number of replicas. */
#ifndef GP_ENGINE_EARLIER_H
#define GP_ENGINE_EARLIER_H

#include "engine/state/pipeline.h"

/* Allocate the room, once for the life of the pipeline. Threads: the script's, between runs. */
gp_status gp_earlier_take(gp_pipeline *pipeline);
/* Put the gradients aside that this device's copies of stages own; add them again. */
gp_status gp_earlier_keep(const gp_worker *worker);
gp_status gp_earlier_add(const gp_worker *worker);

#endif
