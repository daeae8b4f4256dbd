# tests/cuda/plans/fake_driver.cmake - write the source of a libcuda.so.1 that has every function and no GPU.
#
# cuDNN finalizes plans for a described device, but loads what it has compiled through the driver. With one
# that says "loaded" to that and "no device" to all else, it accepts or refuses graphs as on a machine
# with that GPU. Run as cmake -DNM= -DSTUB= -DOUTPUT= -P: the names are those of the toolkit's stub.

execute_process(COMMAND ${NM} -D --defined-only ${STUB} OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "cannot list the functions of ${STUB}")
endif()
string(REGEX MATCHALL "cu[A-Z][A-Za-z0-9_]*" names "${symbols}")
list(REMOVE_DUPLICATES names)

# Loading gives a handle of something; letting go and settings succeed; texts are texts.
set(LOADS "^(cuModuleLoadData|cuModuleLoadDataEx|cuModuleGetFunction|cuLibraryLoadData|cuLibraryGetKernel\
|cuLibraryGetModule|cuLibraryGetGlobal|cuKernelGetFunction)$")
set(SUCCEEDS "^(cuModuleUnload|cuLibraryUnload|cuKernelSetAttribute|cuKernelSetCacheConfig|cuFuncSetAttribute\
|cuFuncSetCacheConfig)$")

set(text "/* Made by tests/cuda/plans/fake_driver.cmake. */\nstatic char something[64];\n")
foreach(name ${names})
  if(name MATCHES "${LOADS}")
    string(APPEND text "int ${name}(void **made) { *made = something; return 0; }\n")
  elseif(name MATCHES "${SUCCEEDS}")
    string(APPEND text "int ${name}(void) { return 0; }\n")
  elseif(name MATCHES "^cuGetError(Name|String)$")
    string(APPEND text "int ${name}(int error, const char **text) { (void)error; *text = \"no device\"; return 0; }\n")
  else()
    string(APPEND text "int ${name}(void) { return 100; }\n")
  endif()
endforeach()
file(WRITE ${OUTPUT} "${text}")
