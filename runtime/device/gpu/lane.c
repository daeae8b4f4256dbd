/* device/gpu/lane.c - a lane of streams: a logical device of a GPU, by the functions of the plugin.
 *
 * Calls enqueue and return. */
#include "device/lane.h"

#include <string.h>

#include "base/memory.h"
#include "device/gpus.h"

typedef struct gpu_lane {
  const gp_gpu_api *api;
  gp_gpu *gpu;
} gpu_lane;

static const gpu_lane *of(const gp_lane *lane) { return lane->self; }
static gp_gpu *gpu_of(const gp_lane *lane) { return of(lane)->gpu; }
static const gp_gpu_api *api_of(const gp_lane *lane) { return of(lane)->api; }
static gp_gpu_event *native(gp_lane_event *event) { return (gp_gpu_event *)event; }

/* ---- facts --------------------------------------------------------------------------------- */

/* A GPU lane reaches the host's memory: what is sent from there is pinned (host_alloc). */
static bool reaches(const gp_lane *lane, const gp_lane *other) {
  if (!other->space || gp_lane_shares(lane, other)) return true;
  return other->memory->reaches == lane->memory->reaches &&
         api_of(lane)->reaches(gpu_of(lane), gpu_of(other));
}

static gp_status free_bytes(const gp_lane *lane, size_t *bytes) {
  return api_of(lane)->free_bytes(gpu_of(lane), bytes);
}

static void set_precision(const gp_lane *lane, bool tf32) {
  api_of(lane)->set_math(gpu_of(lane), tf32 ? GP_GPU_TF32 : GP_GPU_F32);
}

/* No reference to the plugin is needed: it stays loaded for the life of the process. */
static gp_status host_alloc(size_t bytes, void **memory) {
  const gp_gpu_api *api;
  GP_TRY(gp_gpus_api(&api));
  return api->host_alloc(bytes, memory);
}

static void host_free(void *memory) {
  const gp_gpu_api *api;
  if (!gp_gpus_api(&api)) api->host_free(memory);
}

static gp_status host_pin(void *memory, size_t bytes) {
  const gp_gpu_api *api;
  GP_TRY(gp_gpus_api(&api));
  return api->host_pin(memory, bytes);
}

static void host_unpin(void *memory) {
  const gp_gpu_api *api;
  if (!gp_gpus_api(&api)) api->host_unpin(memory);
}

/* ---- other processes ------------------------------------------------------------------------- */

static gp_status offer_memory(const gp_lane *lane, const void *memory, gp_lane_offer *offer) {
  gp_gpu_offer made;
  _Static_assert(sizeof made <= sizeof *offer, "gp_lane_offer has no room for it");
  GP_TRY(api_of(lane)->ipc_offer(gpu_of(lane), memory, &made));
  memcpy(offer, &made, sizeof made);
  return GP_OK;
}

static gp_gpu_offer native_offer(const gp_lane_offer *offer) {
  gp_gpu_offer found;
  memcpy(&found, offer, sizeof found);
  return found;
}

static gp_status open_memory(const gp_lane *lane, const gp_lane_offer *offer,
                             const gp_lane_window *window, void **memory) {
  const gp_gpu_offer found = native_offer(offer);
  const gp_gpu_window part = {window->name, window->refused, window->at, window->bytes};
  return api_of(lane)->ipc_open(gpu_of(lane), &found, &part, memory);
}

static void close_memory(const gp_lane *lane, const gp_lane_offer *offer, void *memory) {
  const gp_gpu_offer found = native_offer(offer);
  api_of(lane)->ipc_close(gpu_of(lane), &found, memory);
}

static const gp_gpu_api *plugin(void) {
  const gp_gpu_api *api;
  return gp_gpus_api(&api) ? NULL : api; /* a wire comes from the plugin */
}

static gp_gpu_wire *native_wire(gp_lane_wire *wire) { return (gp_gpu_wire *)wire; }

static gp_status wire_id(unsigned char id[GP_LANE_WIRE_ID]) { return plugin()->wire_id(id); }
static gp_status wire_open(const gp_lane *lane, const unsigned char id[GP_LANE_WIRE_ID], bool sends,
                           gp_lane_wire **wire) {
  return api_of(lane)->wire_open(gpu_of(lane), id, sends, (gp_gpu_wire **)wire);
}
static gp_status wire_ready(gp_lane_wire *wire, bool *ready) {
  return plugin()->wire_ready(native_wire(wire), ready);
}
static gp_status wire_move(gp_lane_wire *wire, gp_lane_event *after, void *memory, size_t bytes) {
  return plugin()->wire_move(native_wire(wire), native(after), memory, bytes);
}
static gp_status wire_record(gp_lane_wire *wire, gp_lane_event *event) {
  return plugin()->wire_record(native_wire(wire), native(event));
}
static void wire_note(const gp_lane *lane, const char *name, const char *why) {
  api_of(lane)->wire_note(gpu_of(lane), name, why);
}
static void wire_abort(gp_lane_wire *wire) { plugin()->wire_abort(native_wire(wire)); }
static void wire_close(gp_lane_wire *wire) { plugin()->wire_close(native_wire(wire)); }

