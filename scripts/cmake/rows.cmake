# scripts/cmake/rows.cmake - ops/rows.def: the rows of ops.def without comments, written when they
# change.
#
# Nearly every file includes the table, so a comment in it would rebuild everything. The compiler's
# preprocessor takes the comments off; a file that stays the same keeps its time, and what depends
# on it is left alone. Run as a script (cmake -P) it makes the file.

if(CMAKE_SCRIPT_MODE_FILE)
  execute_process(COMMAND ${COMPILER} -E -P -x c ${INPUT} OUTPUT_VARIABLE rows COMMAND_ERROR_IS_FATAL ANY)
  if(EXISTS ${OUTPUT})
    file(READ ${OUTPUT} before)
  endif()
  if(NOT rows STREQUAL before)
    file(WRITE ${OUTPUT} "${rows}")
  endif()
  return()
endif()

set(GPIPE_GENERATED ${CMAKE_CURRENT_BINARY_DIR}/generated)
set(rows ${GPIPE_GENERATED}/ops/rows.def)
add_custom_command(OUTPUT ${rows} VERBATIM
  COMMAND ${CMAKE_COMMAND} -DCOMPILER=${CMAKE_C_COMPILER} -DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/runtime/ops/ops.def
    -DOUTPUT=${rows} -P ${CMAKE_CURRENT_SOURCE_DIR}/scripts/cmake/rows.cmake
  DEPENDS runtime/ops/ops.def scripts/cmake/rows.cmake)
add_custom_target(gpipe_rows DEPENDS ${rows})
