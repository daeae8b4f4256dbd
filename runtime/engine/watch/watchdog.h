/* engine/watch/watchdog.h - finds runs that make no progress, on the thread that waits for them.
 *
 * Workers pay nothing for it: the events that they write anyway say what they do now. Progress is a
 * task begun or ended on any device.
 */
#ifndef GP_ENGINE_WATCHDOG_H
#define GP_ENGINE_WATCHDOG_H

#include "engine/state/pipeline.h"

gp_status gp_watch_new(gp_pipeline *pipeline, double seconds);
void gp_watch_free(gp_pipeline *pipeline);
/* Forget the run before, when a run begins. */
void gp_watch_reset(gp_pipeline *pipeline);
/* Start the clock when the script's thread begins to wait: workers may have had nothing to do
 * before. */
void gp_watch_begin(gp_pipeline *pipeline);
/* Call this at least every tenth of a second while the thread waits. It gives the run up if it was
 * interrupted or made no progress. Returns true if a worker did not come back after that, so that
 * waiting any longer is of no use. */
bool gp_watch_check(gp_pipeline *pipeline);
/* Give up a run that has failed: end all waiting, here and on other ranks. */
void gp_watch_give_up(gp_pipeline *pipeline);
/* Declare the pipeline lost, and keep for ever what the workers may use. */
gp_status gp_watch_lose(gp_pipeline *pipeline);

#endif
