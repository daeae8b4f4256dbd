/* gpipe/device.h - the GPUs and the libraries of this machine. See gpipe.h for what holds
 * everywhere. */
#ifndef GP_PUBLIC_DEVICE_H
#define GP_PUBLIC_DEVICE_H

#include "gpipe/status.h"

/* A device as the caller asks a pipeline for it. */
typedef struct gp_device_spec {
  const char *name; /* "cpu:0" */
  int threads;      /* of its team, 1..64 */
  int rank;         /* of the process that drives it; 0 where there is one */
} gp_device_spec;

/* Facts about a GPU, or about the part of one that was opened. */
typedef struct gp_gpu_info {
  char name[96];
  char id[64];      /* tells it from every other GPU, in any process */
  int major, minor; /* compute capability */
  int sm_count;     /* of the whole GPU, or of the part that was opened */
  size_t memory;    /* bytes of the whole GPU */
  bool isolated;    /* a part has SMs of its own (a green context); false: parts share them */
} gp_gpu_info;

/* Bytes that this process holds on a GPU, by its own account. */
typedef struct gp_gpu_use {
  size_t live, peak;
} gp_gpu_use;

/* A library that the CUDA plugin uses, or the reason why it is missing. */
typedef struct gp_gpu_library {
  char name[24];    /* "cuDNN" */
  char version[64]; /* "9.10.2"; "" where it is missing */
  char why[320];    /* why it is missing, or a remark about it; else "" */
} gp_gpu_library;

/* How a device does one kind of work on operands of one shape. */
typedef struct gp_work_path {
  char kind[16];   /* "attention", "product", "convolution" */
  char shape[112]; /* "forward bf16 B=16 H=12/12 Tq=1024 Tk=1024 D=64 causal" */
  char path[64];   /* "cuDNN", "own kernels, tensor cores" */
  char why[320];   /* why a faster path was not taken; "" where this is the fastest */
  int64_t count;   /* how often it was chosen: once for every instruction of a program */
} gp_work_path;

/* Errors: GP_EDEVICE with the reason where there is no GPU. */
gp_status gp_gpus_count(int *count);
bool gp_gpus_known(void); /* was the count asked for already? Asking loads libraries */
gp_status gp_gpu_describe(int ordinal, gp_gpu_info *info, gp_gpu_use *use);
/* Find the file of the CUDA plugin without opening it; path receives it, or "". Errors: GP_EDEVICE
 * where there is none, or no driver for it. */
gp_status gp_gpus_find(char *path, size_t size);

/* Describe the i-th of the libraries that the CUDA plugin works with, found or missing; return
 * false after the last, and if there is no plugin. Loads the libraries. */
bool gp_gpus_library(int i, gp_gpu_library *library);

/* A device's name taken apart: "cpu", "cpu:1", "cuda:0", "cuda:0/1of4" (a part of a GPU). */
typedef struct gp_device_facts {
  bool gpu;
  char name[48];   /* in full: "cpu:0" where "cpu" was given */
  char memory[24]; /* whose memory it uses: "cpu", "cuda:0" */
} gp_device_facts;

/* Parse a device's name; gp_device_check tells whether the device is here. Errors: GP_EINVAL says
 * how names look. */
gp_status gp_device_describe(const char *text, gp_device_facts *facts);
/* Check that this is the name of a device that is here. Errors: GP_EINVAL, GP_EDEVICE,
 * GP_ERANGE. */
gp_status gp_device_check(const char *name);
/* Close the GPUs on which nothing is held any more; for the end of the process or of
 * its last script. */
void gp_gpus_close(void);
/* "oneDNN 2.6.3", or "" when none is loadable; loads the library. why (optional) receives the
 * loader's reason. */
const char *gp_gemm_library(const char **why);
/* How products of bf16 run on CPU devices: "amx_bf16", "avx512_bf16" or "emulated". *why: what the
 * faster paths lack, or "". The first call of the process tries them. */
const char *gp_bf16_path_name(const char **why);

#endif
