/* engine/fault.h - failures on request, for tests: GPIPE_FAULT=stage=1,step=0,micro=2,op=F,action=fail
 *
 * Fields that are left out match everything. Actions: fail, sleep:SECONDS, hang (until interrupted).
 */
#ifndef GP_ENGINE_FAULT_H
#define GP_ENGINE_FAULT_H

#include "base/status.h"

typedef enum gp_fault_kind {
  GP_FAULT_NONE,
  GP_FAULT_FAIL,
  GP_FAULT_SLEEP,
  GP_FAULT_HANG
} gp_fault_kind;

typedef struct gp_fault {
  gp_fault_kind kind;
  int32_t stage, step, micro; /* -1: any */
  char op;                    /* 0: any */
  double seconds;
} gp_fault;

/* Parse GPIPE_FAULT's text (NULL or empty: none). Errors: GP_EINVAL names the field. */
gp_status gp_fault_parse(const char *text, gp_fault *fault);
/* Do what the fault says if it matches this action. Errors: GP_EINJECTED. */
gp_status gp_fault_strike(const gp_fault *fault, const gp_fault *here);

#endif
