/* tests/c/engine/fault_test.c - GPIPE_FAULT: what its rules match, what they do, and which texts
 * are refused. */
#include "engine/watch/fault.h"

#include "base/thread.h"
#include "test.h"

static _Atomic uint32_t given_up;

/* Says whether a text is refused with these words. */
static bool refused(const char *text, const char *wanted) {
  gp_faults faults;
  return gp_faults_parse(text, &faults) == GP_EINVAL && strstr(gp_error_text(), wanted);
}

TEST(no_text_has_no_rules) {
  gp_faults faults = {.count = 7};
  static const char *const texts[] = {NULL, "", " ", ";", " ; ; "};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    CHECK_STATUS(gp_faults_parse(texts[i], &faults), GP_OK);
    CHECK(faults.count == 0);
  }
}

TEST(fields_are_read) {
  gp_faults f;
  CHECK_STATUS(gp_faults_parse("device=4,stage=2,step=7,micro=3,op=W,action=sleep:0.25", &f),
               GP_OK);
  const gp_fault *r = &f.rules[0];
  CHECK(f.count == 1 && r->kind == GP_FAULT_SLEEP && r->ns == 250000000);
  CHECK(r->place.device == 4 && r->place.stage == 2 && r->place.step == 7);
  CHECK(r->place.micro == 3 && r->place.op == (int32_t)GP_ACT_W);
}

TEST(rules_are_separated) {
  gp_faults f;
  CHECK_STATUS(gp_faults_parse(" op = F , action = hang ; action=nan;action=fail; ", &f), GP_OK);
  CHECK(f.count == 3 && f.rules[0].kind == GP_FAULT_HANG && f.rules[1].kind == GP_FAULT_NAN);
  CHECK(f.rules[2].kind == GP_FAULT_FAIL && f.rules[2].place.op == -1);
}

TEST(what_is_wrong_is_named) {
  CHECK(refused("stage=1", "there is no action"));
  CHECK(refused("stage", "'stage' has no '=', expected key=value (in rule 'stage')"));
  CHECK(refused("action=fail;stage=x,action=fail",
                "field 'stage' is 'x', expected a number from 0 (in "
                "rule 'stage=x,action=fail')"));
  CHECK(refused("stage=,action=fail", "field 'stage' is ''"));
  CHECK(refused("step=-1,action=fail", "field 'step' is '-1'"));
  CHECK(refused("step=1.5,action=fail", "field 'step' is '1.5'"));
  CHECK(refused("step=99999999999,action=fail", "field 'step' is '99999999999'"));
  CHECK(refused("step=nan,action=fail", "field 'step' is 'nan'"));
  CHECK(refused("micro=0000000000000000000000000000000000000001,action=fail", "field 'micro'"));
  CHECK(refused("op=X,action=fail", "op 'X', expected one of F B I W R U C P"));
  CHECK(refused("op=FF,action=fail", "op 'FF'"));
  CHECK(refused("op=,action=fail", "op ''"));
  CHECK(refused("action=", "action ''"));
  CHECK(refused("action=sleep", "action 'sleep', expected fail, hang, interrupt, nan or sleep:S"));
  CHECK(refused("action=sleep:", "action 'sleep:'"));
  CHECK(refused("action=sleep:-1", "action 'sleep:-1'"));
  CHECK(refused("action=sleep:1s", "action 'sleep:1s'"));
  CHECK(refused("action=sleep:inf", "action 'sleep:inf'"));
  CHECK(refused("place=3,action=fail", "unknown field 'place', expected device, stage, step"));
  CHECK(refused("op=F,,action=fail", "'' has no '=', expected key=value"));
}

TEST(there_are_not_too_many_rules) {
  char text[1024] = "";
  gp_faults f;
  for (int i = 0; i < GP_FAULT_RULES; i++) strcat(text, "action=nan;");
  CHECK_STATUS(gp_faults_parse(text, &f), GP_OK);
  CHECK(f.count == GP_FAULT_RULES);
  strcat(text, "action=nan");
  CHECK(refused(text, "more than 64 rules"));
}

/* Says whether a rule strikes at (device, stage, step, micro, op). */
static bool strikes(const char *text, gp_fault_place here) {
  gp_faults f;
  bool nan = false;
  CHECK_STATUS(gp_faults_parse(text, &f), GP_OK);
  return gp_faults_strike(&f, &here, &given_up, &nan) == GP_EINJECTED;
}

TEST(fields_that_are_left_out_match_everything) {
  gp_fault_place here = {1, 2, 3, 4, (int32_t)GP_ACT_B};
  CHECK(strikes("action=fail", here));
  CHECK(strikes("device=1,stage=2,step=3,micro=4,op=B,action=fail", here));
  CHECK(!strikes("device=0,action=fail", here));
  CHECK(!strikes("stage=0,action=fail", here));
  CHECK(!strikes("step=0,action=fail", here));
  CHECK(!strikes("micro=0,action=fail", here));
  CHECK(!strikes("op=F,action=fail", here));
  CHECK(strikes("op=I,action=fail", here)); /* this B holds I and W */
  CHECK(strikes("op=W,action=fail", here));
  here.op = (int32_t)GP_ACT_I;
  CHECK(strikes("op=B,action=fail", here)); /* a B was split into I and W */
  CHECK(!strikes("op=W,action=fail", here));
  here.op = (int32_t)GP_ACT_B;
  CHECK(strikes("op=F,action=fail;op=B,action=fail", here));
}

TEST(all_rules_that_match_strike_in_order) {
  gp_fault_place here = {0};
  gp_faults f;
  bool nan = false;
  CHECK_STATUS(gp_faults_parse("action=nan;action=fail", &f), GP_OK);
  CHECK_STATUS(gp_faults_strike(&f, &here, &given_up, &nan), GP_EINJECTED);
  CHECK(nan);
}

TEST(sleeps_are_not_short) {
  gp_fault_place here = {0};
  gp_faults f;
  bool nan = false;
  CHECK_STATUS(gp_faults_parse("action=sleep:0.002;action=sleep:0.015", &f), GP_OK);
  int64_t begin = gp_now_ns();
  CHECK_STATUS(gp_faults_strike(&f, &here, &given_up, &nan), GP_OK);
  CHECK(gp_now_ns() - begin >= 17000000);
}

TEST(interrupts_end_sleeps_and_hangs) {
  gp_fault_place here = {0};
  gp_faults f;
  bool nan = false;
  gp_interrupt_request();
  CHECK_STATUS(gp_faults_parse("action=sleep:1000", &f), GP_OK);
  CHECK_STATUS(gp_faults_strike(&f, &here, &given_up, &nan), GP_EINTERRUPT);
  CHECK_STATUS(gp_faults_parse("action=hang", &f), GP_OK);
  CHECK_STATUS(gp_faults_strike(&f, &here, &given_up, &nan), GP_EINTERRUPT);
  gp_interrupt_clear();
  atomic_store(&given_up, 1);
  CHECK_STATUS(gp_faults_strike(&f, &here, &given_up, &nan), GP_EINTERRUPT);
  atomic_store(&given_up, 0);
}

TEST_MAIN(no_text_has_no_rules, fields_are_read, rules_are_separated, what_is_wrong_is_named,
          there_are_not_too_many_rules, fields_that_are_left_out_match_everything,
          all_rules_that_match_strike_in_order, sleeps_are_not_short,
          interrupts_end_sleeps_and_hangs)
