# scripts/cmake/cuda.cmake - the CUDA plugin, where there is a toolkit.
#
# The core links nothing of CUDA: libgpipe_cuda.so lies beside the program and is opened when a
# script asks for a GPU, so one build runs on machines with and without a driver. GPIPE_CUDA=AUTO
# makes the plugin where nvcc and cuBLASLt are found, ON insists, OFF and LATER leave it out.
# scripts/build sets LATER, and AUTO once there is a driver or the tests are built. No plugin is
# made under a sanitizer, because nvcc's host code and NVIDIA's libraries are not instrumented
# (tests/cuda compiles the kernels for the host instead).

set(GPIPE_CUDA AUTO CACHE STRING "make libgpipe_cuda.so: AUTO (where CUDA 12 or newer is found), ON, OFF or LATER")
set_property(CACHE GPIPE_CUDA PROPERTY STRINGS AUTO ON OFF LATER)

# ---- finding the toolkit -----------------------------------------------------------------------

# Say why there is no plugin; where one was demanded, stop.
macro(gpipe_no_cuda reason)
  if(GPIPE_CUDA STREQUAL "AUTO")
    message(STATUS "no CUDA plugin: ${reason}")
    return()
  endif()
  message(FATAL_ERROR "GPIPE_CUDA=${GPIPE_CUDA}: ${reason}")
endmacro()

if(NOT GPIPE_CUDA MATCHES "^(AUTO|ON|OFF|LATER)$")
  message(FATAL_ERROR "GPIPE_CUDA is '${GPIPE_CUDA}', wanted AUTO, ON, OFF or LATER")
endif()
if(GPIPE_CUDA MATCHES "^(OFF|LATER)$")
  return()
endif()
if(GPIPE_SANITIZE)
  gpipe_no_cuda("GPIPE_SANITIZE=${GPIPE_SANITIZE}")
endif()

# Machine code for A100, H100 and Blackwell's GPUs (sm_100, sm_120), and PTX from which a driver
# makes code for newer ones. All of it is made of the PTX of sm_80: kernels use nothing newer, and
# the front end takes half as long as the four assemblers together. Without this CMake takes sm_75.
set(GPIPE_CUDA_NEWER "")
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 80-virtual)
  set(GPIPE_CUDA_NEWER sm_90,sm_100,sm_120)
endif()
option(GPIPE_CUDA_LINES "kernels keep the lines of their source, for profilers and sanitizers" OFF)

