/* optim/batch.cuh - one launch over many tensors, whose list travels with the launch.
 *
 * A model has hundreds of parameters, most of them small: a launch for each would take longer than
 * the work. Every tensor is cut into tiles by its own length alone, and a block works on one tile,
 * so that neither the bits nor the order of a sum depend on what else is in the list. */
#ifndef GP_OPTIM_BATCH_CUH
#define GP_OPTIM_BATCH_CUH

#include "device/cuda/kernel/device.cuh"

enum { GP_BATCH = 48 }; /* tensors; the list has to fit into the 4 KiB of a launch's arguments */

template <typename Item> struct gp_batch {
  int count;
  int first[GP_BATCH + 1]; /* the first block of each tensor, and one behind the last */
  Item item[GP_BATCH];

  gp_batch() : count(0) { first[0] = 0; }
  bool is_full() const { return count == GP_BATCH; }
  int blocks() const { return first[count]; }

  void push(const Item &one, int64_t tiles) {
    item[count] = one;
    first[count + 1] = first[count] + (int)tiles;
    count++;
  }

  /* Find the tensor that a block works on, and its tile. */
  __device__ int find(int block, int64_t *tile) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (first[middle] <= block)
        low = middle;
      else
        high = middle - 1;
    }
    *tile = block - first[low];
    return low;
  }
};

/* Count how many of a list one launch takes: neighbours of one dtype. */
template <typename Tensor> static int gp_batch_alike(const Tensor *list, int count) {
  int n = 1;
  while (n < count && n < GP_BATCH && list[n].dtype == list[0].dtype) n++;
  return n;
}

/* Tensors that are read and written element by element are cut into tiles of this many 16-byte
 * groups. */
enum { GP_BATCH_THREADS = 256, GP_BATCH_PACKS = 4 * GP_BATCH_THREADS };

template <typename T> static int64_t gp_batch_tiles(int64_t n) {
  const int64_t tile = (int64_t)GP_BATCH_PACKS * gp_pack<T>::count;
  return (n + tile - 1) / tile;
}

/* The elements of a tile: [begin, whole) by 16 bytes at a time, [whole, end) one by one. */
struct gp_tile {
  int64_t begin, whole, end;
};

template <typename T>
static __device__ inline gp_tile gp_tile_of(int64_t tile, int64_t n, bool packed) {
  const int64_t size = (int64_t)GP_BATCH_PACKS * gp_pack<T>::count;
  gp_tile t;
  t.begin = tile * size;
  t.end = t.begin + size < n ? t.begin + size : n;
  t.whole = packed ? t.end - (t.end - t.begin) % gp_pack<T>::count : t.begin;
  return t;
}

#endif
