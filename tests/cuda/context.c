/* tests/cuda/context.c - stacks to switch between, with a few instructions on x86-64, else with
 * ucontext.
 *
 * swapcontext sets the signal mask by a system call at every switch, which is a hundred times
 * slower than the switch itself; blocks of 1024 threads switch a lot. The kernels change no
 * floating-point modes, so those are not saved. */
#include "context.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
enum { STACK_BYTES = 256 << 10 }; /* red zones make frames larger */
#else
enum { STACK_BYTES = 64 << 10 };
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
enum { GUARD_BYTES = 4096 };

#if !defined(__x86_64__) && !defined(GP_CONTEXT_UCONTEXT)
#define GP_CONTEXT_UCONTEXT
#endif

/* The context that the current switch leaves, and the one that it goes to. */
static _Thread_local gp_context *leaving, *entering;

/* ---- the switch itself --------------------------------------------------------------------- */

#ifdef GP_CONTEXT_UCONTEXT
#include <ucontext.h>

static void swap(gp_context *from, gp_context *to) { swapcontext(from->at, to->at); }

static void begin(gp_context *context, void (*first)(void)) {
  ucontext_t *at = context->at;
  getcontext(at);
  at->uc_stack.ss_sp = context->area + GUARD_BYTES;
  at->uc_stack.ss_size = context->bytes;
  at->uc_link = NULL;
  makecontext(at, first, 0);
}

static void *new_place(void) { return calloc(1, sizeof(ucontext_t)); }
static void free_place(void *at) { free(at); }

#else

void gp_context_swap(void **from, void *to);
/* Saves the callee-saved registers on the old stack, and restores them from the new one. */
__asm__(".text\n"
        ".hidden gp_context_swap\n"
        ".globl gp_context_swap\n"
        ".type gp_context_swap, @function\n"
        "gp_context_swap:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size gp_context_swap, . - gp_context_swap\n");

static void swap(gp_context *from, gp_context *to) { gp_context_swap(&from->at, to->at); }

/* Prepares a stack as if `first` were about to begin: six registers, its address, and no caller. */
static void begin(gp_context *context, void (*first)(void)) {
  void **top = (void **)(context->area + GUARD_BYTES + context->bytes);
  *--top = NULL;
  *--top = (void *)(uintptr_t)first;
  for (int i = 0; i < 6; i++) *--top = NULL;
  context->at = top;
}

static void *new_place(void) { return NULL; }
static void free_place(void *at) { (void)at; }

#endif

/* ---- what sanitizers are told -------------------------------------------------------------- */

/* Announces a switch. save: where address sanitizer keeps the old stack's second stack; NULL: the
 * old stack has ended. */
static void tell_before(gp_context *from, gp_context *to, void **save) {
  leaving = from, entering = to;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(save, to->low, to->bytes);
#else
  (void)save;
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to->race, 0);
#endif
}

/* Runs on the new stack. The bounds of a thread's own stack are learned when it is left. */
static void tell_after(void) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(entering->fake, &leaving->low, &leaving->bytes);
#endif
}

static void enter(void) {
  tell_after();
  gp_context *self = entering;
  self->body();
  gp_context *caller = self->caller;
  tell_before(self, caller, NULL);
  swap(self, caller);
}

void gp_context_switch(gp_context *from, gp_context *to) {
  to->caller = from;
  tell_before(from, to, &from->fake);
  swap(from, to);
  tell_after();
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Stands at the low end of a stack that is not in use. */
typedef struct spare {
  unsigned char *next; /* area of the next one */
  void *race;          /* thread sanitizer's name for it, slow to make */
} spare;

/* Spare stacks are kept, because pipelines come and go with their threads, and mapping a thousand
 * stacks takes longer than most pipelines live. */
static unsigned char *spares;
static pthread_mutex_t spares_lock = PTHREAD_MUTEX_INITIALIZER;

static spare *spare_of(unsigned char *area) { return (spare *)(void *)(area + GUARD_BYTES); }

static unsigned char *take_spare(void) {
  pthread_mutex_lock(&spares_lock);
  unsigned char *area = spares;
  if (area) spares = spare_of(area)->next;
  pthread_mutex_unlock(&spares_lock);
  return area;
}

static void keep_spare(unsigned char *area, void *race) {
  pthread_mutex_lock(&spares_lock);
  *spare_of(area) = (spare){spares, race};
  spares = area;
  pthread_mutex_unlock(&spares_lock);
}

/* Returns a mapped stack, or NULL where there is no memory. */
static unsigned char *new_area(void) {
  unsigned char *area = take_spare();
  if (area) return area;
  area = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return NULL;
  mprotect(area, GUARD_BYTES, PROT_NONE);
  spare_of(area)->race = NULL;
  return area;
}

/* ---- making -------------------------------------------------------------------------------- */

void gp_context_here(gp_context *context) {
  *context = (gp_context){.at = new_place()};
#if defined(__SANITIZE_THREAD__)
  context->race = __tsan_get_current_fiber();
#endif
}

void gp_context_restart(gp_context *context) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(context->low, context->bytes); /* functions left red zones */
#endif
  context->fake = NULL;
  begin(context, enter);
}

int gp_context_new(gp_context *context, void (*body)(void)) {
  unsigned char *area = new_area();
  if (!area) return -1;
  *context = (gp_context){.at = new_place(),
                          .area = area,
                          .low = area + GUARD_BYTES,
                          .bytes = STACK_BYTES,
                          .race = spare_of(area)->race,
                          .body = body};
#if defined(__SANITIZE_THREAD__)
  if (!context->race) context->race = __tsan_create_fiber(0);
#endif
  gp_context_restart(context);
  return 0;
}

void gp_context_free(gp_context *context) {
  free_place(context->at);
  if (!context->area) return;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(context->low, context->bytes);
#endif
  keep_spare(context->area, context->race);
}