/* ---- copies -------------------------------------------------------------------------------- */

static gp_status copy(const gp_lane *lane, gp_stream stream, void *to, const void *from,
                      size_t bytes) {
  return api_of(lane)->copy(gpu_of(lane), stream, to, from, bytes);
}

static gp_status fetch(const gp_lane *lane, gp_stream stream, void *to, const gp_lane *other,
                       const void *from, size_t bytes) {
  if (!other->space) return copy(lane, stream, to, from, bytes);
  return api_of(lane)->copy_peer(gpu_of(lane), stream, to, gpu_of(other), from, bytes);
}

static gp_status fill(const gp_lane *lane, gp_stream stream, void *to, int byte, size_t bytes) {
  return api_of(lane)->fill(gpu_of(lane), stream, to, byte, bytes);
}

static gp_status sync(const gp_lane *lane, gp_stream stream) {
  return api_of(lane)->sync(gpu_of(lane), stream);
}

static gp_status call(const gp_lane *lane, gp_stream stream, void (*function)(void *context),
                      void *context) {
  return api_of(lane)->call(gpu_of(lane), stream, function, context);
}

/* ---- events -------------------------------------------------------------------------------- */

static gp_status event_new(const gp_lane *lane, bool timed, gp_lane_event **event) {
  return api_of(lane)->event_new(gpu_of(lane), timed, (gp_gpu_event **)event);
}

static void event_free(const gp_lane *lane, gp_lane_event *event) {
  if (event) api_of(lane)->event_free(native(event));
}

static gp_status record(const gp_lane *lane, gp_stream stream, gp_lane_event *event) {
  return api_of(lane)->record(gpu_of(lane), stream, native(event));
}

/* Without an event there is nothing to wait for: the work of threads was over when they published
 * it. */
static gp_status wait_for(const gp_lane *lane, gp_stream stream, gp_lane_event *event) {
  return event ? api_of(lane)->wait(gpu_of(lane), stream, native(event)) : GP_OK;
}

static gp_status is_done(const gp_lane *lane, gp_lane_event *event, bool *done) {
  return api_of(lane)->done(native(event), done);
}

static gp_status seconds(const gp_lane *lane, gp_lane_event *from, gp_lane_event *to, double *s) {
  return api_of(lane)->seconds(native(from), native(to), s);
}

/* ---- work ---------------------------------------------------------------------------------- */

static gp_status prepare(const gp_lane *lane, gp_op op, const gp_call *call, size_t *scratch) {
  return api_of(lane)->prepare(gpu_of(lane), op, call, scratch);
}

/* Only CPU lanes run pieces. */
static gp_status pieces(const gp_lane *lane, int64_t count, gp_piece piece, void *context) {
  (void)count;
  (void)piece;
  (void)context;
  return gp_fail(GP_EUNSUPPORTED, "%s takes whole ops", lane->name);
}

static gp_status launch(const gp_lane *lane, const gp_lane_call *call) {
  gp_gpu_call full = {
      .op = *call->call, .scratch = call->scratch, .fault = call->fault, .tag = call->tag};
  return api_of(lane)->run(gpu_of(lane), call->op, &full);
}

static gp_status run(const gp_lane *lane, const gp_lane_job *job) {
  (void)lane;
  return job->enqueue(job->context);
}

/* ---- graphs -------------------------------------------------------------------------------- */

static gp_gpu_graph *native_graph(gp_lane_graph *graph) { return (gp_gpu_graph *)graph; }

static gp_status capture_begin(const gp_lane *lane) {
  return api_of(lane)->capture_begin(gpu_of(lane));
}

static gp_status capture_end(const gp_lane *lane, gp_lane_graph **graph) {
  return api_of(lane)->capture_end(gpu_of(lane), (gp_gpu_graph **)graph);
}

static gp_status launch_graph(const gp_lane *lane, gp_lane_graph *graph) {
  return api_of(lane)->launch(gpu_of(lane), native_graph(graph));
}

static void graph_free(gp_lane_graph *graph) {
  const gp_gpu_api *api;
  if (!gp_gpus_api(&api)) api->graph_free(native_graph(graph));
}

/* ---- sums and updates ---------------------------------------------------------------------- */

static gp_status check_finite(const gp_lane *lane, const gp_arg *value, gp_lane_fault *fault,
                              uint32_t tag) {
  return api_of(lane)->check_finite(gpu_of(lane), value, fault, tag);
}

