/* engine/state/watch.h - what watches over runs: failures on request, and the watchdog. */
#ifndef GP_ENGINE_STATE_WATCH_H
#define GP_ENGINE_STATE_WATCH_H

#include <stdatomic.h>

#include "base/status.h"
#include "gpipe/pipeline.h"

enum { GP_FAULT_RULES = 64 };

typedef enum gp_fault_kind {
  GP_FAULT_FAIL,
  GP_FAULT_HANG,
  GP_FAULT_SLEEP,
  GP_FAULT_INTERRUPT,
  GP_FAULT_NAN
} gp_fault_kind;

/* Where an action runs; in a rule -1 matches everything. */
typedef struct gp_fault_place {
  int32_t device, stage, step, micro, op; /* op: gp_act */
} gp_fault_place;

typedef struct gp_fault {
  gp_fault_place place;
  gp_fault_kind kind;
  int64_t ns; /* GP_FAULT_SLEEP */
} gp_fault;

typedef struct gp_faults {
  int32_t count;
  gp_fault rules[GP_FAULT_RULES];
} gp_faults;

typedef struct gp_watch {
  int64_t limit_ns; /* the longest time without progress; 0: no limit */
  int64_t since;    /* time of the last progress; the time the process was stopped is added */
  int64_t looked;   /* when it was last looked for */
  uint64_t seen;    /* tasks begun and ended by then */
  bool timed_out;   /* this run was given up by the watchdog */
  bool lost;        /* a worker never came back: nothing may be run or freed any more */
  char *report;     /* of the last run that was given up; "" before */
  size_t report_size;
  _Atomic uint32_t given_up; /* workers stop waiting and pass through their tasks */
} gp_watch;

#endif
