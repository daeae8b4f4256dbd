/* engine/watch/fault.c - see fault.h: the text of the rules, and what they do to an action.
 *
 * The text comes from outside: every number is checked to its last character, and an error names
 * the rule that it is in.
 */
#include "engine/watch/fault.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h> /* getpid */
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "base/numbers/number.h"
#include "base/thread.h"
#include "engine/state/pipeline.h"
#include "gpipe/process.h"
#include "gpipe/schedule.h"

enum { NAP_NS = 10000000, VALUE_SIZE = 32 };
static const double MOST_SECONDS = 1e6;

/* ---- parsing ------------------------------------------------------------------------------- */

/* A part of the text. */
typedef struct span {
  const char *at;
  int length;
} span;

static span trim(span s) {
  while (s.length && strchr(" \t\n", s.at[0])) s.at++, s.length--;
  while (s.length && strchr(" \t\n", s.at[s.length - 1])) s.length--;
  return s;
}

/* Cut off what comes before the separator; false when nothing is left. */
static bool next(span *rest, char separator, span *part) {
  if (!rest->at) return false;
  const char *found = memchr(rest->at, separator, (size_t)rest->length);
  int length = found ? (int)(found - rest->at) : rest->length;
  *part = trim((span){rest->at, length});
  *rest = found ? (span){found + 1, rest->length - length - 1} : (span){NULL, 0};
  return true;
}

static bool is(span s, const char *word) {
  return strlen(word) == (size_t)s.length && !memcmp(s.at, word, (size_t)s.length);
}

/* Read the whole span as a number from 0 to most. */
static bool read_number(span s, double most, double *number) {
  char text[VALUE_SIZE], *end;
  if (s.length <= 0 || s.length >= VALUE_SIZE) return false;
  memcpy(text, s.at, (size_t)s.length);
  text[s.length] = '\0';
  *number = gp_number_read(text, &end);
  return *end == '\0' && *number >= 0 && *number <= most;
}

static gp_status parse_count(const char *key, span value, int32_t *count) {
  double number;
  if (!read_number(value, INT32_MAX, &number) || number != floor(number))
    return gp_fail(GP_EINVAL, "field '%s' is '%.*s', expected a number from 0", key, value.length,
                   value.at);
  *count = (int32_t)number;
  return GP_OK;
}

/* Read the name of an action. Those that the engine adds itself (gp_act_is_own) have none here. */
static gp_status parse_op(span value, int32_t *op) {
  static const gp_act acts[] = {GP_ACT_F,   GP_ACT_B,    GP_ACT_I,   GP_ACT_W, GP_ACT_R,
                                GP_ACT_U,   GP_ACT_C,    GP_ACT_P,   GP_ACT_S, GP_ACT_REDUCE,
                                GP_ACT_TIE, GP_ACT_NORM, GP_ACT_CLIP};
  for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
    if (is(value, gp_act_name(acts[i]))) return *op = (int32_t)acts[i], GP_OK;
  return gp_fail(GP_EINVAL,
                 "op '%.*s', expected one of F B I W R U C P S NORM CLIP REDUCE_GRAD REDUCE_TIED",
                 value.length, value.at);
}

static gp_status parse_action(span value, gp_fault *fault) {
  double seconds;
  bool sleeps = value.length > 6 && !memcmp(value.at, "sleep:", 6);
  if (is(value, "fail"))
    fault->kind = GP_FAULT_FAIL;
  else if (is(value, "hang"))
    fault->kind = GP_FAULT_HANG;
  else if (is(value, "interrupt"))
    fault->kind = GP_FAULT_INTERRUPT;
  else if (is(value, "nan"))
    fault->kind = GP_FAULT_NAN;
  else if (sleeps && read_number((span){value.at + 6, value.length - 6}, MOST_SECONDS, &seconds))
    fault->kind = GP_FAULT_SLEEP, fault->ns = (int64_t)(1e9 * seconds);
  else
    return gp_fail(GP_EINVAL, "action '%.*s', expected fail, hang, interrupt, nan or sleep:SECONDS",
                   value.length, value.at);
  return GP_OK;
}

static gp_status parse_field(span key, span value, gp_fault *fault, bool *acts) {
  gp_fault_place *p = &fault->place;
  if (is(key, "device")) return parse_count("device", value, &p->device);
  if (is(key, "stage")) return parse_count("stage", value, &p->stage);
  if (is(key, "step")) return parse_count("step", value, &p->step);
  if (is(key, "micro")) return parse_count("micro", value, &p->micro);
  if (is(key, "op")) return parse_op(value, &p->op);
  if (!is(key, "action"))
    return gp_fail(GP_EINVAL,
                   "unknown field '%.*s', expected device, stage, step, micro, op or action",
                   key.length, key.at);
  *acts = true;
  return parse_action(value, fault);
}

static gp_status parse_rule(span rule, gp_fault *fault) {
  span field, key;
  bool acts = false;
  *fault = (gp_fault){.place = {-1, -1, -1, -1, -1}};
  for (span rest = rule; next(&rest, ',', &field);) {
    span value = field;
    next(&value, '=', &key);
    if (!value.at)
      return gp_fail(GP_EINVAL, "'%.*s' has no '=', expected key=value", field.length, field.at);
    GP_TRY(parse_field(key, trim(value), fault, &acts));
  }
  if (!acts)
    return gp_fail(GP_EINVAL, "there is no action, expected action=fail, hang, interrupt, nan or "
                              "sleep:SECONDS");
  return GP_OK;
}

