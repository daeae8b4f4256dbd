/* tests/cuda/plans/stand_in.h - a cuDNN whose calls only count, and refuse on request. */
#ifndef GP_TESTS_STAND_IN_H
#define GP_TESTS_STAND_IN_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/cuda/cudnn/library.h"

#define NAME_OF(name) CALL_##name,
typedef enum call { GP_CUDNN_FUNCTIONS(NAME_OF) CALLS } call;

#define TEXT_OF(name) #name,
static const char *const call_names[] = {GP_CUDNN_FUNCTIONS(TEXT_OF)};

enum { ENGINES = 16 };

static struct {
  atomic_int count[CALLS];
  atomic_int live;    /* descriptors that exist */
  atomic_int handles; /* handles that are open */
  call refused;
  int nth;  /* which call is refused, from 1; 0: none */
  int last; /* and all later ones up to this; 0: only that one */
  bool lost, missing;
  int biases;          /* biases written by a kernel of ours */
  int notes;           /* notes of engines that gave way */
  int engines;         /* of each of the two lists; 0: one */
  int ran;             /* the number of the engine that ran last */
  int hidden;          /* this engine refuses to run, whatever else is asked for; 0: none */
  int timed;           /* how often the clock was read */
  float time[ENGINES]; /* milliseconds of each engine */
  bool no_memory;
  atomic_int blocks; /* of memory, and events */
} stand_in;

/* Configurations, engines and their plans have the number of the engine; heuristics that of the
 * first engine of their list. */
typedef struct descriptor {
  int number;
} descriptor;

static cudnnStatus_t come(call c) {
  const int n = ++stand_in.count[c];
  const int last = stand_in.last > stand_in.nth ? stand_in.last : stand_in.nth;
  const bool refused = c == stand_in.refused && stand_in.nth && n >= stand_in.nth && n <= last;
  return refused ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}

static size_t get_version(void) { return 91900; }
static const char *error_string(cudnnStatus_t status) { return status ? "refused" : "fine"; }
static void last_error(char *text, size_t size) { snprintf(text, size, "on request\nand more"); }

static cudnnStatus_t create(cudnnHandle_t *handle) {
  const cudnnStatus_t s = come(CALL_cudnnCreate);
  if (s) return s;
  *handle = malloc(1), stand_in.handles++;
  return s;
}

static cudnnStatus_t destroy(cudnnHandle_t handle) {
  free(handle), stand_in.handles--;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream) {
  (void)handle, (void)stream;
  return come(CALL_cudnnSetStream);
}

static cudnnStatus_t make_descriptor(cudnnBackendDescriptorType_t type,
                                     cudnnBackendDescriptor_t *made) {
  (void)type;
  const cudnnStatus_t s = come(CALL_cudnnBackendCreateDescriptor);
  if (s) return s;
  *made = calloc(1, sizeof(descriptor)), stand_in.live++;
  return s;
}

static cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t d) {
  free(d), stand_in.live--;
  return CUDNN_STATUS_SUCCESS;
}

static int engines_of_list(void) { return stand_in.engines ? stand_in.engines : 1; }

static cudnnStatus_t set_attribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t count,
                                   const void *value) {
  (void)type, (void)count;
  descriptor *set = (descriptor *)d;
  if (name == CUDNN_ATTR_ENGINEHEUR_MODE)
    set->number =
        *(const cudnnBackendHeurMode_t *)value == CUDNN_HEUR_MODE_A ? 0 : engines_of_list();
  if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
    set->number = (*(descriptor *const *)value)->number;
  return come(CALL_cudnnBackendSetAttribute);
}

/* The engines have no notes, and need 64 bytes each; there are two lists. */
static cudnnStatus_t get_attribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t most, int64_t *count,
                                   void *value) {
  (void)type, (void)most;
  const descriptor *asked = (const descriptor *)d;
  *count = name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ? 0 : 1;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *count = engines_of_list();
    for (int i = 0; i < *count; i++) (*((descriptor **)value + i))->number = asked->number + i;
  }
  if (name == CUDNN_ATTR_ENGINECFG_ENGINE) (*(descriptor **)value)->number = asked->number;
  if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) *(int64_t *)value = 100 + asked->number;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) *(int64_t *)value = 64;
  return come(CALL_cudnnBackendGetAttribute);
}

static cudnnStatus_t finalize(cudnnBackendDescriptor_t d) {
  (void)d;
  return come(CALL_cudnnBackendFinalize);
}

static cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                             cudnnBackendDescriptor_t pack) {
  (void)handle, (void)pack;
  stand_in.ran = ((const descriptor *)plan)->number;
  const cudnnStatus_t s = come(CALL_cudnnBackendExecute);
  return stand_in.hidden && stand_in.ran == stand_in.hidden ? CUDNN_STATUS_NOT_SUPPORTED : s;
}

/* This function replaces that of library.c. */
const gp_cudnn_library *gp_cudnn_library_get(const char **why) {
  static const gp_cudnn_library library = {.cudnnGetVersion = get_version,
                                           .cudnnGetErrorString = error_string,
                                           .cudnnGetLastErrorString = last_error,
                                           .cudnnCreate = create,
                                           .cudnnDestroy = destroy,
                                           .cudnnSetStream = set_stream,
                                           .cudnnBackendCreateDescriptor = make_descriptor,
                                           .cudnnBackendDestroyDescriptor = destroy_descriptor,
                                           .cudnnBackendSetAttribute = set_attribute,
                                           .cudnnBackendGetAttribute = get_attribute,
                                           .cudnnBackendFinalize = finalize,
                                           .cudnnBackendExecute = execute};
  *why = "it is not there";
  return stand_in.missing ? NULL : &library;
}

#endif
