/* device/gpus.c - see gpus.h. */
#include "device/gpus.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/tensor.h"
#include "device/room.h"
#include "device/rows_version.h"

enum { MOST_GPUS = 64 };

/* A GPU as the script's thread uses it. */
typedef struct gpu_space {
  gp_space space;
  gp_gpu *gpu;
  char *bounce; /* pinned: small copies pass through it, so that a step copies no pageable memory */
  pthread_mutex_t bouncing; /* the script reads through it, and so do workers of CPU devices */
  gp_room room;             /* guarded by the lock of all GPUs */
  void *scratch;
  size_t scratch_bytes;
  int64_t blocks;
  size_t live, peak;
} gpu_space;

static struct {
  pthread_mutex_t lock; /* guards what follows */
  bool tried;
  const gp_gpu_api *api; /* NULL: `why` says why not */
  char why[400];
  gpu_space *spaces[MOST_GPUS];
} gpus = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the plugin ---------------------------------------------------------------------------- */

static gp_status fail(gp_status status, const char *text) { return gp_fail_text(status, text); }

/* The folder of the running code: of the program, or of the module that a stock Lua has loaded. */
static void folder_of_code(char *folder, size_t size) {
  Dl_info info = {0};
  *folder = 0;
  if (!dladdr((const void *)(uintptr_t)fail, &info) || !info.dli_fname) return;
  char *real = realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", NULL);
  char *slash = real ? strrchr(real, '/') : NULL;
  if (slash) snprintf(folder, size, "%.*s", (int)(slash - real), real);
  free(real);
}

/* Look for the driver before loading the plugin, which takes a tenth of a second: machines without
 * a driver need not wait for it. */
static bool has_driver(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver) dlclose(driver);
  return driver != NULL;
}

/* Find the file that GPIPE_CUDA_PLUGIN names, or else the first place that has one; false if there
 * is none. */
static bool find_file(char *path, size_t size) {
  static const char *const places[] = {"%s/libgpipe_cuda.so", "%s/../lib/gpipe/libgpipe_cuda.so"};
  const char *named = getenv("GPIPE_CUDA_PLUGIN");
  char folder[300];
  if (named && *named) return snprintf(path, size, "%s", named) < (int)size;
  folder_of_code(folder, sizeof folder);
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    snprintf(path, size, places[i], folder);
    FILE *file = fopen(path, "rb");
    if (file) return fclose(file), true;
  }
  return false;
}

static bool is_named(void) {
  const char *named = getenv("GPIPE_CUDA_PLUGIN");
  return named && *named;
}

static const char no_driver[] = "no NVIDIA driver is installed (libcuda.so.1 is not there)";
static const char neither[] =
    "no NVIDIA driver is installed (libcuda.so.1 is not there), and this build has no CUDA part "
    "(scripts/build --cuda makes it)";
static const char no_plugin[] =
    "this build has no CUDA part (libgpipe_cuda.so is not beside the program; scripts/build --cuda "
    "makes it)";

/* A plugin that the environment names may be one for tests, which needs no driver. */
gp_status gp_gpus_find(char *path, size_t size) {
  if (!find_file(path, size)) return *path = 0, gp_fail_text(GP_EDEVICE, no_plugin);
  return is_named() || has_driver() ? GP_OK : gp_fail_text(GP_EDEVICE, no_driver);
}

static void *open_file(char *why, size_t size) {
  char path[400];
  bool usable = is_named() || has_driver(), found = find_file(path, sizeof path);
  if (!usable) return snprintf(why, size, "%s", found ? no_driver : neither), NULL;
  if (!found) return snprintf(why, size, "%s", no_plugin), NULL;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) snprintf(why, size, "%s%s", is_named() ? "GPIPE_CUDA_PLUGIN: " : "", dlerror());
  return handle;
}

/* Never closed: its libraries cannot be unloaded safely. */
static void open_plugin(void) {
  const gp_plugin_host host = {GP_PLUGIN_VERSION, gp_rows_version(), fail};
  void *handle = open_file(gpus.why, sizeof gpus.why);
  if (!handle) return;
  void *symbol = dlsym(handle, GP_PLUGIN_ENTRY);
  gp_plugin_open entry;
  memcpy(&entry, &symbol, sizeof entry);
  if (!symbol)
    snprintf(gpus.why, sizeof gpus.why, "the plugin has no " GP_PLUGIN_ENTRY);
  else if (entry(&host, &gpus.api))
    snprintf(gpus.why, sizeof gpus.why, "%s", gp_error_text());
}

/* Look for the plugin once: a machine gets no driver while a process runs. */
gp_status gp_gpus_api(const gp_gpu_api **api) {
  pthread_mutex_lock(&gpus.lock);
  if (!gpus.tried) open_plugin();
  gpus.tried = true;
  *api = gpus.api;
  pthread_mutex_unlock(&gpus.lock);
  return *api ? GP_OK : gp_fail_text(GP_EDEVICE, gpus.why);
}

