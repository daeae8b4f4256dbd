/* tests/cuda/bytes.cpp - how many bytes of a GPU's memory kernels read and write, counted where they
 * run on the host.
 *
 * Kernels whose bytes are counted are compiled with gcc's instrumentation for the thread sanitizer,
 * which calls a function for every access; these functions stand in for the sanitizer's. Memory of
 * blocks and of threads does not count. GPIPE_TEST_BYTES names the file to which a process appends,
 * at its end, a line for each kernel and the types of its arguments:
 *
 *   bytes NAME TYPES read BYTES written BYTES
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "cudart/cudart.h"
#include "fibers.h"

namespace {

struct bytes {
  uint64_t read = 0, written = 0;
};

/* What memory an address is in, as the last access has found it. */
struct region {
  uintptr_t begin = 0, end = 0;
  bool holds(uintptr_t at) const { return at >= begin && at < end; }
};

/* One thread at a time runs kernels of the programs that are counted: a device has a worker. */
struct counts {
  std::map<std::string, bytes> kernels;
  bytes *running = nullptr;
  region device, other; /* of a GPU; anything else */

  ~counts() {
    const char *path = getenv("GPIPE_TEST_BYTES");
    FILE *to = path && *path ? fopen(path, "a") : nullptr;
    if (!to) return;
    for (const auto &[name, sum] : kernels)
      fprintf(to, "bytes %s read %llu written %llu\n", name.c_str(), (unsigned long long)sum.read,
              (unsigned long long)sum.written);
    fclose(to);
  }

  void begin(const gp_host_kernel &kernel) {
    std::string name = kernel.name;
    for (char &c : name)
      if (c == ' ') c = '_';
    running = &kernels[name + " " + kernel.types];
    device = other = region(); /* memory may have been given back meanwhile */
  }

  bool is_of_device(uintptr_t at) {
    if (device.holds(at)) return true;
    if (other.holds(at)) return false;
    size_t size = 0;
    const uintptr_t found = (uintptr_t)gp_cudart_allocation((const void *)at, &size);
    if (found)
      device = {found, found + size};
    else
      other = {at & ~(uintptr_t)63, (at & ~(uintptr_t)63) + 64};
    return found != 0;
  }

  void add(const void *at, size_t size, bool writes) {
    if (!gp_host_now || !running || !is_of_device((uintptr_t)at)) return;
    (writes ? running->written : running->read) += size;
  }
};

counts all;

void watch(const gp_host_kernel &kernel) { all.begin(kernel); }

struct install {
  install() { gp_host_watch = watch; }
} installed;

} // namespace

/* ---- what instrumented code calls -------------------------------------------------------------- */

#define ACCESS(name, size, writes)                                                                 \
  void name(void *at);                                                                             \
  void name(void *at) { all.add(at, size, writes); }
#define ACCESSES(size)                                                                             \
  ACCESS(__tsan_read##size, size, false)                                                           \
  ACCESS(__tsan_write##size, size, true)                                                           \
  ACCESS(__tsan_unaligned_read##size, size, false)                                                 \
  ACCESS(__tsan_unaligned_write##size, size, true)

extern "C" {
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *at, size_t size);
void __tsan_read_range(void *at, size_t size) { all.add(at, size, false); }
void __tsan_write_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size) { all.add(at, size, true); }

/* What memory.h makes atomicMin of. */
uint64_t __tsan_atomic64_load(const uint64_t *at, int);
uint64_t __tsan_atomic64_load(const uint64_t *at, int) {
  all.add(at, sizeof *at, false);
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
int __tsan_atomic64_compare_exchange_strong(uint64_t *at, uint64_t *old, uint64_t next, int, int);
int __tsan_atomic64_compare_exchange_strong(uint64_t *at, uint64_t *old, uint64_t next, int, int) {
  all.add(at, sizeof *at, true);
  return __atomic_compare_exchange_n(at, old, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *);
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void *);
void __tsan_func_exit(void *) {}
void __tsan_vptr_update(void **, void *);
void __tsan_vptr_update(void **, void *) {}
}
