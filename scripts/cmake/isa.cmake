# scripts/cmake/isa.cmake - know which instructions the compiler may use, so that the program can
# refuse a processor that lacks them instead of dying of SIGILL.

# The features that __builtin_cpu_supports of gcc and clang both know and that -march can switch on
# beyond plain x86-64.
set(GPIPE_KNOWN_ISA sse3 ssse3 sse4.1 sse4.2 popcnt avx avx2 fma bmi bmi2 avx512f avx512vl avx512bw avx512dq avx512cd
  avx512vbmi avx512ifma avx512vnni avx512bitalg avx512vpopcntdq avx512vbmi2 avx512bf16
  gfni vpclmulqdq)

# Write a header with GP_BUILT_ISA(X): one X("feature") for each that -march=${GPIPE_MARCH} switches
# on.
function(gpipe_isa_header path)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -march=${GPIPE_MARCH} -dM -E -x c /dev/null
    OUTPUT_VARIABLE macros RESULT_VARIABLE failed ERROR_VARIABLE reason)
  if(failed)
    message(FATAL_ERROR "the compiler does not take -march=${GPIPE_MARCH}: ${reason}")
  endif()
  set(rows "")
  foreach(feature ${GPIPE_KNOWN_ISA})
    string(TOUPPER ${feature} macro)
    string(REPLACE "." "_" macro ${macro})
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND macros MATCHES "#define __${macro}__ 1")
      string(APPEND rows " \\\n  X(\"${feature}\")")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${path} CONTENT "/* Made by scripts/cmake/isa.cmake. */
#define GP_BUILT_MARCH \"${GPIPE_MARCH}\"
#define GP_BUILT_ISA(X)${rows}
" @ONLY)
endfunction()

# Compile what runs before that check for the oldest processor.
function(gpipe_baseline_sources)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "-march=x86-64")
  endif()
endfunction()
