/* tests/cuda/overlap_test.c - which launches may begin while the kernel before them ends
 * (GPIPE_GPU_PDL, runtime/device/cuda/kernel/overlap.cu).
 *
 * The stand-in for CUDA's runtime counts such launches, and refuses one that does not follow a
 * kernel. On a GPU only the sums are checked. */
#include <dlfcn.h>
#include <stdlib.h>

#include "gpu_memory.h"

enum { N = 1000 };

static float *sum, *one; /* in memory of the GPU */
static float adds;       /* additions made so far */

/* Returns how many launches were allowed to begin early; 0 where no stand-in counts. */
static long count_early(void) {
  void *plugin = dlopen(getenv("GPIPE_CUDA_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
  void *symbol = plugin ? dlsym(plugin, "gp_host_early_launches") : NULL;
  long (*count)(void);
  if (plugin) dlclose(plugin);
  if (!symbol) return 0;
  memcpy(&count, &symbol, sizeof count);
  return count();
}

static bool is_counted(void) {
  const char *plugin = getenv("GPIPE_CUDA_PLUGIN");
  return plugin && strstr(plugin, "cuda_host");
}

static void add_once(void) { CHECK_STATUS(api->add(gpu, GP_F32, N, sum, one), GP_OK); }

/* Makes `count` additions, of which `early` may begin early. */
static void check_adds(int count, int early) {
  const long before = count_early();
  for (int i = 0; i < count; i++) add_once();
  if (is_counted()) CHECK(count_early() - before == early);
  adds += (float)count;
}

static void check_sum(void) {
  float got[N];
  gpu_copy(got, sum, sizeof got);
  for (int i = 0; i < N; i++) CHECK(got[i] == adds);
}

static bool open_with(const char *wish) {
  setenv("GPIPE_GPU_PDL", wish, 1);
  if (!open_gpu()) return false;
  gp_gpu_spec spec = {.parts = 1};
  CHECK_STATUS(api->open(&spec, &gpu), GP_OK);
  float ones[N];
  for (int i = 0; i < N; i++) ones[i] = 1;
  sum = gpu_alloc(sizeof ones), one = gpu_alloc(sizeof ones);
  CHECK_STATUS(api->fill(gpu, GP_STREAM_COMPUTE, sum, 0, sizeof ones), GP_OK);
  gpu_copy(one, ones, sizeof ones);
  adds = 0;
  return true;
}

static void close_it(void) {
  api->free(gpu, sum), api->free(gpu, one);
  api->close(gpu);
}

TEST(nothing_unless_asked) {
  if (!open_with("")) return;
  check_adds(3, 0);
  check_sum();
  close_it();
}

TEST(after_kernels) {
  if (!open_with("own")) return;
  gp_gpu_event *event;
  CHECK_STATUS(api->event_new(gpu, false, &event), GP_OK);
  check_adds(3, 2);
  CHECK_STATUS(api->record(gpu, GP_STREAM_COMPUTE, event), GP_OK);
  check_adds(2, 1);
  CHECK_STATUS(api->wait(gpu, GP_STREAM_COMPUTE, event), GP_OK);
  check_adds(2, 1);
  CHECK_STATUS(api->record(gpu, GP_STREAM_SEND, event), GP_OK); /* an event of another stream */
  check_adds(1, 1);
  check_sum(); /* the sum is copied */
  check_adds(2, 1);
  CHECK_STATUS(api->sync(gpu, GP_STREAM_COMPUTE), GP_OK);
  api->event_free(event);
  close_it();
}

TEST(captured_work) {
  if (!open_with("1")) return;
  gp_gpu_graph *graph = NULL;
  check_adds(2, 1);
  CHECK_STATUS(api->capture_begin(gpu), GP_OK);
  check_adds(3, 2);
  CHECK_STATUS(api->capture_end(gpu, &graph), GP_OK);
  adds -= 3; /* these were captured, not run */
  check_adds(2, 1);
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS(api->launch(gpu, graph), GP_OK);
    adds += 3;
    check_adds(2, 1);
  }
  check_sum();
  api->graph_free(graph);
  close_it();
}

TEST_MAIN(nothing_unless_asked, after_kernels, captured_work)