# nvcc is often installed without being on the PATH. It is passed by the environment, so that
# check_language still tries it.
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(GPIPE_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  mark_as_advanced(GPIPE_NVCC)
  if(GPIPE_NVCC)
    set(ENV{CUDACXX} ${GPIPE_NVCC})
  endif()
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  gpipe_no_cuda("no working nvcc (set CUDACXX to it, or put it on the PATH)")
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
  gpipe_no_cuda("CUDA ${CMAKE_CUDA_COMPILER_VERSION} is too old, expected 12 or newer")
endif()
if(GPIPE_CUDA_NEWER AND CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8) # does not know Blackwell
  set(GPIPE_CUDA_NEWER sm_90)
endif()
find_package(CUDAToolkit)
if(NOT TARGET CUDA::cudart_static OR NOT TARGET CUDA::cublasLt)
  gpipe_no_cuda("the toolkit of ${CMAKE_CUDA_COMPILER} has no static runtime or no cuBLASLt")
endif()

# ---- the plugin --------------------------------------------------------------------------------

file(GLOB_RECURSE CUDA_SOURCES CONFIGURE_DEPENDS runtime/*.cu runtime/device/cuda/*.c)
# cuDNN is opened when the first graph is made; only its headers are needed here. Without them
# attention and convolutions run on kernels of our own.
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDNN_PATH PATH_SUFFIXES include)
mark_as_advanced(CUDNN_INCLUDE_DIR)
if(NOT CUDNN_INCLUDE_DIR)
  list(FILTER CUDA_SOURCES EXCLUDE REGEX "/cudnn/.*\\.c$")
  list(APPEND CUDA_SOURCES runtime/device/cuda/cudnn/missing.c)
endif()

# Ops of one formula each compile in less time than the headers before them, so the files of a
# folder are one to the compiler. Their functors have names of their own (ops/elementwise/map.cuh).
set(FORMULAS activation arithmetic choice function)
foreach(folder ${FORMULAS})
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/runtime/ops/${folder}/*.cu)
  list(REMOVE_ITEM CUDA_SOURCES ${files})
  list(TRANSFORM files REPLACE "(.+)" "#include \"\\1\"\n")
  list(JOIN files "" included)
  set(joined ${CMAKE_CURRENT_BINARY_DIR}/generated/cuda/${folder}.cu)
  file(CONFIGURE OUTPUT ${joined} CONTENT "/* Made by scripts/cmake/cuda.cmake. */\n${included}")
  list(APPEND CUDA_SOURCES ${joined})
endforeach()

add_library(gpipe_cuda MODULE ${CUDA_SOURCES})
target_include_directories(gpipe_cuda PRIVATE runtime ${GPIPE_GENERATED})
add_dependencies(gpipe_cuda gpipe_rows)
target_include_directories(gpipe_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(gpipe_cuda PRIVATE CUDA::cudart_static CUDA::cublasLt Threads::Threads m ${CMAKE_DL_LIBS})

if(CUDNN_INCLUDE_DIR)
  target_include_directories(gpipe_cuda SYSTEM PRIVATE ${CUDNN_INCLUDE_DIR})
  target_compile_definitions(gpipe_cuda PRIVATE GP_HAVE_CUDNN=1)
endif()

# The oldest GPU that there is code for, to tell the owner of an older one ("native" and "all" say
# nothing).
set(oldest 0)
foreach(architecture ${CMAKE_CUDA_ARCHITECTURES})
  string(REGEX MATCH "^[0-9]+" number "${architecture}")
  if(number AND (oldest EQUAL 0 OR number LESS oldest))
    set(oldest ${number})
  endif()
endforeach()
target_compile_definitions(gpipe_cuda PRIVATE GP_CUDA_OLDEST=${oldest})

# By default nvcc fuses products and sums in one copy of a loop and not in another (a vector loop
# and its rest), so the bits of an element would depend on which of them computes it. Attention has
# one copy of its products, and needs them fused.
set(unfused ${CUDA_SOURCES})
list(FILTER unfused INCLUDE REGEX "\\.cu$")
list(FILTER unfused EXCLUDE REGEX "/attention/")
set_source_files_properties(${unfused} PROPERTIES COMPILE_OPTIONS -fmad=false)

# nvcc takes none of the C compiler's options, and its code for the host is not pedantic.
get_property(c_options DIRECTORY PROPERTY COMPILE_OPTIONS)
set(cuda_options -O3 -Xfatbin=-compress-all -Xcompiler=-Wall,-Wextra)
if(GPIPE_CUDA_NEWER)
  list(APPEND cuda_options --generate-code=arch=compute_80,code=[${GPIPE_CUDA_NEWER}])
endif()
if(GPIPE_CUDA_LINES)
  list(APPEND cuda_options -lineinfo)
endif()
if(GPIPE_WERROR)
  list(APPEND cuda_options -Werror=all-warnings -Xcompiler=-Werror)
endif()
set_target_properties(gpipe_cuda PROPERTIES
  COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:C>:${c_options}>;$<$<COMPILE_LANGUAGE:CUDA>:${cuda_options}>"
  CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
  CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  CUDA_RUNTIME_LIBRARY Static CUDA_RESOLVE_DEVICE_SYMBOLS OFF)
set(CMAKE_CUDA_FLAGS_RELEASE "")

# The plugin exports one symbol. No symbol may be missing: a forgotten kernel is a link error that
# names it. It is never unloaded, because CUDA's runtime cannot be. $ORIGIN finds the libraries of a
# package that brings its own.
set(map ${CMAKE_CURRENT_BINARY_DIR}/generated/gpipe_cuda.map)
file(CONFIGURE OUTPUT ${map} CONTENT "{ global: gp_cuda_plugin_open; local: *; };\n")
target_link_options(gpipe_cuda PRIVATE -Wl,--no-undefined -Wl,--version-script=${map} -Wl,-z,nodelete
  -Wl,--enable-new-dtags)
set_target_properties(gpipe_cuda PROPERTIES LINK_DEPENDS ${map}
  BUILD_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR}" INSTALL_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR}")

# The program looks in ../lib/gpipe, the module beside itself.
install(TARGETS gpipe_cuda LIBRARY DESTINATION lib/gpipe)
install(CODE [[
  set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/lua/5.4")
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK ../../gpipe/libgpipe_cuda.so "${folder}/libgpipe_cuda.so" SYMBOLIC)]])
