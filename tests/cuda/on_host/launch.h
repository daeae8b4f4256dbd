/* tests/cuda/on_host/launch.h - GP_LAUNCH: a kernel with its arguments becomes work for a stream.
 *
 * The stand-in runtime runs it at once, or keeps it while the stream is captured. So arguments are
 * copied when the launch is called, as a GPU does, and every thread gets copies of its own. */
#ifndef GP_TESTS_CUDA_ON_HOST_LAUNCH_H
#define GP_TESTS_CUDA_ON_HOST_LAUNCH_H

#include <new>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "../fibers.h"
#include "../submit.h"

template <typename... P> struct gp_host_launch : gp_host_work {
  void (*kernel)(P...);
  const char *name;
  gp_host_geometry geometry;
  std::tuple<P...> arguments;

  gp_host_launch(void (*of)(P...), const char *called, const gp_host_geometry &where, P... given)
      : gp_host_work{}, kernel(of), name(called), geometry(where), arguments(given...) {
    static_assert(sizeof(arguments) <= 4096, "a GPU takes 4 KiB of arguments");
    run = run_grid;
    free = [](gp_host_work *self) { delete static_cast<gp_host_launch *>(self); };
  }

  static void run_thread(const void *launch) {
    const gp_host_launch *self = static_cast<const gp_host_launch *>(launch);
    std::apply(self->kernel, self->arguments);
  }

  static cudaError_t run_grid(gp_host_work *work) {
    const gp_host_launch *self = static_cast<gp_host_launch *>(work);
    return gp_host_run({self->name, typeid(void(P...)).name(), run_thread, self}, self->geometry);
  }
};

/* Only the kernel gives the types of its parameters; arguments are converted as in a call. */
template <typename T> struct gp_host_given { typedef T type; };

template <typename... P>
inline void gp_host_enqueue(cudaStream_t stream, const char *name, const gp_host_geometry &geometry,
                            void (*kernel)(P...), typename gp_host_given<P>::type... arguments) {
  gp_host_submit_kernel(stream, (const void *)kernel, geometry.shared,
                        new (std::nothrow)
                            gp_host_launch<P...>(kernel, name, geometry, arguments...));
}

#define GP_LAUNCH(gpu, kernel, grid, block, shared, ...)                                           \
  ([&]() -> gp_status {                                                                            \
    auto *gp_kernel = kernel;                                                                      \
    GP_GPU_TRY(gp_gpu_allow_shared(gpu, (const void *)gp_kernel, shared));                         \
    gp_host_enqueue(gp_gpu_stream(gpu), #kernel,                                                   \
                    gp_host_geometry{dim3(grid), dim3(block), (size_t)(shared)}, gp_kernel,        \
                    __VA_ARGS__);                                                                  \
    return gp_gpu_launched(gpu, #kernel);                                                          \
  }())

#endif
