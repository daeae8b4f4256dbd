# scripts/cmake/tests.cmake - one ctest entry per C test and per busted spec.
#
# busted always runs inside gpipe-lua: on Debian a plain `busted` may run under Lua 5.1.

# Seconds after which a test counts as hung; sanitizers are slow.
set(C_LIMIT 300)
set(SPEC_LIMIT 900)
if(GPIPE_SANITIZE)
  set(C_LIMIT 1500)
  set(SPEC_LIMIT 3600)
endif()

# The test of tests/c/FOLDER/X_test.c is c/FOLDER/X_test, its program FOLDER_X_test.
file(GLOB_RECURSE C_TESTS CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/tests/c tests/c/*_test.c)
foreach(source ${C_TESTS})
  string(REPLACE ".c" "" test ${source})
  string(REPLACE "/" "_" name ${test})
  add_executable(${name} tests/c/${source})
  target_include_directories(${name} PRIVATE tests/c)
  target_link_libraries(${name} PRIVATE gpipe_runtime)
  # test.h sets defaults of the sanitizers by functions that their libraries must see.
  set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET default)
  add_test(NAME c/${test} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(c/${test} PROPERTIES TIMEOUT ${C_LIMIT})
endforeach()

# The published schedules are made in Lua; this test reads them as text.
set(PUBLISHED_ROWS ${CMAKE_CURRENT_BINARY_DIR}/published_rows.txt)
set(PUBLISHED_SCRIPT ${CMAKE_CURRENT_SOURCE_DIR}/tests/support/published_rows.lua)
add_custom_command(OUTPUT ${PUBLISHED_ROWS} DEPENDS gpipe-lua ${PUBLISHED_SCRIPT}
  COMMAND gpipe-lua ${PUBLISHED_SCRIPT} > ${PUBLISHED_ROWS} VERBATIM)
target_sources(schedule_messages_test PRIVATE ${PUBLISHED_ROWS})
target_compile_definitions(schedule_messages_test PRIVATE PUBLISHED_ROWS="${PUBLISHED_ROWS}")

# These tests replace rows of the table of ops: one gives a kernel a state, one makes an op work
# channels-last.
foreach(name engine_states_test graph_arrange_test)
  target_link_options(${name} PRIVATE -Wl,--wrap=gp_op_get)
endforeach()

# A kind of link from outside the runtime: pipelines must run over it as over any other.
add_library(gpipe_socket_link MODULE tests/links/socket_link.c)
target_include_directories(gpipe_socket_link PRIVATE $<TARGET_PROPERTY:gpipe_runtime,INTERFACE_INCLUDE_DIRECTORIES>)
add_dependencies(gpipe_socket_link gpipe_runtime) # makes the headers that are generated
target_link_options(gpipe_socket_link PRIVATE -Wl,--no-undefined)
set_target_properties(gpipe_socket_link PROPERTIES C_VISIBILITY_PRESET default)
set(SOCKET_LINK "GPIPE_TEST_LINK=$<TARGET_FILE:gpipe_socket_link>")

# A slow network between two namespaces, for ranks/networks_spec.
add_executable(slow_wire tests/links/slow_wire.c)
set(SLOW_WIRE "GPIPE_TEST_WIRE=$<TARGET_FILE:slow_wire>")

find_program(BUSTED busted)
file(GLOB_RECURSE SPECS CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/tests/spec tests/spec/*_spec.lua)
if(SPECS AND NOT BUSTED)
  message(STATUS "busted is missing: the Lua specs are no tests of this build (scripts/test installs it)")
  return()
endif()
# Specs expect CPUs where they name no device, so the machine's GPUs are hidden from all specs
# except those about GPUs.
foreach(spec ${SPECS})
  string(REPLACE ".lua" "" name ${spec})
  set(hidden ";CUDA_VISIBLE_DEVICES=")
  if(name MATCHES "^cuda/")
    set(hidden "")
  endif()
  add_test(NAME spec/${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMAND gpipe-lua ${BUSTED} --ignore-lua --output=plainTerminal --defer-print tests/spec/${name}.lua)
  set_tests_properties(spec/${name} PROPERTIES TIMEOUT ${SPEC_LIMIT}
    ENVIRONMENT "GPIPE_LUA=$<TARGET_FILE:gpipe-lua>;GPIPE_MODULE=$<TARGET_FILE:gpipe_module>;GPIPE_SANITIZE=${GPIPE_SANITIZE};${SOCKET_LINK};${SLOW_WIRE}${hidden}")
endforeach()

# These specs compare bits, and run a second time over sockets.
foreach(name pipeline/transparency_models_spec pipeline/transparency_rows_spec pipeline/faults_spec)
  get_test_property(spec/${name} ENVIRONMENT environment)
  add_test(NAME spec/${name}_over_sockets WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMAND gpipe-lua ${BUSTED} --ignore-lua --output=plainTerminal --defer-print tests/spec/${name}.lua)
  set_tests_properties(spec/${name}_over_sockets PROPERTIES TIMEOUT ${SPEC_LIMIT}
    ENVIRONMENT "${environment};GPIPE_LINK_PLUGIN=$<TARGET_FILE:gpipe_socket_link>")
endforeach()

# Specs of pipelines on GPUs. They are pending where there is no GPU, except in builds that have the
# plugin compiled for the host.
file(GLOB GPU_SPECS CONFIGURE_DEPENDS tests/gpu/*_spec.lua)
foreach(spec ${GPU_SPECS})
  get_filename_component(name ${spec} NAME_WE)
  add_test(NAME gpu/${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMAND gpipe-lua ${BUSTED} --ignore-lua --output=plainTerminal --defer-print tests/gpu/${name}.lua)
  set_tests_properties(gpu/${name} PROPERTIES TIMEOUT ${SPEC_LIMIT}
    ENVIRONMENT "GPIPE_LUA=$<TARGET_FILE:gpipe-lua>;GPIPE_SANITIZE=${GPIPE_SANITIZE}")
endforeach()
