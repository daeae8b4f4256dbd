/* engine/watch/watchdog.h - runs that make no progress, seen by the thread that waits for them.
 *
 * Workers pay nothing for it: what they do now stands in the records that they write anyway.
 * Progress is a task begun or ended on any device.
 */
#ifndef GP_ENGINE_WATCHDOG_H
#define GP_ENGINE_WATCHDOG_H

#include "engine/state/pipeline.h"

gp_status gp_watch_new(gp_pipeline *pipeline, double seconds);
void gp_watch_free(gp_pipeline *pipeline);
/* Before a run. */
void gp_watch_reset(gp_pipeline *pipeline);
/* When the script's thread begins to wait: workers may have had nothing to do before. */
void gp_watch_begin(gp_pipeline *pipeline);
/* At least every tenth of a second while it waits. Gives the run up when it was interrupted or made
 * no progress; true when a worker did not come back after that, and nobody should wait any
 * longer. */
bool gp_watch_check(gp_pipeline *pipeline);
/* Declare the pipeline lost, and keep for ever what the workers may use. */
gp_status gp_watch_lose(gp_pipeline *pipeline);

#endif
