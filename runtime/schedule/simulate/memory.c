/* schedule/simulate/memory.c - what the devices of a schedule hold: activations, bytes, versions of
 * the weights.
 *
 * Only the order of a device's own list counts here, not the times. An activation is held from F
 * (from R, if there is one) to the last backward action of its stage and micro-batch; its head is
 * given back by I. Joined actions hold everything that any of them needs.
 */
#include "base/memory.h"
#include "schedule/access/held.h"
#include "schedule/access/tally.h"
#include "schedule/simulate/simulate.h"

static double bytes_of(const double *list, int32_t stage) { return list ? list[stage] : 0; }

/* ---- activations --------------------------------------------------------------------------- */

/* One device while its list is followed. */
typedef struct held {
  const gp_costs *costs;
  const int32_t *stages; /* of the device */
  gp_device_load *load;
  int32_t live;
  double bytes;
} held;

/* The bytes of an activation's head, which W does not read. */
static double head_bytes(const gp_costs *costs, int32_t stage) {
  double all = bytes_of(costs->activation, stage);
  if (!costs->after_input || costs->after_input[stage] > all) return 0;
  return all - costs->after_input[stage];
}

static bool has_activation(gp_tally_lives lives) { return lives.classes & GP_TALLY_ACTIVATION; }

static double bytes_kept(const held *h, gp_tally_lives lives) {
  const int32_t stage = h->stages[lives.place];
  const double all = bytes_of(h->costs->activation, stage), head = head_bytes(h->costs, stage);
  double bytes = 0;
  if (has_activation(lives)) bytes += all - head;
  if (lives.classes & GP_TALLY_HEAD) bytes += head;
  return bytes;
}

static void born(void *context, gp_tally_lives lives) {
  held *h = context;
  h->live += has_activation(lives);
  h->bytes += bytes_kept(h, lives);
  if (h->live > h->load->peak_live) h->load->peak_live = h->live;
  if (h->bytes > h->load->peak_bytes) h->load->peak_bytes = h->bytes;
}

static void dead(void *context, gp_tally_lives lives) {
  held *h = context;
  h->live -= has_activation(lives);
  h->bytes -= bytes_kept(h, lives);
}

static gp_status follow(const gp_sim *r, int32_t device) {
  gp_device_load *load = &r->result->loads[device];
  held h = {.costs = r->costs,
            .stages = gp_schedule_stages(r->schedule, device).stages,
            .load = load,
            .bytes = load->peak_bytes};
  const uint8_t classes = r->costs->after_input ? GP_TALLY_KEPT : GP_TALLY_ACTIVATION;
  return gp_schedule_tally(r->schedule, device, &(gp_tally_watch){&h, classes, born, dead});
}

/* ---- versions of the weights --------------------------------------------------------------- */

/* Add what stays on the device: each stage has room for as many versions as it ever holds. */
static gp_status reside(const gp_sim *r, int32_t device, int32_t *most) {
  const gp_schedule *s = r->schedule;
  gp_device_load *load = &r->result->loads[device];
  int32_t over;
  load->versions = 1;
  if (s->batch > 0) GP_TRY(gp_held_versions(s, device, INT32_MAX, most, &over));
  const gp_stage_list own_stages = gp_schedule_stages(s, device);
  for (int32_t i = 0; i < own_stages.count; i++) {
    const int32_t stage = own_stages.stages[i];
    int32_t own = s->batch > 0 ? most[stage] : 1;
    if (own > load->versions) load->versions = own;
    load->peak_bytes += bytes_of(r->costs->resident, stage);
    load->peak_bytes += (own - 1) * bytes_of(r->costs->version, stage);
  }
  return GP_OK;
}

gp_status gp_sim_memory(const gp_sim *run) {
  const gp_schedule *s = run->schedule;
  int32_t *most;
  GP_TRY(gp_alloc_array((size_t)s->stage_count, sizeof *most, (void **)&most));
  gp_status status = GP_OK;
  for (int32_t d = 0; !status && d < s->device_count; d++) {
    status = reside(run, d, most);
    if (!status) status = follow(run, d);
  }
  gp_free(most);
  return status;
}
