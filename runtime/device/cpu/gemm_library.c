/* device/cpu/gemm_library.c - loading oneDNN and calling dnnl_sgemm.
 *
 * Five traps are handled here and nowhere else:
 *   - libgomp reads OMP_WAIT_POLICY when it is loaded, and its spinning waits would take cores from
 *     the other devices;
 *   - a library's own threads change the bits of a sum, and their number is a setting of each
 *     calling thread: every thread sets it to one before its first product;
 *   - loading may change the floating-point mode of the loading thread;
 *   - the kernels use the stack pointer as a plain register: the frame of a signal handler would
 *     lie in the middle of their workspace, on the heap;
 *   - while the library starts and generates its kernels it allocates with operator new, whose
 *     failure would end the process: so all kernels are generated at once, with memory set aside.
 *     After that a product allocates one workspace and reports when it cannot. */
#include "device/cpu/gemm_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "device/cpu/headroom.h"
#include "gpipe/device.h"

/* As in oneapi/dnnl/dnnl.h of 2.x and 3.x; row-major, arguments by value. */
typedef int sgemm_function(char transa, char transb, int64_t m, int64_t n, int64_t k, float alpha,
                           const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                           float *c, int64_t ldc);

/* dnnl_version_t of 2.x and 3.x; the fields that follow it in newer versions are not read. */
typedef struct version {
  int major, minor, patch;
  const char *hash;
  unsigned cpu_runtime; /* one of the runtimes below */
} version;

enum { RUNTIME_SEQUENTIAL = 1, RUNTIME_THREADPOOL = 8 }; /* both run on the calling thread */
enum { OUT_OF_MEMORY = 1 };                              /* dnnl_out_of_memory of 2.x and 3.x */

/* Bytes of address space: loading takes 45 MB, all kernels 18 MB more (oneDNN 2.6.3). */
enum { LOADING = 80 << 20, STARTING = 32 << 20 };
enum { FIRST_CALLS = 64 << 10 }; /* bytes; libgomp and the loader keep far less per thread */

/* Written under the lock before `progress` says so, read only afterwards. */
static struct {
  sgemm_function *sgemm;
  void (*set_threads)(int); /* NULL where the library has no threads */
  char name[32];            /* "" if there is no library; `why` then says why */
  char why[256];
} library;

/* ABSENT: use our own kernel. LOADED: its kernels are not generated yet. */
typedef enum state { UNTRIED, ABSENT, LOADED, READY } state;

static _Atomic(state) progress = UNTRIED;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void explain(const char *why) { snprintf(library.why, sizeof library.why, "%s", why); }

/* Newest first; both major versions have the same dnnl_sgemm. */
static void *open_library(void) {
  static const char *const names[] = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (handle) return handle;
    const char *reason = dlerror(); /* of the last name: the others are just newer or older */
    explain(reason ? reason : "the loader gave no reason");
  }
  return NULL;
}

/* Load the library with a libgomp that does not spin, then restore the environment, because the
 * script may start other programs. */
static void *open_quietly(void) {
  bool ours = getenv("OMP_WAIT_POLICY") == NULL && setenv("OMP_WAIT_POLICY", "passive", 1) == 0;
  void *handle = open_library();
  if (ours) unsetenv("OMP_WAIT_POLICY");
  gp_float_mode_reset();
  return handle;
}

/* dlsym returns an object pointer; POSIX lets it hold a function's address. */
static void find_symbol(void *handle, const char *name, void *function) {
  void *address = dlsym(handle, name);
  memcpy(function, &address, sizeof address);
}

/* Each path through this function either sets library.sgemm or writes to library.why what was
 * missing. */
static void open_and_check(void) {
  void *handle = open_quietly();
  if (!handle) return;
  sgemm_function *sgemm;
  const version *(*get_version)(void);
  find_symbol(handle, "dnnl_sgemm", &sgemm);
  find_symbol(handle, "dnnl_version", &get_version);
  find_symbol(handle, "omp_set_num_threads", &library.set_threads);
  if (!sgemm || !get_version) {
    explain("the library lacks dnnl_sgemm or dnnl_version");
    return;
  }
  const version *v = get_version();
  bool threads = v->cpu_runtime != RUNTIME_SEQUENTIAL && v->cpu_runtime != RUNTIME_THREADPOOL;
  if (threads && !library.set_threads) {
    explain("this build of oneDNN cannot be held to one thread per call");
    return;
  }
  library.sgemm = sgemm;
  explain(""); /* the failed attempts with other names do not matter */
  snprintf(library.name, sizeof library.name, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

/* ---- calling --------------------------------------------------------------------------------- */

/* Block signals on the script's thread, whoever handles them (the program, or a host that loaded
 * gpipe.so). Signals that a fault of this very thread raises stay open: if they are blocked, they
 * kill the process at once. */
static void hold_signals(sigset_t *before) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
  sigset_t held;
  sigfillset(&held);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&held, faults[i]);
  pthread_sigmask(SIG_BLOCK, &held, before);
}

