/* plan/edge/buckets.h - gradients that a copy of a stage sends to their owner, in buckets: whole
 * parameters that lie side by side.
 *
 * With replicas the last backward pass of a stage publishes a bucket behind the last instruction
 * that adds to it, so the bucket is under way while the program goes on with earlier layers. No bit
 * depends on buckets: every element has its own sum. Source: Li et al., "PyTorch Distributed"
 * (2020), section 3.2.3. */
#ifndef GP_PLAN_BUCKETS_H
#define GP_PLAN_BUCKETS_H

#include "plan/memory/layout.h"
#include "plan/plan.h"

/* The bytes of the bucket that begins at an offset of what a (stage, copy) owns: so many at least,
 * unless it is the last one; least 0: the default. Without replicas there is one for all of it. */
size_t gp_bucket_bytes(const gp_layout *layout, int32_t holder, size_t begin, size_t least);
/* How many instructions of a program have run when none is left that adds to the bucket; 0: there
 * is no program. */
int32_t gp_bucket_end(const gp_program *program, size_t begin, size_t bytes);

#endif
