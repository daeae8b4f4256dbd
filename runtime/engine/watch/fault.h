/* engine/watch/fault.h - failures on request, for tests:
 * GPIPE_FAULT=stage=2,step=7,micro=3,op=F,action=hang
 *
 * Rules are separated by ';', their fields by ','. Fields that are left out match everything:
 *   device, stage    numbers from 0
 *   step             the pipeline's count of training steps, as in messages: 0 is the first one
 *   micro            the micro-batch in its mini-batch, from 0
 *   op               F B I W R U C P NORM CLIP REDUCE_GRAD or REDUCE_TIED; B also matches the I
 *                    of a B that lowering split, I and W also match the B that they were merged to
 * Every rule that matches an action strikes, in order:
 *   action=fail      the action fails
 *   action=hang      it hangs until the step is given up (Ctrl-C, or the watchdog)
 *   action=sleep:S   it takes S seconds longer; Ctrl-C ends that, the watchdog does not
 *   action=interrupt Ctrl-C is pressed: the process gets SIGINT, and the action goes on
 *   action=nan       every float that leaves the action is not a number
 */
#ifndef GP_ENGINE_FAULT_H
#define GP_ENGINE_FAULT_H

#include "engine/state/watch.h"

/* Parse GPIPE_FAULT's text (NULL or empty: none). Errors: GP_EINVAL names the rule and the
 * field. */
gp_status gp_faults_parse(const char *text, gp_faults *faults);
/* Check that the pipeline has the devices and stages that the rules name. Errors: GP_EINVAL names
 * one that it does not have. */
gp_status gp_faults_check(const gp_faults *faults, int32_t devices, int32_t stages);
/* Do what the rules for this action say, before it runs. *given_up ends a hang; *nan is set if the
 * results are to be NaN. Errors: GP_EINJECTED; GP_EINTERRUPT. */
gp_status gp_faults_strike(const gp_faults *faults, const gp_fault_place *here,
                           const _Atomic uint32_t *given_up, bool *nan);

#endif
