/* engine/run/arguments.h - checks that a run is given what its plan was made for. */
#ifndef GP_ENGINE_ARGUMENTS_H
#define GP_ENGINE_ARGUMENTS_H

#include "gpipe/run.h"

/* Check dtypes, shapes and numbers of tensors. Errors: GP_EINVAL; GP_ESHAPE. */
gp_status gp_run_check_args(const gp_plan *plan, const gp_run_args *args);

#endif
