# scripts/cmake/embed.cmake - put every Lua source into the program as a C array.
#
# The program must run without its source tree. Each file becomes one C file of its own (only what
# was edited is made again); an index lists them with module name and chunk name. Included by
# CMakeLists.txt it defines gpipe_embed(); run with `cmake -DINPUT= -DOUTPUT= -DSYMBOL= -P` it
# converts one file.

if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${INPUT}" hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(SIZE "${INPUT}" size)
  # A closing zero keeps the array legal for an empty file; it is not part of the size.
  file(WRITE "${OUTPUT}" "/* Made from ${INPUT}. */\n#include \"embed.h\"\n\n"
    "const unsigned char ${SYMBOL}[] = {\n${bytes}0x00};\nconst size_t ${SYMBOL}_size = ${size};\n")
  return()
endif()

set(GPIPE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

# gpipe/init.lua -> gpipe, gpipe/nn/linear.lua -> gpipe.nn.linear
function(gpipe_module_name path result)
  string(REGEX REPLACE "\\.lua$" "" name "${path}")
  string(REGEX REPLACE "/init$" "" name "${name}")
  string(REPLACE "/" "." name "${name}")
  set(${result} "${name}" PARENT_SCOPE)
endfunction()

# Embed all of folder/**.lua; result receives the C files to compile.
function(gpipe_embed folder result)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/generated/lua)
  file(GLOB_RECURSE paths CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.lua)
  list(SORT paths)
  set(sources "")
  set(declarations "")
  set(rows "")
  foreach(path ${paths})
    gpipe_module_name(${path} module)
    string(MAKE_C_IDENTIFIER "gp_lua_${path}" symbol)
    string(REGEX REPLACE "_+" "_" symbol ${symbol})
    add_custom_command(OUTPUT ${out}/${symbol}.c
      COMMAND ${CMAKE_COMMAND} -DINPUT=${folder}/${path} -DOUTPUT=${out}/${symbol}.c -DSYMBOL=${symbol}
              -P ${GPIPE_EMBED_SCRIPT}
      DEPENDS ${folder}/${path} ${GPIPE_EMBED_SCRIPT} COMMENT "" VERBATIM)
    list(APPEND sources ${out}/${symbol}.c)
    string(APPEND rows "  {\"${module}\", \"@${path}\", ${symbol}, &${symbol}_size},\n")
  endforeach()
  foreach(source ${sources})
    get_filename_component(symbol ${source} NAME_WE)
    string(APPEND declarations "extern const unsigned char ${symbol}[];\nextern const size_t ${symbol}_size;\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out}/index.c CONTENT "/* Made by scripts/cmake/embed.cmake. */
#include \"embed.h\"

${declarations}
const gp_lua_source gp_lua_sources[] = {
${rows}  {NULL, NULL, NULL, NULL}};
")
  set(${result} ${out}/index.c ${sources} PARENT_SCOPE)
endfunction()