bool gp_gpus_known(void) {
  pthread_mutex_lock(&gpus.lock);
  const bool known = gpus.tried;
  pthread_mutex_unlock(&gpus.lock);
  return known;
}

gp_status gp_gpus_count(int *count) {
  const gp_gpu_api *api;
  GP_TRY(gp_gpus_api(&api));
  return api->count(count);
}

bool gp_gpus_library(int i, gp_gpu_library *library) {
  const gp_gpu_api *api;
  return !gp_gpus_api(&api) && api->library(i, library);
}

gp_status gp_gpu_describe(int ordinal, gp_gpu_info *info, gp_gpu_use *use) {
  const gp_gpu_api *api;
  GP_TRY(gp_gpus_api(&api));
  GP_TRY(api->describe(ordinal, info));
  *use = (gp_gpu_use){0};
  if (ordinal < MOST_GPUS && gpus.spaces[ordinal])
    *use = (gp_gpu_use){.live = gpus.spaces[ordinal]->live, .peak = gpus.spaces[ordinal]->peak};
  return GP_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Check that the GPU exists; the error says how many there are, because positions count from 0. */
static gp_status check_ordinal(int ordinal) {
  int count;
  GP_TRY(gp_gpus_count(&count));
  if (ordinal < count && ordinal < MOST_GPUS) return GP_OK;
  return gp_fail(GP_ERANGE, "there is no device 'cuda:%d', the machine has %d GPU%s", ordinal,
                 count, count == 1 ? "" : "s");
}

gp_status gp_device_check(const char *text) {
  gp_device_name name;
  GP_TRY(gp_device_parse(text, &name));
  return name.gpu ? check_ordinal(name.spec.ordinal) : GP_OK;
}

/* ---- spaces --------------------------------------------------------------------------------- */

static gpu_space *of(gp_space *space) { return (gpu_space *)space; }
gp_gpu *gp_space_gpu(gp_space *space) { return of(space)->gpu; }

/* Count all memory that the core allocates on this GPU, for tensors and everything else: gp.memory
 * reports it. */
static void count(gpu_space *h, int64_t blocks, int64_t bytes) {
  pthread_mutex_lock(&gpus.lock);
  h->blocks += blocks;
  h->live += (size_t)bytes;
  if (h->live > h->peak) h->peak = h->live;
  pthread_mutex_unlock(&gpus.lock);
}

/* Waits, because the new owner of the memory may use it on another stream. */
static gp_status space_zero(gp_space *space, void *to, size_t bytes) {
  GP_TRY(gpus.api->fill(gp_space_gpu(space), GP_STREAM_COMPUTE, to, 0, bytes));
  return gpus.api->sync(gp_space_gpu(space), GP_STREAM_COMPUTE);
}

/* Give all kept memory back to the driver; false: there was none. */
static bool empty_room(gpu_space *h) {
  void *memory;
  bool any = false;
  do {
    pthread_mutex_lock(&gpus.lock);
    memory = gp_room_empty(&h->room);
    pthread_mutex_unlock(&gpus.lock);
    if (memory) gpus.api->free(h->gpu, memory), any = true;
  } while (memory);
  return any;
}

/* Allocate from the driver; where that fails, once more without the kept memory. */
static gp_status allocate(gpu_space *h, size_t bytes, void **memory) {
  gp_status status = gpus.api->alloc(h->gpu, bytes, memory);
  if (status == GP_ENOMEM && empty_room(h)) status = gpus.api->alloc(h->gpu, bytes, memory);
  return status;
}

/* Free at once: the driver waits for work that still uses the memory. */
static void space_free(gp_space *space, void *memory, size_t bytes) {
  gpus.api->free(gp_space_gpu(space), memory);
  count(of(space), -1, -(int64_t)bytes);
}

/* A tensor without elements gets a byte, so that it has a unique address. */
static gp_status space_alloc(gp_space *space, size_t bytes, void **memory) {
  void *made;
  GP_TRY(allocate(of(space), bytes ? bytes : 1, &made));
  count(of(space), 1, (int64_t)bytes);
  gp_status status = space_zero(space, made, bytes);
  if (status) return space_free(space, made, bytes), status;
  *memory = made;
  return GP_OK;
}

/* Kept memory may still be written by work of the compute stream, behind which its next use is
 * enqueued. A step that reads it on other streams retains its tensors. */
static gp_status space_room(gp_space *space, size_t bytes, void **memory) {
  gpu_space *h = of(space);
  pthread_mutex_lock(&gpus.lock);
  void *kept = gp_room_take(&h->room, bytes);
  pthread_mutex_unlock(&gpus.lock);
  if (!kept) GP_TRY(allocate(h, gp_room_size(bytes), &kept));
  count(h, 1, (int64_t)bytes);
  *memory = kept;
  return GP_OK;
}

static void space_leave(gp_space *space, void *memory, size_t bytes) {
  gpu_space *h = of(space);
  count(h, -1, -(int64_t)bytes);
  pthread_mutex_lock(&gpus.lock);
  const bool kept = gp_room_keep(&h->room, memory, bytes);
  pthread_mutex_unlock(&gpus.lock);
  if (!kept) gpus.api->free(h->gpu, memory);
}

enum { BOUNCE = 1 << 16 };

/* Copy in the order of the compute stream, after all that was enqueued there, and wait. */
static gp_status copy_and_wait(gp_space *space, void *to, const void *from, size_t bytes) {
  if (!bytes) return GP_OK;
  GP_TRY(gpus.api->copy(gp_space_gpu(space), GP_STREAM_COMPUTE, to, from, bytes));
  return gpus.api->sync(gp_space_gpu(space), GP_STREAM_COMPUTE);
}

/* Small reads pass through the pinned buffer. Large ones go straight into the given memory, which
 * may be pageable; scripts make them outside steps. */
static gp_status space_read(gp_space *space, void *to, const void *from, size_t bytes) {
  gpu_space *h = of(space);
  if (bytes > BOUNCE) return copy_and_wait(space, to, from, bytes);
  pthread_mutex_lock(&h->bouncing);
  gp_status status = copy_and_wait(space, h->bounce, from, bytes);
  if (!status && bytes) memcpy(to, h->bounce, bytes);
  pthread_mutex_unlock(&h->bouncing);
  return status;
}

/* The source may be freed as soon as this returns. */
static gp_status space_write(gp_space *space, void *to, const void *from, size_t bytes) {
  gpu_space *h = of(space);
  if (bytes > BOUNCE) return copy_and_wait(space, to, from, bytes);
  pthread_mutex_lock(&h->bouncing);
  if (bytes) memcpy(h->bounce, from, bytes);
  gp_status status = copy_and_wait(space, to, h->bounce, bytes);
  pthread_mutex_unlock(&h->bouncing);
  return status;
}

/* Keep the scratch memory until more is asked for: each user waits until its use is over. */
gp_status gp_space_scratch(gp_space *space, size_t bytes, void **scratch) {
  gpu_space *h = of(space);
  if (bytes > h->scratch_bytes) {
    void *memory;
    GP_TRY(allocate(h, bytes, &memory));
    if (h->scratch) gpus.api->free(h->gpu, h->scratch);
    count(h, 0, (int64_t)(bytes - h->scratch_bytes));
    h->scratch = memory;
    h->scratch_bytes = bytes;
  }
  *scratch = h->scratch;
  return GP_OK;
}

/* Close a space, even one whose opening stopped half-way. */
static void close_space(gpu_space *h) {
  if (h->gpu) empty_room(h);
  if (h->scratch) gpus.api->free(h->gpu, h->scratch);
  if (h->bounce) gpus.api->host_free(h->bounce);
  if (h->gpu) gpus.api->close(h->gpu);
  pthread_mutex_destroy(&h->bouncing);
  gp_free(h);
}

/* The space opens a gp_gpu for itself beside those of lanes: the script's thread does not share a
 * stream with workers. */
static gp_status open_space(int ordinal) {
  gpu_space *made;
  GP_TRY(gp_alloc(sizeof *made, (void **)&made));
  made->space = (gp_space){.alloc = space_alloc,
                           .free = space_free,
                           .room = space_room,
                           .leave = space_leave,
                           .read = space_read,
                           .write = space_write,
                           .zero = space_zero,
                           .copy = copy_and_wait};
  snprintf(made->space.name, sizeof made->space.name, "cuda:%d", ordinal);
  pthread_mutex_init(&made->bouncing, NULL);
  gp_status status = gpus.api->open(&(gp_gpu_spec){.ordinal = ordinal, .parts = 1}, &made->gpu);
  if (!status) status = gpus.api->host_alloc(BOUNCE, (void **)&made->bounce);
  if (status) return close_space(made), status;
  gpus.spaces[ordinal] = made;
  return GP_OK;
}

/* Only the script's thread makes spaces. */
gp_status gp_gpus_space(int ordinal, gp_space **space) {
  GP_TRY(check_ordinal(ordinal));
  if (!gpus.spaces[ordinal]) GP_TRY(open_space(ordinal));
  *space = &gpus.spaces[ordinal]->space;
  return GP_OK;
}

/* A space that still has blocks stays open: a tensor there is still alive. */
void gp_gpus_close(void) {
  for (int i = 0; i < MOST_GPUS; i++) {
    gpu_space *h = gpus.spaces[i];
    if (!h || h->blocks) continue;
    close_space(h);
    gpus.spaces[i] = NULL;
  }
}

/* `device` is the name that scripts use; "cpu" is the host's memory. */
gp_status gp_tensor_move(gp_tensor *tensor, const char *device, gp_tensor **moved) {
  gp_device_name name;
  gp_space *space = NULL;
  GP_TRY(gp_device_parse(device, &name));
  if (name.gpu) GP_TRY(gp_gpus_space(name.spec.ordinal, &space));
  return gp_tensor_to(tensor, space, moved);
}
