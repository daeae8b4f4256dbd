# scripts/gpu/prefix.sh - what a machine without a registry builds with: the pack of
# scripts/gpu-pack, or its own.
#
# scripts/gpu-check reads this file. The pack is unpacked to a folder of this call, so pkg-config
# must be told where its files are; only those of its libraries are used that the machine lacks.
# Pieces of CUDA that the toolkit lacks are looked for among Python's packages, where images for
# machine learning have them.

cudnn_headers='' # their folder
nvidia='' # Python's packages of NVIDIA, a folder each

add_to() { export "$1=$2${!1:+:${!1}}"; } # VARIABLE FOLDER: in front

# Unpacks the pack's files and relocates them; does nothing where there is no pack or it is for
# another processor.
unpack_prefix() {
  local prefix=$work/prefix file
  [ -e "$pack/prefix.tar.gz" ] || { echo "no tools in $pack: using what is on the machine"; return 1; }
  grep -qx "architecture = $(uname -m)" "$pack/MANIFEST" || { echo "the pack is for another processor"; return 1; }
  mkdir -p "$prefix"
  tar -C "$prefix" -xzf "$pack/prefix.tar.gz" || return
  for file in "$prefix"/usr/lib/*/pkgconfig/*.pc; do sed -i "s|/usr\b|$prefix/usr|" "$file"; done
  use_prefix "$prefix"
}

use_prefix() {
  local libraries
  libraries=$(dirname "$(compgen -G "$1/usr/lib/*/lua" | head -n 1)")
  add_to PATH "$1/usr/bin"
  [ ! -x "$1/opt/cmake/bin/cmake" ] || add_to PATH "$1/opt/cmake/bin"
  add_to PKG_CONFIG_PATH "$libraries/pkgconfig"
  LUA_PATH="$1/usr/share/lua/5.4/?.lua;$1/usr/share/lua/5.4/?/init.lua;${LUA_PATH:-;}"
  LUA_CPATH="$libraries/lua/5.4/?.so;${LUA_CPATH:-;}"
  link_missing "$libraries"/lib*.so.[0-9] "$libraries"/lib*.so.[0-9][0-9]
}

# Links the libraries that the loader does not know into a folder where it looks.
link_missing() {
  local file name known
  known=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null)
  mkdir -p "$work/libraries"
  for file in "$@"; do
    name=$(basename "$file")
    [ ! -e "$file" ] || grep -qF "$name " <<<"$known" || ln -sf "$file" "$work/libraries/$name"
  done
}

# find_in NAME: the first file of this name among Python's packages of NVIDIA.
find_in() { [ -z "$nvidia" ] || find "$nvidia" -name "$1" 2>/dev/null | sort | head -n 1; }

# Finds the toolkit's folder; CUDACXX, as CMake takes it, is its compiler.
find_toolkit() {
  local nvcc libraries
  nvcc=${CUDACXX:-$(command -v nvcc)}
  [ -n "$nvcc" ] || nvcc=$(compgen -G '/usr/local/cuda*/bin/nvcc' | head -n 1)
  [ -n "$nvcc" ] || nvcc=$(find_in nvcc)
  [ -n "$nvcc" ] || { echo "no nvcc on this machine"; return 1; }
  export CUDACXX=$nvcc
  toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  PATH=$PATH:$toolkit/bin:$toolkit/compute-sanitizer
  # A program that was built elsewhere looks where the toolkit was there.
  for libraries in "$toolkit"/lib64 "$toolkit"/targets/*/lib; do
    [ ! -d "$libraries" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries"
  done
}

# need_library NAME: makes a link for the linker, because the file in Python's packages ends in a
# version.
need_library() {
  local found
  compgen -G "$toolkit/lib*/$1.so" >/dev/null && return
  compgen -G "$toolkit/targets/*/lib/$1.so" >/dev/null && return
  found=$(find_in "$1.so*")
  [ -n "$found" ] || return 0
  ln -sf "$found" "$work/libraries/$1.so"
  ln -sf "$found" "$work/libraries/$(basename "$found")"
  add_to CMAKE_LIBRARY_PATH "$work/libraries"
}

need_header() { # NAME
  local found
  find -L "$toolkit/include" -maxdepth 1 -name "$1" 2>/dev/null | grep -q . && return
  found=$(find_in "$1")
  [ -z "$found" ] || add_to CPATH "$(dirname "$found")"
}

# Finds cuDNN: headers to build with, and a folder from which its parts load each other.
find_cudnn() {
  local header library
  header=$(compgen -G '/usr/include/cudnn.h' || compgen -G '/usr/include/*/cudnn.h' || find_in cudnn.h)
  header=$(head -n 1 <<<"$header")
  [ -z "$header" ] || cudnn_headers=$(dirname "$header")
  library=$(find_in 'libcudnn.so.*')
  [ -z "$library" ] || add_to LD_LIBRARY_PATH "$(dirname "$library")"
}

find_prefix() {
  mkdir -p "$work/libraries"
  unpack_prefix
  add_to LD_LIBRARY_PATH "$work/libraries"
  nvidia=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null || true)
  find_toolkit || toolkit=/nowhere # a program that was built elsewhere needs libraries alone
  need_header cublasLt.h
  need_library libcublasLt
  find_cudnn
}

# Lists the architectures of the GPUs that are here, so that nvcc is quick; without a GPU that of
# H100. PTX is made too, for tools that pretend to be a GPU.
architectures() {
  local list
  if [ -n "${GPIPE_GPU_ARCHITECTURES:-}" ]; then echo "$GPIPE_GPU_ARCHITECTURES"; return; fi
  list=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | grep -E '^[0-9]+\.[0-9]+$' | tr -d . | sort -u)
  [ -n "$list" ] || list=90
  sed 's/\(.*\)/\1-real;\1-virtual/' <<<"$list" | paste -sd';'
}
