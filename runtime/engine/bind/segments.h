/* engine/bind/segments.h - which tasks of a device with a queue are launched together, as one
 * captured graph. */
#ifndef GP_ENGINE_SEGMENTS_H
#define GP_ENGINE_SEGMENTS_H

#include "engine/bind/binding.h"
#include "gpipe/run.h"

/* A graph of a segment, and what is known of its capture. */
typedef struct gp_segment_graph {
  gp_lane_graph *graph; /* NULL: not captured */
  bool ran;             /* its tasks have run one by one, so that their libraries are loaded */
  bool refused;         /* the device could not capture them */
} gp_segment_graph;

/* Consecutive tasks of a device between which the host neither waits nor decides anything. */
struct gp_segment {
  int32_t first, end;         /* tasks of the plan */
  int32_t rows;               /* the task whose micro-batch is the last one */
  bool opens;                 /* one of them writes gradients, unless these are added to */
  gp_segment_graph graphs[2]; /* the second one where gradients are added to */
};

/* Cut the device's tasks into segments. A device whose work is over when a call returns has none,
 * nor has a stream, whose addresses change from mini-batch to mini-batch. */
gp_status gp_segments_new(gp_binding *binding, int32_t device);
void gp_segments_free(gp_binding *binding, int32_t device);
/* Forget the captured graphs: an address that they use has changed. */
void gp_segments_forget(gp_binding *binding, int32_t device);
/* The segment that task t of the plan is in; NULL: none. */
gp_segment *gp_segment_of(const gp_binding *binding, int32_t device, int32_t t);

/* Segments that have work to capture, and their tasks that do. */
gp_graph_counts gp_segments_count(const gp_binding *binding, int32_t device);

/* The graph for a run that begins its gradients anew, or adds to them. */
static inline gp_segment_graph *gp_segment_graph_of(gp_segment *segment, bool accumulate) {
  return &segment->graphs[segment->opens && accumulate];
}

#endif
