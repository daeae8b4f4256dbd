# scripts/cmake/cuda_tests.cmake - the CUDA plugin without CUDA: its kernels compiled for the host,
# for tests.
#
# libgpipe_cuda_host.so is made of the same files as libgpipe_cuda.so, except those that call cuDNN.
# Kernels run as fibers (tests/cuda/on_host.h); CUDA's runtime and cuBLASLt are stand-ins.
# GPIPE_CUDA_PLUGIN names it to the program, so that machines without a GPU test every kernel, under
# sanitizers too. Only the toolkit's headers are needed; without them there is nothing to test here.

find_path(GPIPE_CUDA_HEADERS cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda PATH_SUFFIXES include)
mark_as_advanced(GPIPE_CUDA_HEADERS)
if(NOT GPIPE_CUDA_HEADERS)
  message(STATUS "no headers of CUDA: its kernels are not tested by this build")
  return()
endif()
enable_language(CXX)
set(CMAKE_CXX_FLAGS_RELEASE "")

# ---- what it is made of ------------------------------------------------------------------------

# Each .cu is included by a C++ file; the plugin itself compiles the same .cu as CUDA.
set(HOST_KERNELS "")
file(GLOB_RECURSE KERNEL_FILES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} runtime/*.cu)
foreach(kernel ${KERNEL_FILES})
  set(wrapped ${CMAKE_CURRENT_BINARY_DIR}/generated/cuda_host/${kernel}.cpp)
  file(CONFIGURE OUTPUT ${wrapped} CONTENT "/* Made by scripts/cmake/cuda_tests.cmake. */
#include \"${CMAKE_CURRENT_SOURCE_DIR}/${kernel}\"\n")
  list(APPEND HOST_KERNELS ${wrapped})
endforeach()