static _Thread_local struct {
  int depth;
  sigset_t before;
} held;

void gp_gemm_hold(void) {
  if (!gp_thread_is_ours() && held.depth++ == 0) hold_signals(&held.before);
}

void gp_gemm_release(void) {
  if (!gp_thread_is_ours() && --held.depth == 0) pthread_sigmask(SIG_SETMASK, &held.before, NULL);
}

static int multiply(const gp_gemm *g, const float *a, const float *b, float *c) {
  gp_gemm_hold();
  int status =
      library.sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k,
                    (float)g->alpha, a, g->lda, b, g->ldb, (float)g->beta, c, g->ldc);
  gp_gemm_release();
  return status;
}

/* ---- starting -------------------------------------------------------------------------------- */

static gp_status no_memory(void) {
  return gp_fail_prefix(GP_ENOMEM, "gemm: cannot start oneDNN (GPIPE_GEMM=plain does without)");
}

/* The caller holds the lock. If memory is short, the state stays as it is, so that a later call
 * tries again. */
static gp_status load(void) {
  const char *wish = getenv("GPIPE_GEMM");
  if (progress != UNTRIED) return GP_OK;
  if (wish && strcmp(wish, "plain") == 0) {
    explain("GPIPE_GEMM=plain asks for the built-in kernel");
  } else {
    if (gp_headroom_begin(LOADING) != GP_OK) return no_memory();
    open_and_check();
    gp_headroom_end();
  }
  progress = library.sgemm ? LOADED : ABSENT;
  return GP_OK;
}

/* Set the calling thread's number of threads, which is a setting of each thread. The first call
 * allocates, and libgomp ends the process if it cannot: so look for memory first. */
static gp_status hold_to_one_thread(void) {
  void *probe = malloc(FIRST_CALLS);
  if (!probe) {
    gp_fail(GP_ENOMEM, "out of memory: %d bytes", FIRST_CALLS);
    return no_memory();
  }
  free(probe);
  if (library.set_threads) library.set_threads(1);
  return GP_OK;
}

/* Run one product of each kind that the library generates separate kernels for: transpositions,
 * vectors, small and large matrices, beta 0 and not 0. */
static void generate_kernels(void) {
  enum { SIDE = 64 };
  static const int sizes[][3] = {{8, 8, 8}, {1, 8, 8}, {8, 1, 8}, {4, 16, 2}, {SIDE, SIDE, SIDE}};
  static float zeros[3][SIDE * SIDE];
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int kind = 0; kind < 8; kind++) {
      gp_gemm g = {.transpose_a = kind & 1,
                   .transpose_b = kind & 2,
                   .beta = kind & 4 ? 1 : 0,
                   .m = sizes[i][0],
                   .n = sizes[i][1],
                   .k = sizes[i][2],
                   .lda = SIDE,
                   .ldb = SIDE,
                   .ldc = SIDE,
                   .alpha = 1};
      multiply(&g, zeros[0], zeros[1], zeros[2]);
    }
}

/* The caller holds the lock. */
static gp_status start(void) {
  GP_TRY(load());
  if (progress != LOADED) return GP_OK;
  if (gp_headroom_begin(STARTING) != GP_OK) return no_memory();
  gp_status status = hold_to_one_thread();
  if (status == GP_OK) {
    generate_kernels();
    progress = READY;
  }
  gp_headroom_end();
  return status;
}

/* ---- what gemm.c asks ----------------------------------------------------------------------- */

/* Return the library's name, "" if there is none or if memory to load it is lacking. */
const char *gp_gemm_library(const char **why) {
  pthread_mutex_lock(&lock);
  gp_status status = load();
  pthread_mutex_unlock(&lock);
  if (why) *why = status == GP_OK ? library.why : "there is no memory to load it";
  return library.name;
}

gp_status gp_gemm_library_prepare(bool *usable) {
  static _Thread_local bool prepared;
  if (!prepared) {
    pthread_mutex_lock(&lock);
    gp_status status = start();
    pthread_mutex_unlock(&lock);
    if (status == GP_OK && progress == READY) status = hold_to_one_thread();
    if (status != GP_OK) return status;
    prepared = true;
  }
  *usable = progress == READY;
  return GP_OK;
}

gp_status gp_gemm_library_run(const gp_gemm *g, const float *a, const float *b, float *c) {
  int status = multiply(g, a, b, c);
  if (status == 0) return GP_OK;
  if (status == OUT_OF_MEMORY)
    return gp_fail(GP_ENOMEM, "gemm: no memory for the workspace of a product of %lldx%lldx%lld",
                   (long long)g->m, (long long)g->n, (long long)g->k);
  return gp_fail(GP_EDEVICE, "gemm: %s refused a product of %lldx%lldx%lld (status %d)",
                 library.name, (long long)g->m, (long long)g->n, (long long)g->k, status);
}