static gp_status settle(const gp_lane *lane, const int64_t *counts, gp_step_block *blocks,
                        int count) {
  return api_of(lane)->settle(gpu_of(lane), counts, blocks, count);
}

static gp_status update(const gp_lane *lane, const gp_lane_update *u) {
  return api_of(lane)->update(gpu_of(lane), u->hyper, u->step, u->slices, u->count);
}

/* Copy all sums to the host at once, after the work enqueued before. */
static gp_status squares(const gp_lane *lane, const gp_lane_sweep *s) {
  double *there = (double *)((char *)s->scratch + GP_GPU_SUM_SCRATCH);
  if (!s->count) return GP_OK;
  GP_TRY(api_of(lane)->sum_squares(gpu_of(lane), s->runs, s->count, there, s->scratch));
  GP_TRY(gp_lane_copy(lane, s->sums, there, (size_t)s->count * sizeof(double)));
  return gp_lane_sync(lane);
}

static gp_status scale(const gp_lane *lane, const gp_lane_sweep *s) {
  return api_of(lane)->scale(gpu_of(lane), s->runs, s->count, s->factor);
}

static gp_status add(const gp_lane *lane, gp_dtype dtype, int64_t n, void *to, const void *from) {
  return api_of(lane)->add(gpu_of(lane), dtype, n, to, from);
}

/* ---- reports ------------------------------------------------------------------------------- */

static bool path(const gp_lane *lane, int i, gp_work_path *found) {
  return api_of(lane)->path(gpu_of(lane), i, found);
}

/* ---- profilers ----------------------------------------------------------------------------- */

static void range_push(const char *name, int64_t payload) {
  const gp_gpu_api *api;
  if (!gp_gpus_api(&api)) api->range_push(name, payload);
}

static void range_pop(void) {
  const gp_gpu_api *api;
  if (!gp_gpus_api(&api)) api->range_pop();
}

/* ---- open and close ------------------------------------------------------------------------ */

static void close_lane(gp_lane *lane) {
  gpu_lane *own = lane->self;
  own->api->close(own->gpu);
  gp_free(own);
  lane->self = NULL;
}

static const gp_lane_facts facts = {
    .sums_parts = true, .writes_halves = true, .sum_scratch = GP_GPU_SUM_SCRATCH};
static const gp_lane_memory memory = {.reaches = reaches,
                                      .free_bytes = free_bytes,
                                      .host_alloc = host_alloc,
                                      .host_free = host_free,
                                      .host_pin = host_pin,
                                      .host_unpin = host_unpin,
                                      .copy = copy,
                                      .fetch = fetch,
                                      .fill = fill};
static const gp_lane_sharing sharing = {
    .offer = offer_memory, .open = open_memory, .close = close_memory};
static const gp_lane_wires wires = {.id = wire_id,
                                    .open = wire_open,
                                    .ready = wire_ready,
                                    .move = wire_move,
                                    .record = wire_record,
                                    .note = wire_note,
                                    .abort = wire_abort,
                                    .close = wire_close};
static const gp_lane_streams streams = {.sync = sync,
                                        .call = call,
                                        .event_new = event_new,
                                        .event_free = event_free,
                                        .record = record,
                                        .wait = wait_for,
                                        .is_done = is_done,
                                        .seconds = seconds};
static const gp_lane_work work = {.set_precision = set_precision,
                                  .prepare = prepare,
                                  .run = run,
                                  .pieces = pieces,
                                  .launch = launch,
                                  .check_finite = check_finite,
                                  .settle = settle};
static const gp_lane_sums sums = {.add = add, .squares = squares, .scale = scale, .update = update};
static const gp_lane_graphs graphs = {
    .begin = capture_begin, .end = capture_end, .launch = launch_graph, .free = graph_free};
static const gp_lane_reports reports = {
    .path = path, .range_push = range_push, .range_pop = range_pop};

/* The lane opens a gp_gpu for itself beside the one that scripts use: they do not share a
 * stream. */
gp_status gp_lane_open_gpu(const char *name, const gp_lane_options *options, gp_lane *lane) {
  gp_device_name parsed;
  gpu_lane *own;
  (void)options;
  GP_TRY(gp_device_parse(name, &parsed));
  GP_TRY(gp_gpus_space(parsed.spec.ordinal, &lane->space));
  GP_TRY(gp_alloc(sizeof *own, (void **)&own));
  gp_status status = gp_gpus_api(&own->api);
  if (!status) status = own->api->open(&parsed.spec, &own->gpu);
  if (status) return gp_free(own), status;
  lane->facts = &facts;
  lane->memory = &memory;
  lane->sharing = &sharing;
  lane->wires = &wires;
  lane->streams = &streams;
  lane->work = &work;
  lane->sums = &sums;
  lane->graphs = &graphs;
  lane->reports = &reports;
  lane->close = close_lane;
  lane->self = own;
  return GP_OK;
}
