# scripts/gpu/checks.sh - the checks of scripts/gpu-check, in the order in which they run, and the
# commands that they run.
#
# A line of figures begins with a name in small letters, as scripts/bench/figure.lua prints them.

# check PART NAME LIMIT COMMAND...: LIMIT in seconds; words of COMMAND hold no spaces.
check_names=()
declare -A check_part check_limit check_command
check() {
  check_names+=("$2")
  check_part[$2]=$1 check_limit[$2]=$3
  shift 3
  check_command[${check_names[-1]}]=$*
}

# The order suits three calls of ten minutes: the first must say whether the numbers are right and
# how fast a step is, the second what each part of a step reaches. Tests that are known to pass on
# the host come last. Limits are several times the expected time of a check.
list_checks() {
  check build build 360 build_program
  list_first
  list_second
  list_third
}

list_first() {
  check facts facts 15 print_machine
  check truth truth/touch 60 touch_libraries
  check truth truth/replay 60 bench_gpu replay
  check gpt gpt/default 90 train_gpt
  check ceilings ceilings 60 bench_gpu ceilings
  check ops ops/shapes 60 bench_gpu shapes
  check ops ops/attention 60 bench_gpu attention
  check ops ops/attention-cudnn 60 with GPIPE_ATTENTION=cudnn bench_gpu attention
  # It measures ceilings of its own, which take long where a GPU is only pretended.
  [ -n "$rehearse" ] || check gpt gpt/profile 60 train_gpt GPIPE_GPU_PROFILE=1
  check ops ops/ncu 150 profile_kernels
  list_switches 1
  check gpt gpt/torch-eager 90 run_torch eager
  check gpt gpt/torch-compiled 150 run_torch compiled
  check gpt gpt/torch-best 240 run_torch best
  check parts parts/sm_ids 30 show_sm_ids
}

list_second() {
  local number parts="2 4 8"
  [ -z "$rehearse" ] || parts=2
  check gpt gpt/again 60 train_gpt
  [ -n "$rehearse" ] || check gpt gpt/model 90 bench_gpu model
  check ops ops/kernels-f32 60 bench_gpu kernels --kernels f32
  check ops ops/kernels-bf16 60 bench_gpu kernels --kernels bf16
  list_convolutions
  list_switches 2
  for number in $parts; do check parts "parts/$number" 60 bench_gpu "parts$number"; done
  check parts parts/pairs 60 bench_gpu pairs
  list_ranks
}

# Two processes on one GPU, and on two where there are two: by each way that values take.
list_ranks() {
  local which
  for which in one two; do
    check ranks "ranks/$which" 90 bench_ranks $which
    check ranks "ranks/$which-staged" 90 with GPIPE_IPC=0 bench_ranks $which
  done
  check ranks ranks/two-nccl 120 with GPIPE_NCCL=1 bench_ranks two
}

