# scripts/cmake/cudnn_tests.cmake - tests of cuDNN: what the plugin does when a stand-in of it
# refuses, which engines it takes by the clock, and whether the real one, asked without a GPU,
# accepts our graphs.
#
# The first two need cuDNN's headers, the last the library too and the toolkit's stub of the driver;
# where one is missing there is no such test. Included after tests.cmake.

find_path(GPIPE_CUDNN_HEADERS cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_HOME ENV CUDA_HOME
  PATHS /usr/local/cuda PATH_SUFFIXES include)
find_library(GPIPE_CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ENV CUDNN_HOME ENV CUDA_HOME
  PATHS /usr/local/cuda PATH_SUFFIXES lib64 lib)
find_file(GPIPE_DRIVER_STUB libcuda.so HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES lib64/stubs lib/stubs)
mark_as_advanced(GPIPE_CUDNN_HEADERS GPIPE_CUDNN_LIBRARY GPIPE_DRIVER_STUB)
set(PLANS ${CMAKE_CURRENT_SOURCE_DIR}/tests/cuda/plans)

# ---- a stand-in --------------------------------------------------------------------------------

# The stand-in takes the place of library.c, and of what needs a runtime of CUDA.
if(GPIPE_CUDNN_HEADERS)
  file(GLOB_RECURSE REFUSED CONFIGURE_DEPENDS runtime/device/cuda/cudnn/*.c)
  list(FILTER REFUSED EXCLUDE REGEX "/library\\.c$")
  foreach(name cudnn_refusals_test cudnn_timing_test)
    add_executable(${name} ${PLANS}/${name}.c ${REFUSED})
    target_compile_definitions(${name} PRIVATE GP_HAVE_CUDNN=1)
    target_include_directories(${name} PRIVATE runtime tests/c ${GPIPE_GENERATED})
    target_include_directories(${name} SYSTEM PRIVATE ${GPIPE_CUDNN_HEADERS})
    target_link_libraries(${name} PRIVATE gpipe_runtime Threads::Threads m)
    add_test(NAME cuda/${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    set_tests_properties(cuda/${name} PROPERTIES TIMEOUT ${C_LIMIT})
  endforeach()
endif()

# ---- plans of the real library -----------------------------------------------------------------

if(NOT GPIPE_CUDNN_HEADERS OR NOT GPIPE_CUDNN_LIBRARY OR NOT GPIPE_DRIVER_STUB OR GPIPE_SANITIZE)
  message(STATUS "no cuDNN, or a build for sanitizers: its graphs are not tested by this build")
  return()
endif()

set(FAKE_DRIVER ${CMAKE_CURRENT_BINARY_DIR}/fake_driver)
set(FAKE_DRIVER_SOURCE ${CMAKE_CURRENT_BINARY_DIR}/generated/fake_driver.c)
add_custom_command(OUTPUT ${FAKE_DRIVER_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DSTUB=${GPIPE_DRIVER_STUB} -DOUTPUT=${FAKE_DRIVER_SOURCE}
          -P ${PLANS}/fake_driver.cmake
  DEPENDS ${PLANS}/fake_driver.cmake COMMENT "" VERBATIM)
add_library(fake_driver SHARED ${FAKE_DRIVER_SOURCE})
set_target_properties(fake_driver PROPERTIES C_VISIBILITY_PRESET default PREFIX "" SUFFIX "" OUTPUT_NAME libcuda.so.1
  LIBRARY_OUTPUT_DIRECTORY ${FAKE_DRIVER} COMPILE_OPTIONS "-w")

# The files that describe graphs need no runtime of CUDA.
set(CUDNN_SOURCES runtime/device/cuda/cudnn/library.c runtime/device/cuda/cudnn/graph.c
  runtime/device/cuda/cudnn/plan.c runtime/device/cuda/cudnn/attention.c
  runtime/device/cuda/cudnn/attention_piece.c runtime/device/cuda/cudnn/convolution/graph.c)
get_filename_component(CUDNN_FOLDER ${GPIPE_CUDNN_LIBRARY} DIRECTORY)
foreach(name cudnn_plans_test convolution_plans_test)
  add_executable(${name} ${PLANS}/${name}.c ${CUDNN_SOURCES})
  target_include_directories(${name} PRIVATE runtime tests/c)
  target_include_directories(${name} SYSTEM PRIVATE ${GPIPE_CUDNN_HEADERS})
  target_link_libraries(${name} PRIVATE gpipe_runtime m ${CMAKE_DL_LIBS})
  add_dependencies(${name} fake_driver)
  add_test(NAME cuda/${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(cuda/${name} PROPERTIES TIMEOUT ${C_LIMIT}
    ENVIRONMENT "LD_LIBRARY_PATH=${FAKE_DRIVER}:${CUDNN_FOLDER}")
endforeach()
