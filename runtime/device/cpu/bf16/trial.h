/* device/cpu/bf16/trial.h - whether instructions that a processor reports really run. */
#ifndef GP_DEVICE_CPU_BF16_TRIAL_H
#define GP_DEVICE_CPU_BF16_TRIAL_H

#include "device/cpu/bf16/tiles.h"

/* Ask a child process whether the tiles give the right product there. Some virtual machines report
 * AMX and kill programs that use it with SIGILL. Cost: about a millisecond. */
bool gp_bf16_try(gp_bf16_tiles *tiles);

#endif
