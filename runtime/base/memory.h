/* base/memory.h - counted allocation: every byte the runtime holds goes through here, so that tests
 * can count and fail it. */
#ifndef GP_BASE_MEMORY_H
#define GP_BASE_MEMORY_H

#include "base/status.h"
#include "gpipe/process.h"

/* Zeroed memory, 64-byte aligned, with its size remembered. Errors: GP_ENOMEM naming the bytes. */
gp_status gp_alloc(size_t bytes, void **memory);
/* Make an array of count elements; the product is checked for overflow. */
gp_status gp_alloc_array(size_t count, size_t size, void **memory);
/* Grow or shrink an array from gp_alloc_array (NULL: a new one); new elements are zero. On failure
 * the old one stays. */
gp_status gp_resize_array(size_t old_count, size_t new_count, size_t size, void **memory);
/* Make room for element `count` of an array of *capacity elements, which doubles; *memory and
 * *capacity are the new ones, or on failure the old ones. */
gp_status gp_grow_array(size_t count, size_t *capacity, size_t size, void **memory);
gp_status gp_copy_string(const char *text, char **copy);
void gp_free(void *memory);

/* Zero memory of gp_alloc that may not be written again soon: the pages of a large block are given
 * back to the kernel, which makes them zeros when they are touched again. */
void gp_memory_clear(void *memory, size_t bytes);

/* Compute a + b, a * b, and a size rounded up to a multiple; a result that overflows is refused.
 * Errors: GP_ENOMEM. */
gp_status gp_size_add(size_t a, size_t b, size_t *sum);
gp_status gp_size_mul(size_t a, size_t b, size_t *product);
gp_status gp_size_align(size_t size, size_t alignment, size_t *aligned);

#endif
