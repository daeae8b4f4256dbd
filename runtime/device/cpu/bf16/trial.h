/* device/cpu/bf16/trial.h - whether instructions that a processor reports really run. */
#ifndef GP_DEVICE_CPU_BF16_TRIAL_H
#define GP_DEVICE_CPU_BF16_TRIAL_H

#include "device/cpu/bf16/tiles.h"

/* Whether a child process gets the right product from the tiles. Some virtual machines report AMX
 * and end programs that use it with SIGILL. Costs about a millisecond. */
bool gp_bf16_try(gp_bf16_tiles *tiles);

#endif
