/* tests/cuda/cudart/error.c - last errors, their names, and failures on demand.
 *
 * GPIPE_TEST_CUDA_FAIL=cudaMalloc:3 lets the third call of cudaMalloc in the process fail, once;
 * cudaMalloc:3+ lets every call from the third on fail; a number behind it gives the error. Several
 * stand in a list: cudaMalloc:3,cublasLtMatmul:5+:15. GPIPE_TEST_CUDA_SLOW=cudaEventRecord:300 lets
 * every call pause for 300 microseconds, so that other threads run in between. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cudart.h"

static _Thread_local cudaError_t last = cudaSuccess;

cudaError_t gp_cudart_set(cudaError_t error) {
  if (error != cudaSuccess) last = error;
  return error;
}

cudaError_t cudaGetLastError(void) {
  cudaError_t error = last;
  last = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) { return last; }

/* ---- failures and pauses on demand ----------------------------------------------------------- */

enum { MOST = 8 };

static struct {
  char function[64];
  int code;
  bool always;      /* every call from then on fails */
  atomic_long left; /* calls until it fails */
} wanted[MOST];

static int wanted_count;

static struct {
  char function[64];
  long microseconds;
} slow;

/* Returns the error of a call for which the environment names none. */
static int usual_code(const char *function) {
  enum { NOT_SUPPORTED = 15 }; /* a status of the library of matrix products */
  if (strncmp(function, "cublas", 6) == 0) return NOT_SUPPORTED;
  const bool memory = strstr(function, "Alloc") || strstr(function, "Malloc");
  return memory ? (int)cudaErrorMemoryAllocation : (int)cudaErrorUnknown;
}

/* Parses "cudaMalloc:3+:2". */
static void read_failure(const char *text) {
  char plus = 0;
  long call = 0;
  int code = 0;
  if (sscanf(text, "%63[^:]:%ld", wanted[wanted_count].function, &call) < 2) return;
  const char *number = strchr(text, ':') + 1, *end = number + strspn(number, "0123456789");
  plus = *end;
  if (plus == '+') end++;
  if (*end == ':') code = atoi(end + 1);
  wanted[wanted_count].always = plus == '+';
  wanted[wanted_count].code = code ? code : usual_code(wanted[wanted_count].function);
  atomic_store(&wanted[wanted_count++].left, call);
}

static void read_wanted(void) {
  const char *text = getenv("GPIPE_TEST_CUDA_FAIL"), *pause = getenv("GPIPE_TEST_CUDA_SLOW");
  if (!pause || sscanf(pause, "%63[^:]:%ld", slow.function, &slow.microseconds) < 2)
    slow.microseconds = 0;
  for (; text && *text && wanted_count < MOST; text += *text == ',') {
    read_failure(text);
    text += strcspn(text, ",");
  }
}

static void rest(long microseconds) {
  struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000};
  nanosleep(&t, NULL);
}

int gp_cudart_wanted(const char *function) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, read_wanted);
  if (slow.microseconds > 0 && strcmp(slow.function, function) == 0) rest(slow.microseconds);
  for (int i = 0; i < wanted_count; i++) {
    if (strcmp(wanted[i].function, function) != 0) continue;
    const long left = atomic_fetch_sub(&wanted[i].left, 1);
    if (left == 1 || (left < 1 && wanted[i].always)) return wanted[i].code;
  }
  return 0;
}

cudaError_t gp_cudart_enter(const char *function) {
  return gp_cudart_set((cudaError_t)gp_cudart_wanted(function));
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Defined in fibers.cpp: says what a kernel did wrong. */
const char *gp_host_fault(void);

/* clang-format off */
static const struct { cudaError_t error; const char *name, *text; } names[] = {
  {cudaSuccess, "cudaSuccess", "no error"},
  {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
  {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
  {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
  {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
   "invalid configuration argument"},
  {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
   "CUDA driver version is insufficient for CUDA runtime version"},
  {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
  {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
  {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
  {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
  {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
  {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
   "too many resources requested for launch"},
  {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
   "peer access is already enabled"},
  {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
   "peer access is not supported between these two devices"},
  {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
  {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
  {cudaErrorSystemNotReady, "cudaErrorSystemNotReady", "system not yet initialized"},
  {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
   "operation not permitted when stream is capturing"},
  {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
   "operation failed due to a previous error during capture"},
  {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};
/* clang-format on */

static const char *find(cudaError_t error, bool text) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (names[i].error == error) return text ? names[i].text : names[i].name;
  }
  return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error) { return find(error, false); }

/* The text of a launch's error says what the kernel did wrong, which is more than CUDA says. */
const char *cudaGetErrorString(cudaError_t error) {
  const bool launch = error == cudaErrorUnknown || error == cudaErrorInvalidConfiguration;
  return launch && *gp_host_fault() ? gp_host_fault() : find(error, true);
}