# cuBLASLt has a stand-in in tests/cuda. For cuDNN the plugin has one itself, for builds without its
# headers.
file(GLOB_RECURSE PLUGIN_FILES CONFIGURE_DEPENDS runtime/device/cuda/*.c)
list(FILTER PLUGIN_FILES EXCLUDE REGEX "/cudnn/.*\\.c$")
list(APPEND PLUGIN_FILES runtime/device/cuda/cudnn/missing.c)
file(GLOB LIBRARIES CONFIGURE_DEPENDS tests/cuda/libraries/*.cpp)
file(GLOB MACHINE CONFIGURE_DEPENDS tests/cuda/context.c tests/cuda/fibers.cpp tests/cuda/block.cpp tests/cuda/meet.cpp tests/cuda/cudart/*.c)

# ---- how it is compiled ------------------------------------------------------------------------

# These are the options of the C files, except some that mean nothing to C++. nvcc checks the
# kernels for warnings. Loops of a GPU's thread gain little from vectors, and gcc 12 makes wrong ones
# of conditional sums of pairs of integers (-O2 -ftree-vectorize from AVX2 on): sum.cu has them.
get_property(HOST_C_OPTIONS DIRECTORY PROPERTY COMPILE_OPTIONS)
set(HOST_CXX_OPTIONS ${HOST_C_OPTIONS})
list(REMOVE_ITEM HOST_CXX_OPTIONS -ftree-vectorize -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wshadow -pedantic)
list(APPEND HOST_CXX_OPTIONS -fno-tree-vectorize -Wno-unknown-pragmas -Wno-dangling-else)

function(gpipe_on_host target)
  target_include_directories(${target} PRIVATE runtime ${GPIPE_GENERATED} tests/cuda)
  add_dependencies(${target} gpipe_rows)
  target_include_directories(${target} SYSTEM PRIVATE ${GPIPE_CUDA_HEADERS})
  target_compile_definitions(${target} PRIVATE GP_CUDA_ON_HOST)
  target_link_libraries(${target} PRIVATE Threads::Threads m ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_VISIBILITY_PRESET hidden
    COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:C>:${HOST_C_OPTIONS}>;$<$<COMPILE_LANGUAGE:CXX>:${HOST_CXX_OPTIONS}>")
endfunction()

# The fibers and the runtime are shared by the plugin and by their own test.
add_library(gpipe_on_host OBJECT ${MACHINE})
gpipe_on_host(gpipe_on_host)

# A forgotten kernel is a link error that names it, as in the plugin itself.
add_library(gpipe_cuda_host MODULE ${HOST_KERNELS} ${PLUGIN_FILES} ${LIBRARIES} $<TARGET_OBJECTS:gpipe_on_host>)
gpipe_on_host(gpipe_cuda_host)
target_link_options(gpipe_cuda_host PRIVATE -Wl,--no-undefined -Wl,-z,nodelete)

# The same plugin, which counts the bytes that kernels of images and losses read and write
# (tests/cuda/bytes.cpp): scripts/bench/bytes.lua. Their objects come first, so that functions that
# several files have are those that count.
if(NOT GPIPE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(COUNTED channels/channel_norm channels/channel_norm_relu channels/channel_stats image/max_pool2d
    image/resample2d loss/cross_entropy)
  set(COUNTED_KERNELS "")
  foreach(kernel ${COUNTED})
    list(APPEND COUNTED_KERNELS ${CMAKE_CURRENT_BINARY_DIR}/generated/cuda_host/runtime/ops/${kernel}.cu.cpp)
  endforeach()
  list(JOIN COUNTED "|" COUNTED)
  add_library(gpipe_cuda_counted OBJECT ${COUNTED_KERNELS})
  gpipe_on_host(gpipe_cuda_counted)
  target_compile_options(gpipe_cuda_counted PRIVATE -fsanitize=thread)
  add_library(gpipe_cuda_counting MODULE $<TARGET_OBJECTS:gpipe_cuda_counted> tests/cuda/bytes.cpp
    $<TARGET_OBJECTS:gpipe_on_host> "$<FILTER:$<TARGET_OBJECTS:gpipe_cuda_host>,EXCLUDE,/(${COUNTED})[.]cu>")
  gpipe_on_host(gpipe_cuda_counting)
  target_link_options(gpipe_cuda_counting PRIVATE -Wl,--no-undefined -Wl,-z,nodelete)
  add_test(NAME cuda/bytes WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMAND gpipe-lua scripts/bench/bytes.lua)
  set_tests_properties(cuda/bytes PROPERTIES TIMEOUT ${SPEC_LIMIT}
    ENVIRONMENT "GPIPE_CUDA_PLUGIN=$<TARGET_FILE:gpipe_cuda_counting>")
endif()

# NCCL between processes of this host, for the same plugin.
if(EXISTS ${GPIPE_CUDA_HEADERS}/nccl.h)
  add_library(gpipe_fake_nccl MODULE tests/cuda/nccl/fake_nccl.c tests/cuda/nccl/board.c)
  target_include_directories(gpipe_fake_nccl SYSTEM PRIVATE ${GPIPE_CUDA_HEADERS})
  target_link_libraries(gpipe_fake_nccl PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  add_executable(cuda_fake_nccl_test tests/cuda/nccl/fake_nccl_test.c)
  target_include_directories(cuda_fake_nccl_test PRIVATE tests/c)
  target_include_directories(cuda_fake_nccl_test SYSTEM PRIVATE ${GPIPE_CUDA_HEADERS})
  target_link_libraries(cuda_fake_nccl_test PRIVATE gpipe_runtime)
  set_target_properties(cuda_fake_nccl_test PROPERTIES ENABLE_EXPORTS ON C_VISIBILITY_PRESET default)
  add_test(NAME cuda/fake_nccl_test COMMAND cuda_fake_nccl_test WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(cuda/fake_nccl_test PROPERTIES TIMEOUT ${C_LIMIT}
    ENVIRONMENT "GPIPE_NCCL_LIBRARY=$<TARGET_FILE:gpipe_fake_nccl>")
endif()

# Under the thread sanitizer a switch of fibers costs as much as one of threads, hours in all, and
# the fibers of a block are no threads. So what runs on a fiber is compiled without it; the engine,
# the plugin's C and the runtime's stand-in, which several threads run, are compiled with it. The
# sanitizers of a GPU find races inside kernels (scripts/gpu-check).
if(GPIPE_SANITIZE STREQUAL "thread")
  set_source_files_properties(${HOST_KERNELS} ${LIBRARIES} PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
  set(ON_FIBERS ${MACHINE})
  list(FILTER ON_FIBERS EXCLUDE REGEX "/cudart/")
  set_source_files_properties(${ON_FIBERS} PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
endif()

# ---- tests ---------------------------------------------------------------------------------------

# As in the C tests, the functions that test.h defines for sanitizers must be visible.
foreach(name fibers_test beside_cudnn_test staged_mask_test divisor_test)
  add_executable(${name} tests/cuda/${name}.cpp $<TARGET_OBJECTS:gpipe_on_host>)
  gpipe_on_host(${name})
  target_include_directories(${name} PRIVATE tests/c)
  target_link_libraries(${name} PRIVATE gpipe_runtime)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET default)
  add_test(NAME cuda/${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(cuda/${name} PROPERTIES TIMEOUT ${C_LIMIT})
endforeach()

# These tests open the plugin as the core does, and use its table.
set(HOST_PLUGIN "GPIPE_CUDA_PLUGIN=$<TARGET_FILE:gpipe_cuda_host>")
file(GLOB TABLE_TESTS CONFIGURE_DEPENDS tests/cuda/*_test.c)
foreach(source ${TABLE_TESTS})
  get_filename_component(name ${source} NAME_WE)
  add_executable(cuda_${name} ${source})
  target_include_directories(cuda_${name} PRIVATE tests/c)
  target_link_libraries(cuda_${name} PRIVATE gpipe_runtime)
  set_target_properties(cuda_${name} PROPERTIES C_VISIBILITY_PRESET default)
  foreach(order "" "_reversed")
    add_test(NAME cuda/${name}${order} COMMAND cuda_${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set_tests_properties(cuda/${name}${order} PROPERTIES TIMEOUT ${C_LIMIT} ENVIRONMENT "${HOST_PLUGIN}")
  endforeach()
  set_property(TEST cuda/${name}_reversed APPEND PROPERTY ENVIRONMENT "GPIPE_TEST_REVERSE=1")
endforeach()

# Prints which multiprocessors the parts of a GPU use; scripts/gpu-check runs it where there is a
# GPU. Without one it says so.
if(TARGET gpipe_cuda)
  add_executable(cuda_sm_ids tests/gpu/sm_ids.c tests/gpu/sm_ids.cu)
  target_include_directories(cuda_sm_ids SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(cuda_sm_ids PRIVATE gpipe_runtime CUDA::cudart_static)
  set_target_properties(cuda_sm_ids PROPERTIES LINKER_LANGUAGE CXX CUDA_STANDARD 17 CUDA_RUNTIME_LIBRARY Static
    COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:C>:${HOST_C_OPTIONS}>")
  add_test(NAME cuda/sm_ids COMMAND cuda_sm_ids)
  set_tests_properties(cuda/sm_ids PROPERTIES TIMEOUT ${C_LIMIT})
endif()

# The test of ops runs again where the library of products does not start, and where it refuses odd
# rows.
add_test(NAME cuda/ops_test_own_products COMMAND cuda_ops_test WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
add_test(NAME cuda/ops_test_padded_products COMMAND cuda_ops_test WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
set_tests_properties(cuda/ops_test_own_products cuda/ops_test_padded_products PROPERTIES TIMEOUT ${C_LIMIT})
set_tests_properties(cuda/ops_test_own_products PROPERTIES
  ENVIRONMENT "${HOST_PLUGIN};GPIPE_TEST_CUDA_FAIL=cublasLtCreate:1+")
set_tests_properties(cuda/ops_test_padded_products PROPERTIES
  ENVIRONMENT "${HOST_PLUGIN};GPIPE_TEST_GEMM_ALIGNED=1;GPIPE_GEMM_PAD=1")

# C tests that need a plugin get this one.
foreach(source ${C_TESTS})
  string(REPLACE ".c" "" test ${source})
  if(test MATCHES "/(cuda|lane|link)_")
    set_property(TEST c/${test} APPEND PROPERTY ENVIRONMENT "${HOST_PLUGIN}")
  endif()
endforeach()

# Specs of GPUs run on the plugin compiled for the host. Those of single kernels run a second time,
# with their blocks in reverse order.
function(gpipe_spec_on_host test spec)
  get_test_property(spec/${spec} ENVIRONMENT environment)
  if(NOT TEST spec/${test})
    add_test(NAME spec/${test} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
      COMMAND gpipe-lua ${BUSTED} --ignore-lua --output=plainTerminal --defer-print tests/spec/${spec}.lua)
  endif()
  set_tests_properties(spec/${test} PROPERTIES TIMEOUT ${SPEC_LIMIT}
    ENVIRONMENT "${environment};${HOST_PLUGIN};${ARGN}")
endfunction()

foreach(path ${SPECS})
  string(REPLACE ".lua" "" spec ${path})
  if(NOT BUSTED OR NOT spec MATCHES "^cuda/")
    continue()
  endif()
  if(spec MATCHES "/(ops|gradients)_")
    gpipe_spec_on_host(${spec}_reversed ${spec} "GPIPE_TEST_REVERSE=1")
  endif()
  gpipe_spec_on_host(${spec} ${spec})
endforeach()
foreach(spec ${GPU_SPECS})
  get_filename_component(name ${spec} NAME_WE)
  set_property(TEST gpu/${name} APPEND PROPERTY ENVIRONMENT "${HOST_PLUGIN}")
endforeach()

# The specs of errors and of transfers between devices run a second time, with work that runs as
# late as it may.
foreach(name errors_spec links_spec streams_spec)
  get_test_property(gpu/${name} ENVIRONMENT environment)
  add_test(NAME gpu/${name}_late WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMAND gpipe-lua ${BUSTED} --ignore-lua --output=plainTerminal --defer-print tests/gpu/${name}.lua)
  set_tests_properties(gpu/${name}_late PROPERTIES TIMEOUT ${SPEC_LIMIT}
    ENVIRONMENT "${environment};GPIPE_TEST_LAZY=1;GPIPE_TEST_CUDA_SLOW=cudaEventRecordWithFlags:100")
endforeach()
