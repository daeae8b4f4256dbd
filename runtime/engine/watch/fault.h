/* engine/watch/fault.h - failures on request, for tests:
 * GPIPE_FAULT=stage=2,step=7,micro=3,op=F,action=hang
 *
 * Rules are separated by ';', their fields by ','. Fields that are left out match everything:
 *   device, stage    numbers from 0
 *   step             the pipeline's count of training steps, as in messages: 0 is the first one
 *   micro            of the mini-batch, from 0
 *   op               F B I W R U C or P; B is also the I of a B that lowering split, I and W the B
 *   of a merged one
 * Every rule that matches an action strikes, in order:
 *   action=fail      the action fails
 *   action=hang      until the step is given up (Ctrl-C, or the watchdog)
 *   action=sleep:S   S seconds, on top of the action's own time; Ctrl-C ends it, the watchdog does
 *   not action=nan       every float that leaves the action is not a number
 */
#ifndef GP_ENGINE_FAULT_H
#define GP_ENGINE_FAULT_H

#include "engine/state/watch.h"

/* Parse GPIPE_FAULT's text (NULL or empty: none). Errors: GP_EINVAL names the rule and the
 * field. */
gp_status gp_faults_parse(const char *text, gp_faults *faults);
/* Check that what the rules name is there. Errors: GP_EINVAL names the rule's number of a device or
 * stage that the pipeline has not. */
gp_status gp_faults_check(const gp_faults *faults, int32_t devices, int32_t stages);
/* Do what the rules for this action say, before it runs; *nan is set where its results are to be
 * spoilt.
 * given_up ends a hang. Errors: GP_EINJECTED; GP_EINTERRUPT. */
gp_status gp_faults_strike(const gp_faults *faults, const gp_fault_place *here,
                           const _Atomic uint32_t *given_up, bool *nan);

#endif
