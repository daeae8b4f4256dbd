/* device/cuda/plugin.c - the entry point and the table: all that the core sees of this library.
 *
 * The entry point is the only visible symbol. Core and plugin may come from different builds (a
 * module installed long ago beside a new program), so they first compare what they were made
 * from. */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/kernel/work.h"
#include "device/cuda/table.h"
#include "device/rows_version.h"

gp_plugin_host gp_host;

/* ---- the table ------------------------------------------------------------------------------- */

static const gp_gpu_api api = {
    .version = GP_PLUGIN_VERSION,
    .kind = "cuda",
    .count = gp_cuda_count,
    .describe = gp_cuda_describe,
    .open = gp_cuda_open,
    .close = gp_cuda_close,
    .info = gp_cuda_info,
    .set_math = gp_cuda_set_math,
    .alloc = gp_cuda_alloc,
    .free = gp_cuda_free,
    .host_alloc = gp_cuda_host_alloc,
    .host_free = gp_cuda_host_free,
    .host_pin = gp_cuda_host_pin,
    .host_unpin = gp_cuda_host_unpin,
    .free_bytes = gp_cuda_free_bytes,
    .ipc_offer = gp_cuda_ipc_offer,
    .ipc_open = gp_cuda_ipc_open,
    .ipc_close = gp_cuda_ipc_close,
    .copy = gp_cuda_copy,
    .copy_peer = gp_cuda_copy_peer,
    .fill = gp_cuda_fill,
    .reaches = gp_cuda_reaches,
    .same_memory = gp_cuda_same_memory,
    .sync = gp_cuda_sync,
    .call = gp_cuda_call,
    .event_new = gp_cuda_event_new,
    .event_free = gp_cuda_event_free,
    .record = gp_cuda_record,
    .wait = gp_cuda_wait,
    .finish = gp_cuda_finish,
    .done = gp_cuda_done,
    .seconds = gp_cuda_seconds,
    .wire_id = gp_cuda_wire_id,
    .wire_open = gp_cuda_wire_open,
    .wire_ready = gp_cuda_wire_ready,
    .wire_move = gp_cuda_wire_move,
    .wire_record = gp_cuda_wire_record,
    .wire_note = gp_cuda_wire_note,
    .wire_abort = gp_cuda_wire_abort,
    .wire_close = gp_cuda_wire_close,
    .prepare = gp_cuda_prepare,
    .run = gp_cuda_run,
    .check_finite = gp_cuda_check_finite,
    .settle = gp_cuda_settle,
    .update = gp_cuda_update,
    .add = gp_cuda_add,
    .scale = gp_cuda_scale,
    .sum_squares = gp_cuda_sum_squares,
    .capture_begin = gp_cuda_capture_begin,
    .capture_end = gp_cuda_capture_end,
    .launch = gp_cuda_launch,
    .graph_free = gp_cuda_graph_free,
    .library = gp_cuda_library,
    .path = gp_cuda_path,
    .range_push = gp_cuda_range_push,
    .range_pop = gp_cuda_range_pop,
};

/* ---- the entry point ------------------------------------------------------------------------- */

/* Ask for 32 hardware queues before the driver's first call. The default is 8, so pipelines on one
 * GPU would share queues, and parts of a GPU would wait for each other. A number set by the user
 * stays. */
static void widen_queues(void) { (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

__attribute__((visibility("default"))) gp_status gp_cuda_plugin_open(const gp_plugin_host *host,
                                                                     const gp_gpu_api **out);

gp_status gp_cuda_plugin_open(const gp_plugin_host *host, const gp_gpu_api **out) {
  gp_host = *host;
  if (host->version != GP_PLUGIN_VERSION)
    return gp_gpu_fail(
        GP_EUNSUPPORTED,
        "libgpipe_cuda.so has interface version %d, this program wants %u: they come "
        "from different builds",
        (int)GP_PLUGIN_VERSION, (unsigned)host->version);
  if (host->ops != gp_rows_version())
    return gp_gpu_fail(GP_EUNSUPPORTED, "libgpipe_cuda.so was built with other ops or structs than "
                                        "this program: they come from different builds");
  widen_queues();
  *out = &api;
  return GP_OK;
}
