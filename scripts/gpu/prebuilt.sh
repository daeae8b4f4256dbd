# scripts/gpu/prebuilt.sh - a program that was built elsewhere: scripts/gpu-pack makes it,
# scripts/gpu-check takes it.
#
# prebuilt.tar.gz holds the program, the module, the plugin and the tests in C; prebuilt.txt says
# from what sources and for what machine, one `name = value` a line.

prebuilt_targets=(gpipe-lua gpipe_module gpipe_cuda device_cuda_plugin_test cuda_ops_test
  cuda_work_test cuda_sm_ids)
prebuilt_files=(gpipe-lua gpipe.so libgpipe_cuda.so device_cuda_plugin_test cuda_ops_test
  cuda_work_test cuda_sm_ids)

# Hashes the contents of all files that those are made of. Where there is no git, as on a machine
# that got only the checkout, there are no ignored files either.
tree_hash() {
  (cd "$root" && source_files | grep -zv '_spec\.lua$' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
}

source_files() {
  local folders=(CMakeLists.txt runtime bindings lua scripts/cmake tests/c tests/cuda tests/gpu)
  git ls-files -z --cached --others --exclude-standard -- "${folders[@]}" 2>/dev/null ||
    find "${folders[@]}" -type f -print0
}

# CUDA's version as the compiler says it: 13.0.
cuda_version() { "${CUDACXX:-nvcc}" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p'; }

cudnn_version() { # FOLDER of its headers
  local file=$1/cudnn_version.h
  [ -r "$file" ] || { echo none; return; }
  awk '$1 == "#define" && $2 ~ /^CUDNN_(MAJOR|MINOR|PATCHLEVEL)$/ { v = v dot $3; dot = "." } END { print v }' "$file"
}

fact_of_pack() { sed -n "s/^$1 = //p" "$pack/prebuilt.txt"; }

# Unpacks the program to FOLDER, or prints why it cannot be used here and fails.
take_prebuilt() { # FOLDER
  local driver capability file
  [ -s "$pack/prebuilt.tar.gz" ] || { echo "there is none in $pack"; return 1; }
  [ "$(fact_of_pack architecture)" = "$(uname -m)" ] || { echo "it is for another processor"; return 1; }
  [ "$(fact_of_pack tree)" = "$(tree_hash)" ] || { echo "it was made of other sources ($(fact_of_pack commit))"; return 1; }
  driver=$(driver_version)
  if [ -n "$driver" ] && [ "${driver%%.*}" -lt "$(fact_of_pack CUDA | cut -d. -f1)" ]; then
    echo "the driver is for CUDA $driver, it for $(fact_of_pack CUDA)"
    return 1
  fi
  for capability in $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -E '^[0-9.]+$' | tr -d .); do
    grep -qw "$capability" <<<"$(fact_of_pack architectures | tr -c '0-9' ' ')" ||
      { echo "it has no code for compute capability $capability"; return 1; }
  done
  mkdir -p "$1"
  tar -C "$1" -xzf "$pack/prebuilt.tar.gz" || { echo "its archive is broken"; return 1; }
  file=$("$1/gpipe-lua" --version 2>&1) || { echo "it does not run: $(tail -n 1 <<<"$file")"; return 1; }
}

# The newest CUDA that the driver knows; empty without nvidia-smi.
driver_version() { nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' | head -n 1; }

# Builds the program and writes both files to FOLDER. Errors: prints the end of the output.
make_prebuilt() { # FOLDER
  local architectures=${GPIPE_GPU_ARCHITECTURES:-90-real;90-virtual} headers
  cmake -S "$root" -B "$build" -G Ninja -DGPIPE_MARCH=x86-64-v3 -DGPIPE_CUDA=ON \
    "-DCMAKE_CUDA_ARCHITECTURES=$architectures" -DGPIPE_CUDA_LINES=ON || return
  ninja -C "$build" "${prebuilt_targets[@]}" || return
  rm -rf "$work/prebuilt"
  mkdir -p "$work/prebuilt"
  (cd "$build" && cp "${prebuilt_files[@]}" "$work/prebuilt/") || return
  strip --strip-debug "$work"/prebuilt/* || return
  tar -C "$work/prebuilt" --owner=0 --group=0 --sort=name -czf "$1/prebuilt.tar.gz" . || return
  headers=$(sed -n 's/^CUDNN_INCLUDE_DIR:PATH=//p' "$build/CMakeCache.txt")
  printf '%s = %s\n' architecture "$(uname -m)" tree "$(tree_hash)" march x86-64-v3 \
    commit "$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)" \
    CUDA "$(sed -n 's/^set(CMAKE_CUDA_COMPILER_VERSION "\([0-9]*\.[0-9]*\).*/\1/p' "$build"/CMakeFiles/*/CMakeCUDACompiler.cmake)" \
    cuDNN "$(cudnn_version "$headers")" architectures "$architectures" >"$1/prebuilt.txt"
}
