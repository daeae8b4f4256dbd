/* engine/fault.c - see fault.h. */
#include "engine/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* "fail", "hang" or "sleep:0.5". */
static gp_status parse_action(const char *value, gp_fault *fault) {
  if (!strcmp(value, "fail"))
    fault->kind = GP_FAULT_FAIL;
  else if (!strcmp(value, "hang"))
    fault->kind = GP_FAULT_HANG;
  else if (sscanf(value, "sleep:%lf", &fault->seconds) == 1)
    fault->kind = GP_FAULT_SLEEP;
  else
    return gp_fail(GP_EINVAL, "GPIPE_FAULT: action '%s', fail, hang or sleep:SECONDS wanted",
                   value);
  return GP_OK;
}

/* One key=value; numbers that are left out stay -1, which matches all. */
static gp_status parse_field(const char *key, const char *value, gp_fault *fault) {
  if (!strcmp(key, "stage"))
    fault->stage = atoi(value);
  else if (!strcmp(key, "step"))
    fault->step = atoi(value);
  else if (!strcmp(key, "micro"))
    fault->micro = atoi(value);
  else if (!strcmp(key, "op"))
    fault->op = value[0];
  else if (!strcmp(key, "action"))
    return parse_action(value, fault);
  else
    return gp_fail(GP_EINVAL, "GPIPE_FAULT: unknown field '%s'; stage, step, micro, op, action",
                   key);
  return GP_OK;
}

/* Fields are separated by commas; the text is short and trusted no further than its length. */
gp_status gp_fault_parse(const char *text, gp_fault *fault) {
  char key[16], value[32];
  int used;
  *fault = (gp_fault){.stage = -1, .step = -1, .micro = -1};
  for (; text && *text; text += used + (text[used] == ',')) {
    if (sscanf(text, "%15[^=,]=%31[^,]%n", key, value, &used) != 2)
      return gp_fail(GP_EINVAL, "GPIPE_FAULT: '%s' is not key=value", text);
    GP_TRY(parse_field(key, value, fault));
  }
  return GP_OK;
}

/* -1 is "any". */
static bool matches(int32_t wanted, int32_t is) { return wanted < 0 || wanted == is; }

/* nanosleep in whole and parts of seconds. */
static void rest(double seconds) {
  struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&t, NULL);
}

/* A hang ends with the interrupt that it is there to test. */
gp_status gp_fault_strike(const gp_fault *fault, const gp_fault *here) {
  if (fault->kind == GP_FAULT_NONE || !matches(fault->stage, here->stage) ||
      !matches(fault->step, here->step) || !matches(fault->micro, here->micro) ||
      (fault->op && fault->op != here->op))
    return GP_OK;
  if (fault->kind == GP_FAULT_SLEEP) return rest(fault->seconds), GP_OK;
  while (fault->kind == GP_FAULT_HANG && !gp_interrupt_pending()) rest(0.01);
  if (fault->kind == GP_FAULT_HANG) return GP_OK;
  return gp_fail(GP_EINJECTED, "GPIPE_FAULT asked for this failure");
}