list_third() {
  local file tests="device_cuda_plugin_test cuda_work_test cuda_ops_test"
  [ -z "$rehearse" ] || tests=device_cuda_plugin_test
  check sanitizers sanitizers/memcheck-bf16 120 sanitize memcheck bf16
  check sanitizers sanitizers/racecheck-bf16-own 120 with GPIPE_CONVOLUTION=own \
    with GPIPE_ATTENTION=own sanitize racecheck bf16 own
  check sanitizers sanitizers/initcheck-bf16 120 sanitize initcheck bf16
  [ -n "$rehearse" ] || check specs specs/quickstart 60 run_example quickstart --steps 20 # it writes, too
  check specs specs/digits 60 run_example digits --epochs 2
  for file in $tests; do check specs "specs/$file" 120 run_test "$file"; done
  for file in $(list_specs); do
    check specs "specs/$(basename "${file/spec\/cuda\//cuda-}" _spec.lua)" 150 run_spec "$file"
  done
  for file in memcheck racecheck synccheck initcheck; do
    check sanitizers "sanitizers/$file-f32" 120 sanitize "$file" f32
  done
  for file in synccheck racecheck; do
    check sanitizers "sanitizers/$file-bf16" 120 sanitize "$file" bf16
  done
  for file in memcheck synccheck initcheck; do
    check sanitizers "sanitizers/$file-bf16-own" 120 with GPIPE_CONVOLUTION=own \
      with GPIPE_ATTENTION=own sanitize "$file" bf16 own
  done
}

# Compares path with path, and measures speed. Our own kernels are slow, on the host too slow for a
# rehearsal. The batch is 256, because with few images a step consists of launches.
list_convolutions() {
  local precision
  [ -z "$rehearse" ] || return 0
  check conv conv/exact 90 bench_gpu convolution
  check conv conv/exact-own 90 with GPIPE_CONVOLUTION=own bench_gpu convolution
  for precision in bf16 tf32; do
    check conv "conv/resnet-$precision" 90 bench_gpu resnet --precision "$precision" --images 256
  done
  check conv conv/resnet-bf16-timed 180 with GPIPE_CONVOLUTION=timed bench_gpu resnet --precision bf16 --images 256
  check conv conv/resnet-f32 90 bench_gpu resnet --precision f32 --images 64
  check conv conv/resnet-bf16-own 180 with GPIPE_CONVOLUTION=own bench_gpu resnet --precision bf16 --steps 2
}

# Lists all specs; in a rehearsal, one that is quick everywhere.
list_specs() {
  if [ -n "$rehearse" ]; then echo tests/gpu/streams_spec.lua; return; fi
  echo tests/gpu/*_spec.lua tests/spec/cuda/*_spec.lua
}

# Prints the lines `WHEN NAME SETTING...` of the table whose WHEN is this one.
list_switches() { # WHEN
  local when name settings
  while read -r when name settings; do
    [ "$when" != "$1" ] || check gpt "gpt/$name" 60 train_gpt "$settings"
  done < <(sed 's/#.*//' "$switches")
}

# ---- the program ---------------------------------------------------------------------------------

# Prints the path of the plugin under test: the one beside the program, where none is named.
plugin() { echo "${GPIPE_CUDA_PLUGIN:-$(dirname "$program")/libgpipe_cuda.so}"; }

# Each target has its own call of ninja, so that one that cannot be built does not hold up the
# others.
build_program() {
  local cuda=ON
  [ -z "${GPIPE_CUDA_PLUGIN:-}" ] || cuda=OFF
  cmake -S "$root" -B "$build" -G Ninja "-DGPIPE_CUDA=$cuda" "-DCMAKE_CUDA_ARCHITECTURES=$(architectures)" -DGPIPE_CUDA_LINES=ON \
    ${cudnn_headers:+"-DCUDNN_INCLUDE_DIR=$cudnn_headers"} || return
  ninja -C "$build" gpipe-lua || return
  [ $cuda = OFF ] || ninja -C "$build" -k 0 gpipe_cuda || return
  ninja -C "$build" -k 0 gpipe_module cuda_work_test cuda_ops_test device_cuda_plugin_test || return
  [ $cuda = OFF ] || ninja -C "$build" cuda_sm_ids
}

# ---- facts ---------------------------------------------------------------------------------------

fact() { echo "facts.$1 ${2:-not here}"; }

# Prints what the figures of a report depend on, and what the machine lacks for some of the checks.
print_machine() {
  local tool
  fact gpu "$(nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version --format=csv,noheader 2>/dev/null | paste -sd';')"
  fact clocks "$(nvidia-smi --query-gpu=clocks.max.sm,clocks.max.mem,power.limit --format=csv,noheader 2>/dev/null | paste -sd';')"
  fact driver.cuda "$(driver_version)"
  fact toolkit "$(cuda_version)"
  fact system "$(uname -sr), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
  for tool in compute-sanitizer ncu nvcc; do fact "$tool" "$(command -v $tool)"; done
  # The version comes from the metadata: loading PyTorch takes long on a cold disk.
  fact torch "$(timeout 5 python3 -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null)"
  "$program" --version | sed 's/^/facts.version /'
  "$program" --list-devices | sed 's/^/facts.devices /'
}

# Loads what later checks use, so that none of them waits for a cold disk: the libraries for
# products, attention and convolutions, and their kernels.
touch_libraries() {
  local code
  for code in bf16 f32; do
    "$program" tests/gpu/small.lua $code || return
  done
  echo "touch.seconds $SECONDS s, products, attention and convolutions in two precisions"
}

# ---- speed ---------------------------------------------------------------------------------------

# Options of rehearsals; a string, because a shell does not pass arrays to the shells that it
# starts.
small="--layers 2 --width 64 --heads 2 --context 32 --vocabulary 300 --batch 2 --steps 2 --rounds 1 --rows 64"
small="$small --product 128 --tokens 64"

bench_gpu() { # SECTION OPTIONS...
  local section=$1; shift
  "$program" scripts/bench/gpu.lua --only "$section" "$@" ${rehearse:+$small}
}

bench_ranks() { # one or two GPUs
  timeout 80 "$program" --ranks 2 scripts/bench/gpu_ranks.lua "$1" ${rehearse:+0.05}
}

with() { (export "$1" && shift && "$@"); } # VARIABLE=VALUE COMMAND...

train_gpt() { # SETTINGS OPTIONS...: words VARIABLE=VALUE come first
  local settings=()
  while [[ ${1:-} =~ ^[A-Z_]+= ]]; do settings+=("$1"); shift; done
  env "${settings[@]}" "$program" scripts/bench/gpu.lua --only gpt ${rehearse:+$small} "$@"
}

run_torch() { # eager, compiled or best
  timeout 60 python3 -c 'import torch' >/dev/null 2>&1 || { echo "torch.$1 skipped: PyTorch is not here"; return; }
  scripts/gpu/torch "$1"
}

# Runs two layers of full width under Nsight Compute: bytes, time and the tensor units' share of
# each kernel of a step, as kernels.csv beside the other results and summed up.
profile_kernels() { scripts/gpu/ncu "$program" "$results/kernels.csv" ${rehearse:+$small}; }

show_sm_ids() {
  local test; test=$(dirname "$program")/cuda_sm_ids
  [ -x "$test" ] || { echo "gpu.sms skipped: cuda_sm_ids was not built here"; return; }
  GPIPE_CUDA_PLUGIN=$(plugin) "$test" ${rehearse:+10}
}

# ---- tests ---------------------------------------------------------------------------------------

run_example() { # NAME OPTIONS...
  local name=$1; shift
  "$program" --devices cuda:0,cuda:0 "examples/$name.lua" "$@"
}

# Names each test before it runs, so that the log of one that hangs says which it was.
run_spec() { "$program" "$(command -v busted)" --ignore-lua --output=gtest "$1"; }

# C tests find the plugin by this variable, and would test nothing without it.
run_test() {
  local test; test=$(dirname "$program")/$1
  [ -x "$test" ] || { echo "skipped: it was not built here"; return; }
  GPIPE_CUDA_PLUGIN=$(plugin) "$test"
}

# A small training under one of compute-sanitizer's tools. Libraries read bytes that they never wrote
# (paddings of tiles) and use them for nothing, and cuDNN's attention hands over tiles in ways that
# racecheck takes for races: these two tools look at our own kernels alone.
sanitize() { # TOOL ARGUMENTS-OF-THE-TRAINING...
  local tool=$1 filter=(); shift
  command -v compute-sanitizer >/dev/null || { echo "skipped: compute-sanitizer is not here"; return; }
  [[ $tool != initcheck && $tool != racecheck ]] || filter=(--kernel-name-exclude "regex=cudnn|cutlass|cublas|nvjet|gemm|xmma|sm90_|sm80_")
  compute-sanitizer --tool "$tool" "${filter[@]}" --error-exitcode 1 "$program" tests/gpu/small.lua "$@" 2>&1 | tee "$work/sanitizer"
  local status=${PIPESTATUS[0]}
  if [ "$status" != 0 ] && grep -q 'Device not supported' "$work/sanitizer"; then
    echo "skipped: compute-sanitizer does not support this machine"
    return 0
  fi
  return "$status"
}
