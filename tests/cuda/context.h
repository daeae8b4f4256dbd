/* tests/cuda/context.h - stacks to switch between: the threads of a block run on them.
 *
 * A context is suspended except while it runs; the running one switches to another by name.
 * Sanitizers are told of every switch, because otherwise they take the new stack for a broken one.
 * Threads: a context stays with the thread that made it. */
#ifndef GP_TESTS_CUDA_CONTEXT_H
#define GP_TESTS_CUDA_CONTEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gp_context {
  void *at;            /* saved stack pointer, or ucontext */
  unsigned char *area; /* mapping: a guard page, then the stack; NULL: the thread's own stack */
  const void *low;     /* lowest address of the stack, for address sanitizer */
  size_t bytes;        /* size of the stack */
  void *fake;          /* address sanitizer's second stack while suspended */
  void *race;          /* thread sanitizer's name for it */
  void (*body)(void);
  struct gp_context *caller; /* the context that switched to it last */
} gp_context;

/* Make a context of the calling thread's own stack. */
void gp_context_here(gp_context *context);
/* Make a stack on which body runs from the first switch on. When body returns, the context that
 * switched to it last goes on, and this one may only be freed. Returns 0, or -1 where there is no
 * memory. */
int gp_context_new(gp_context *context, void (*body)(void));
/* Forget what the context was doing: the next switch begins body anew. */
void gp_context_restart(gp_context *context);
void gp_context_free(gp_context *context);

/* Suspend `from`, which runs, and go on with `to`; returns when a context switches back. */
void gp_context_switch(gp_context *from, gp_context *to);

#ifdef __cplusplus
}
#endif

#endif