gp_status gp_faults_parse(const char *text, gp_faults *faults) {
  span rule;
  faults->count = 0;
  if (!text) return GP_OK;
  if (strlen(text) > INT32_MAX) return gp_fail(GP_EINVAL, "GPIPE_FAULT: it is too long");
  for (span rest = {text, (int)strlen(text)}; next(&rest, ';', &rule);) {
    if (!rule.length) continue; /* a ';' at the end leaves an empty rule */
    if (faults->count == GP_FAULT_RULES)
      return gp_fail(GP_EINVAL, "GPIPE_FAULT: more than %d rules", GP_FAULT_RULES);
    if (parse_rule(rule, &faults->rules[faults->count]))
      return gp_fail(GP_EINVAL, "GPIPE_FAULT: %s (in rule '%.*s')", gp_error_text(), rule.length,
                     rule.at);
    faults->count++;
  }
  return GP_OK;
}

static gp_status check_place(const char *what, int32_t number, int32_t count) {
  if (number < count) return GP_OK;
  return gp_fail(GP_EINVAL, "GPIPE_FAULT: there is no %s %d, the pipeline has %d (from 0)", what,
                 (int)number, (int)count);
}

gp_status gp_faults_check(const gp_faults *faults, int32_t devices, int32_t stages) {
  for (int32_t i = 0; i < faults->count; i++) {
    GP_TRY(check_place("device", faults->rules[i].place.device, devices));
    GP_TRY(check_place("stage", faults->rules[i].place.stage, stages));
  }
  return GP_OK;
}

/* ---- striking ------------------------------------------------------------------------------ */

/* Does a field of a rule match? -1 matches everything. */
static bool matches(int32_t wanted, int32_t is_there) { return wanted < 0 || wanted == is_there; }

/* Lowering splits B if W has to wait, and merges I and W if the split gains nothing. Rules are
 * written from the schedule's rows, so an action also matches the form that it has there. */
static bool matches_op(int32_t wanted, int32_t is_there) {
  if (wanted == GP_ACT_B && is_there == GP_ACT_I) return true;
  if ((wanted == GP_ACT_I || wanted == GP_ACT_W) && is_there == GP_ACT_B) return true;
  return matches(wanted, is_there);
}

static bool is_meant(const gp_fault_place *rule, const gp_fault_place *here) {
  return matches_op(rule->op, here->op) && matches(rule->stage, here->stage) &&
         matches(rule->micro, here->micro) && matches(rule->step, here->step) &&
         matches(rule->device, here->device);
}

/* Sleep to a point in time, so that the time of the calls themselves does not add up. */
static void nap_until(int64_t ns) {
  struct timespec t = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
#if defined(__linux__)
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
#else
  int64_t left = ns - gp_now_ns();
  t = (struct timespec){.tv_sec = (time_t)(left / 1000000000),
                        .tv_nsec = (long)(left % 1000000000)};
  if (left > 0) nanosleep(&t, NULL);
#endif
}

/* Ask for short delays: the kernel may add 50 microseconds to every sleep of a thread that has not
 * asked for less. */
static void sleep_exactly(void) {
#if defined(__linux__)
  prctl(PR_SET_TIMERSLACK, 1000);
#endif
}

static gp_status rest(int64_t ns) {
  int64_t end = gp_now_ns() + ns;
  sleep_exactly();
  for (int64_t now; (now = gp_now_ns()) < end;) {
    if (gp_interrupt_pending()) return gp_fail(GP_EINTERRUPT, "interrupted");
    nap_until(end - now < NAP_NS ? end : now + NAP_NS);
  }
  return GP_OK;
}

/* Wait until the step is given up. */
static gp_status hang(const _Atomic uint32_t *given_up) {
  while (!gp_interrupt_pending() && !atomic_load(given_up)) nap_until(gp_now_ns() + NAP_NS);
  /* the script sees the text of the watchdog or of Ctrl-C, which fail the run themselves */
  return gp_fail(GP_EINTERRUPT, "interrupted");
}

gp_status gp_faults_strike(const gp_faults *faults, const gp_fault_place *here,
                           const _Atomic uint32_t *given_up, bool *nan) {
  for (int32_t i = 0; i < faults->count; i++) {
    const gp_fault *fault = &faults->rules[i];
    if (!is_meant(&fault->place, here)) continue;
    if (fault->kind == GP_FAULT_FAIL)
      return gp_fail(GP_EINJECTED, "GPIPE_FAULT asked for this failure");
    if (fault->kind == GP_FAULT_HANG) return hang(given_up);
    if (fault->kind == GP_FAULT_INTERRUPT) kill(getpid(), SIGINT);
    if (fault->kind == GP_FAULT_SLEEP) GP_TRY(rest(fault->ns));
    if (fault->kind == GP_FAULT_NAN) *nan = true;
  }
  return GP_OK;
}
