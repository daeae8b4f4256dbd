/* schedule/simulate/noise.c - times that vary: a factor for each action, value and device, and the
 * ends of many runs.
 *
 * The factors are log-normal because times are positive and their tails are long on the slow side;
 * with mean 1, so that the costs stay the means. A factor is a function of (seed, draw, action), so
 * it does not depend on the order in which devices are run, and two schedules of one size meet the
 * same luck.
 */
#include <math.h>

#include "base/random/normal.h"
#include "base/random/philox.h"
#include "schedule/simulate/simulate.h"

enum { OF_ACTIONS = 0, OF_DEVICES = 1 }; /* the third word of the counter */

static const double STEP = 1.0 / 4294967296.0; /* of a uniform from 32 bits */

/* Two uniforms in [0, 1) for an action or a device of this run. */
static void draw(const gp_noise *noise, uint32_t number, uint32_t of, double uniform[2]) {
  const uint32_t counter[4] = {number, noise->draw, of, 0};
  const uint32_t key[2] = {(uint32_t)noise->seed, (uint32_t)(noise->seed >> 32)};
  uint32_t words[4];
  gp_philox(counter, key, words);
  for (int i = 0; i < 2; i++) uniform[i] = STEP * words[i];
}

/* A log-normal factor with mean 1 and this standard deviation, from a standard normal. */
static double factor_of(double deviation, double normal) {
  const double variance = log1p(deviation * deviation);
  return exp(sqrt(variance) * normal - 0.5 * variance);
}

static bool straggles(const gp_noise *noise, int32_t device) {
  double uniform[2];
  if (noise->stragglers <= 0) return false;
  draw(noise, (uint32_t)device, OF_DEVICES, uniform);
  return uniform[0] < noise->stragglers;
}

double gp_sim_action_factor(const gp_sim *run, int32_t device, int32_t action) {
  const gp_noise *noise = run->costs->noise;
  double factor = noise->slow ? noise->slow[device] : 1, uniform[2], own, other;
  if (straggles(noise, device)) factor *= noise->slowdown;
  if (noise->action <= 0) return factor;
  draw(noise, (uint32_t)action, OF_ACTIONS, uniform);
  gp_normal_pair(uniform[0], uniform[1], &own, &other);
  return factor * factor_of(noise->action, own);
}

/* The value's factor is the second normal of the pair whose first one is the action's. */
double gp_sim_travel_factor(const gp_sim *run, int32_t action) {
  const gp_noise *noise = run->costs->noise;
  double uniform[2], other, own;
  if (noise->travel <= 0) return 1;
  draw(noise, (uint32_t)action, OF_ACTIONS, uniform);
  gp_normal_pair(uniform[0], uniform[1], &other, &own);
  return factor_of(noise->travel, own);
}

/* ---- many runs ------------------------------------------------------------------------------- */

/* The end of a device's last action; 0 if all of its cells are empty. */
static double end_of(const gp_sim *run, int32_t device) {
  const gp_schedule *s = run->schedule;
  int32_t a = s->first[device + 1] - 1;
  while (a >= s->first[device] && s->actions[a].op == GP_ACT_IDLE) a--;
  return a < s->first[device] ? 0 : run->result->finish[a];
}

static double last_end(const gp_sim *run, const double *tails) {
  double last = 0;
  for (int32_t d = 0; d < run->schedule->device_count; d++) {
    double end = end_of(run, d) + (tails ? tails[d] : 0);
    if (end > last) last = end;
  }
  return last;
}

static gp_status sample_once(const gp_edges *edges, const gp_costs *costs, const double *tails,
                             double *end) {
  gp_sim run = {.schedule = edges->s, .edges = edges, .costs = costs};
  gp_status status = gp_sim_run(&run);
  if (!status) status = gp_sim_check_ended(&run);
  if (!status) *end = last_end(&run, tails);
  gp_sim_close(&run);
  return status;
}

gp_status gp_simulation_sample(const gp_schedule *schedule, const gp_costs *costs,
                               const double *tails, int count, double *ends) {
  gp_edges edges = {.s = schedule};
  gp_noise noise = {0};
  gp_costs each = *costs;
  GP_TRY(gp_sim_check(schedule, costs));
  if (costs->noise) {
    noise = *costs->noise;
    each.noise = &noise;
  }
  gp_status status = gp_edges_enter_all(&edges);
  for (int i = 0; !status && i < count; i++, noise.draw++)
    status = sample_once(&edges, &each, tails, &ends[i]);
  gp_edges_free(&edges);
  return status;
}
