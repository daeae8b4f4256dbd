/* engine/update/values.h - replicas take over the values that others have updated.
 *
 * In a pipeline with an asynchronous schedule each replica has values of its own, also where they
 * share memory: it takes them over from the owner's memory, or from the room where they have come
 * in, when nothing reads the version before any more (plan/edge/step_edges.h). */
#ifndef GP_ENGINE_VALUES_H
#define GP_ENGINE_VALUES_H

#include "engine/state/pipeline.h"

/* Copy all values of the task's stage that other copies own to this copy: a task UNSHARD. */
gp_status gp_values_take(const gp_worker *worker, const gp_task *task);

#endif
