/* base/memory.c - counted allocation.
 *
 * A block carries its size and where calloc put it just before the address handed out, so that
 * gp_free needs nothing but the pointer. calloc is used on purpose: large blocks come straight from
 * the kernel, whose pages are zero already and need not be touched a second time. The counters are
 * the only state; they are atomic because workers free what other threads made. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { ALIGNMENT = 64 };               /* a cache line, and the widest vector register */
enum { PAGE = 4096, LARGE = 4 << 20 }; /* two large pages of x86-64 */

typedef struct header {
  void *raw;
  size_t bytes;
} header;

/* calloc aligns to 16 or better, so a header plus rounding up never needs more than one line. */
_Static_assert(sizeof(header) <= 16, "the header must fit before the first aligned address");

static _Atomic size_t live_bytes, peak_bytes;
static _Atomic uint64_t allocation_count;
static _Atomic uint64_t fail_countdown; /* 0: off; 1: the next allocation fails */

static header *header_of(void *memory) { return (header *)memory - 1; }

gp_memory_info gp_memory(void) {
  return (gp_memory_info){.live = atomic_load(&live_bytes),
                          .peak = atomic_load(&peak_bytes),
                          .allocations = atomic_load(&allocation_count)};
}

void gp_memory_fail_at(uint64_t n) { atomic_store(&fail_countdown, n); }

/* Count down to the allocation that a test wants to fail; return true for that one. */
static bool is_injected_failure(void) {
  uint64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
  while (left > 0)
    if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1)) return left == 1;
  return false;
}

static void count_block(size_t bytes) {
  atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
  size_t live = atomic_fetch_add(&live_bytes, bytes) + bytes;
  size_t peak = atomic_load(&peak_bytes);
  while (live > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, live)) {
  }
}

/* Advise large pages for a large block, if the kernel has some: their first use costs a fraction of
 * the faults, and walks along columns find their translations. Only whole pages within the block
 * are advised, so that it takes no more memory. A kernel that refuses changes nothing. */
static void ask_for_large_pages(char *raw, size_t bytes) {
#if defined(__linux__)
  if (bytes < LARGE) return;
  const uintptr_t page = PAGE, first = ((uintptr_t)raw + page - 1) / page * page;
  const uintptr_t end = ((uintptr_t)raw + bytes) / page * page;
  (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
  (void)raw, (void)bytes;
#endif
}

void gp_memory_clear(void *memory, size_t bytes) {
  char *at = memory;
#if defined(__linux__)
  const uintptr_t page = PAGE, first = ((uintptr_t)at + page - 1) / page * page;
  const uintptr_t end = ((uintptr_t)at + bytes) / page * page;
  if (bytes >= LARGE && madvise((void *)first, end - first, MADV_DONTNEED) == 0) {
    memset(at, 0, first - (uintptr_t)at);
    memset((void *)end, 0, (uintptr_t)at + bytes - end);
    return;
  }
#endif
  memset(at, 0, bytes);
}

gp_status gp_alloc(size_t bytes, void **memory) {
  if (is_injected_failure())
    return gp_fail(GP_ENOMEM, "memory: %zu bytes refused because a test asked for it", bytes);
  size_t total = 0;
  GP_TRY(gp_size_add(bytes, ALIGNMENT, &total));
  char *raw = calloc(1, total);
  if (!raw) return gp_fail(GP_ENOMEM, "out of memory: %zu bytes", bytes);
  ask_for_large_pages(raw, total);
  uintptr_t first = (uintptr_t)raw + sizeof(header);
  char *aligned = raw + sizeof(header) + (-first & (ALIGNMENT - 1));
  *header_of(aligned) = (header){.raw = raw, .bytes = bytes};
  count_block(bytes);
  *memory = aligned;
  return GP_OK;
}

void gp_free(void *memory) {
  if (!memory) return;
  header block = *header_of(memory);
  atomic_fetch_sub(&live_bytes, block.bytes);
  free(block.raw);
}

/* ---- arrays and strings ---- */

gp_status gp_alloc_array(size_t count, size_t size, void **memory) {
  size_t bytes = 0;
  GP_TRY(gp_size_mul(count, size, &bytes));
  return gp_alloc(bytes, memory);
}

/* realloc would not do: a block that it moves need not keep its alignment. */
gp_status gp_resize_array(size_t old_count, size_t new_count, size_t size, void **memory) {
  void *fresh;
  GP_TRY(gp_alloc_array(new_count, size, &fresh));
  size_t kept = old_count < new_count ? old_count : new_count;
  if (*memory && kept > 0) memcpy(fresh, *memory, kept * size);
  gp_free(*memory);
  *memory = fresh;
  return GP_OK;
}

/* The capacity doubles, so n appended elements cost O(n) copies in all. */
gp_status gp_grow_array(size_t count, size_t *capacity, size_t size, void **memory) {
  enum { FIRST = 32 };
  if (count < *capacity) return GP_OK;
  size_t grown = *capacity ? 2 * *capacity : FIRST;
  GP_TRY(gp_resize_array(*capacity, grown, size, memory));
  *capacity = grown;
  return GP_OK;
}

gp_status gp_copy_string(const char *text, char **copy) {
  size_t bytes = strlen(text) + 1;
  void *fresh;
  GP_TRY(gp_alloc(bytes, &fresh));
  *copy = memcpy(fresh, text, bytes);
  return GP_OK;
}

/* ---- checked sizes ---- */

/* A failure leaves the result untouched, so the builtin does not get the caller's pointer. */

gp_status gp_size_add(size_t a, size_t b, size_t *sum) {
  size_t value;
  if (__builtin_add_overflow(a, b, &value))
    return gp_fail(GP_ENOMEM, "memory: %zu + %zu bytes do not fit an address", a, b);
  *sum = value;
  return GP_OK;
}

gp_status gp_size_mul(size_t a, size_t b, size_t *product) {
  size_t value;
  if (__builtin_mul_overflow(a, b, &value))
    return gp_fail(GP_ENOMEM, "memory: %zu x %zu bytes do not fit an address", a, b);
  *product = value;
  return GP_OK;
}

gp_status gp_size_align(size_t size, size_t alignment, size_t *aligned) {
  GP_ASSERT(alignment > 0);
  size_t rest = size % alignment;
  if (rest == 0) {
    *aligned = size;
    return GP_OK;
  }
  return gp_size_add(size, alignment - rest, aligned);
}
