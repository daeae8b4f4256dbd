# scripts/cmake/mpi.cmake - the MPI plugin, where there is an MPI (Open MPI, MPICH).
#
# The core links nothing of MPI: libgpipe_mpi.so lies beside the program and is opened in jobs that
# mpirun has started. GPIPE_MPI=AUTO makes it where CMake finds MPI, ON insists, OFF leaves it out.

set(GPIPE_MPI AUTO CACHE STRING "make libgpipe_mpi.so: AUTO (where MPI is found), ON or OFF")
set_property(CACHE GPIPE_MPI PROPERTY STRINGS AUTO ON OFF)

if(GPIPE_MPI STREQUAL "OFF" OR (GPIPE_SANITIZE AND NOT GPIPE_MPI STREQUAL "ON"))
  return()
endif()
find_package(MPI QUIET COMPONENTS C)
if(NOT MPI_C_FOUND)
  if(GPIPE_MPI STREQUAL "ON")
    message(FATAL_ERROR "GPIPE_MPI=ON: CMake finds no MPI, expected Open MPI or MPICH (mpicc on the PATH)")
  endif()
  message(STATUS "no MPI plugin: CMake finds no MPI (Debian: libopenmpi-dev)")
  return()
endif()

add_library(gpipe_mpi MODULE runtime/ranks/mpi/plugin.c)
target_include_directories(gpipe_mpi PRIVATE runtime)
target_link_libraries(gpipe_mpi PRIVATE MPI::MPI_C)
# gcc takes MPICH's MPI_STATUSES_IGNORE for an array that is too short.
target_compile_options(gpipe_mpi PRIVATE -Wno-stringop-overflow)
target_link_options(gpipe_mpi PRIVATE -Wl,--no-undefined -Wl,-z,nodelete)
install(TARGETS gpipe_mpi LIBRARY DESTINATION lib/gpipe)

# scripts/bench/ranks compares with what MPI does without us.
add_executable(bench_mpi EXCLUDE_FROM_ALL scripts/bench/mpi.c)
target_link_libraries(bench_mpi PRIVATE MPI::MPI_C)
target_compile_options(bench_mpi PRIVATE -Wno-stringop-overflow)
add_dependencies(bench_ranks bench_mpi gpipe_mpi)
