/* gpipe/pipeline.h - a model cut into stages, and the workers that run it. See gpipe.h for what
 * holds everywhere. */
#ifndef GP_PUBLIC_PIPELINE_H
#define GP_PUBLIC_PIPELINE_H

#include "gpipe/device.h"
#include "gpipe/host.h"
#include "gpipe/param.h"
#include "gpipe/schedule.h"

/* A model cut into stages, each on a device, and the workers that run it. */
typedef struct gp_pipeline gp_pipeline;

/* Dynamic loss scaling, for f16: all gradients are computed times `scale`. If they are not
 * finite, the update is skipped and the scale shrinks; after `window` runs in a row without
 * that, it grows. */
typedef struct gp_loss_scale {
  double scale; /* now; 0: gradients are not scaled */
  double growth, backoff, min;
  int64_t window;
  int64_t good, stuck; /* runs in a row: with finite gradients; that failed at the minimum */
  int64_t skipped;     /* so far */
} gp_loss_scale;

/* What happens to gradients that are not finite. SKIP: the step updates nothing and is
 * counted; RAISE: the step fails, and so does any that makes a value that is not finite;
 * IGNORE: they are applied. */
typedef enum gp_finite { GP_FINITE_SKIP, GP_FINITE_RAISE, GP_FINITE_IGNORE } gp_finite;

typedef struct gp_pipeline_spec {
  int stage_count, layer_count, device_count, param_count;
  int copy_count;           /* devices per stage: 1 or 2 for each replica; 0 is 1 */
  int replicas;             /* of one schedule, each with devices of its own; 0 is 1 */
  bool streams;             /* the schedule is asynchronous: replicas share no values, because they
                             * are at different updates at a time */
  const int32_t *placement; /* stage after stage: copy_count devices; NULL: stage s on device s */
  const int32_t *stage_of;  /* per layer; one entry more for the loss (the last stage) */
  const gp_device_spec *devices;
  const gp_host_link *hosts;  /* per device; NULL: nothing is known */
  gp_param *const *params;    /* in order of declaration, buffers included; retained */
  const int32_t *param_layer; /* per parameter: the layer that owns it, from 0 */
  gp_remat remat;
  const gp_layer_remat *layers; /* with remat BY_LAYER: per layer, without the loss; copied */
  uint64_t seed;                /* of dropout */
  gp_finite finite;
  double watchdog; /* seconds without progress after which a run is given up; 0: never */
  bool unfused;    /* run every op separately, without fusing; for comparisons */
  bool added;      /* zero the gradients, then add to them; for comparisons */
  int sum_group;   /* micro-batches in a leaf of the tree by which gradients are added; 0: no tree,
                  * each copy adds its own in ascending order */
  size_t bucket;   /* least bytes of gradients that replicas exchange at once; 0: the default */
  /* Over ranks: plans of more actions than these are made by rank, each in full for its own devices
   * and in outline for the others. */
  int32_t most_whole;
  bool tf32; /* GPUs may round the inputs of products of f32 matrices */
  gp_loss_scale loss_scale;
  bool spread; /* all ranks of the job make it together, each with its own devices */
} gp_pipeline_spec;

/* Start the workers and move the parameters into the arenas of their stages. Threads: one worker a
 * device, its team besides. Errors: GP_ESTATE when another live pipeline owns the model; GP_EINVAL
 * for GPIPE_FAULT in the environment. */
gp_status gp_pipeline_new(const gp_pipeline_spec *spec, gp_pipeline **pipeline);
/* Run the mini-batches that were given to their end, stop the workers, drop the plans and give the
 * model back; parameters keep their values. */
void gp_pipeline_free(gp_pipeline *pipeline);

#endif
