# scripts/gpu/checks.sh - what scripts/gpu-check can do: its checks, in the order in which they run,
# and the commands that they are.
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

# The first call must say what is needed to judge speed; tests of what is known to be right on the
# host's form come last.
list_checks() {
  local file parts="2 4 8" tests="device_cuda_plugin_test cuda_work_test cuda_ops_test"
  [ -z "$rehearse" ] || parts=2 tests=device_cuda_plugin_test
  check build build 360 build_program
  check facts facts 30 print_machine
  check ceilings ceilings 60 bench_gpu ceilings
  check ops ops/attention 60 bench_gpu attention
  check gpt gpt/default 90 train_gpt
  # It measures ceilings of its own, which take long where a GPU is only pretended.
  [ -n "$rehearse" ] || check gpt gpt/profile 60 train_gpt GPIPE_GPU_PROFILE=1
  list_switches 1
  check parts parts/sm_ids 30 show_sm_ids
  check gpt gpt/torch-eager 90 run_torch eager
  check gpt gpt/torch-compiled 150 run_torch compiled
  check ops ops/kernels-f32 60 bench_gpu kernels --kernels f32
  check ops ops/kernels-bf16 60 bench_gpu kernels --kernels bf16
  list_convolutions
  list_switches 2
  check gpt gpt/again 60 train_gpt
  for file in $parts; do check parts "parts/$file" 60 bench_gpu "parts$file"; done
  [ -n "$rehearse" ] || check specs specs/quickstart 60 run_example quickstart --steps 20 # it writes, too
  check specs specs/digits 60 run_example digits --epochs 2
  for file in $tests; do check specs "specs/$file" 120 run_test "$file"; done
  for file in $(list_specs); do
    check specs "specs/$(basename "${file/spec\/cuda\//cuda-}" _spec.lua)" 150 run_spec "$file"
  done
  for file in memcheck racecheck synccheck initcheck; do
    check sanitizers "sanitizers/$file-f32" 120 sanitize "$file" f32
    check sanitizers "sanitizers/$file-bf16" 120 sanitize "$file" bf16
    check sanitizers "sanitizers/$file-bf16-own" 120 with GPIPE_CONVOLUTION=own sanitize "$file" bf16 own
  done
}

# Path against path, and speed; our own kernels are slow, on the host too slow for a rehearsal.
list_convolutions() {
  local precision
  [ -z "$rehearse" ] || return 0
  check conv conv/exact 90 bench_gpu convolution
  check conv conv/exact-own 90 with GPIPE_CONVOLUTION=own bench_gpu convolution
  for precision in bf16 tf32 f32; do
    check conv "conv/resnet-$precision" 90 bench_gpu resnet --precision "$precision"
  done
  check conv conv/resnet-bf16-own 180 with GPIPE_CONVOLUTION=own bench_gpu resnet --precision bf16 --steps 2
}

# All of them; in rehearsals one that is quick everywhere.
list_specs() {
  if [ -n "$rehearse" ]; then echo tests/gpu/streams_spec.lua; return; fi
  echo tests/gpu/*_spec.lua tests/spec/cuda/*_spec.lua
}

# Lines `WHEN NAME SETTING...` of the table whose WHEN is this one.
list_switches() { # WHEN
  local when name settings
  while read -r when name settings; do
    [ "$when" != "$1" ] || check gpt "gpt/$name" 60 train_gpt "$settings"
  done < <(sed 's/#.*//' "$switches")
}

# ---- the program ---------------------------------------------------------------------------------

# The plugin that is tested: the one beside the program, where none is named.
plugin() { echo "${GPIPE_CUDA_PLUGIN:-$(dirname "$program")/libgpipe_cuda.so}"; }

# Each its own call of ninja: what is wanted first is not lost with what cannot be built.
build_program() {
  local cuda=ON
  [ -z "${GPIPE_CUDA_PLUGIN:-}" ] || cuda=OFF
  cmake -S "$root" -B "$build" -G Ninja "-DGPIPE_CUDA=$cuda" "-DCMAKE_CUDA_ARCHITECTURES=$(architectures)" \
    ${cudnn_headers:+"-DCUDNN_INCLUDE_DIR=$cudnn_headers"} || return
  ninja -C "$build" gpipe-lua || return
  [ $cuda = OFF ] || ninja -C "$build" -k 0 gpipe_cuda || return
  ninja -C "$build" -k 0 gpipe_module cuda_work_test cuda_ops_test device_cuda_plugin_test || return
  [ $cuda = OFF ] || ninja -C "$build" cuda_sm_ids
}

# ---- facts ---------------------------------------------------------------------------------------

fact() { echo "facts.$1 ${2:-not here}"; }

# What the figures of a report depend on, and what the machine lacks for some of the checks.
print_machine() {
  local tool
  fact gpu "$(nvidia-smi --query-gpu=name,compute_cap,memory.total,driver_version --format=csv,noheader 2>/dev/null | paste -sd';')"
  fact clocks "$(nvidia-smi --query-gpu=clocks.sm,clocks.mem,clocks.max.sm,power.limit,temperature.gpu --format=csv,noheader 2>/dev/null | paste -sd';')"
  fact driver.cuda "$(driver_version)"
  fact toolkit "$(cuda_version)"
  fact system "$(uname -sr), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
  for tool in compute-sanitizer ncu nvcc; do fact "$tool" "$(command -v $tool)"; done
  fact torch "$(python3 -c 'import torch; print(torch.__version__)' 2>/dev/null)"
  "$program" --version | sed 's/^/facts.version /'
  "$program" --list-devices | sed 's/^/facts.devices /'
}

# ---- speed ---------------------------------------------------------------------------------------

# Options of rehearsals; a string, because shells hand no arrays to those that they start.
small="--layers 2 --width 64 --heads 2 --context 32 --vocabulary 300 --batch 2 --steps 2 --rounds 1 --rows 64"
small="$small --product 128 --tokens 64"

bench_gpu() { # SECTION OPTIONS...
  local section=$1; shift
  "$program" scripts/bench/gpu.lua --only "$section" "$@" ${rehearse:+$small}
}

with() { (export "$1" && shift && "$@"); } # VARIABLE=VALUE COMMAND...

train_gpt() { # SETTINGS OPTIONS...: words VARIABLE=VALUE come first
  local settings=()
  while [[ ${1:-} =~ ^[A-Z_]+= ]]; do settings+=("$1"); shift; done
  env "${settings[@]}" "$program" scripts/bench/gpu.lua --only gpt ${rehearse:+$small} "$@"
}

run_torch() { # eager or compiled
  python3 -c 'import torch' >/dev/null 2>&1 || { echo "torch.$1 skipped: PyTorch is not here"; return; }
  scripts/gpu/torch "$1"
}

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

# Each test is named before it runs, so that the log of one that hangs says which.
run_spec() { "$program" "$(command -v busted)" --ignore-lua --output=gtest "$1"; }

# Tests of C take the plugin by this name, and would test nothing without it.
run_test() {
  local test; test=$(dirname "$program")/$1
  [ -x "$test" ] || { echo "skipped: it was not built here"; return; }
  GPIPE_CUDA_PLUGIN=$(plugin) "$test"
}

# A small training under one of compute-sanitizer's tools.
sanitize() { # TOOL ARGUMENTS-OF-THE-TRAINING...
  local tool=$1; shift
  command -v compute-sanitizer >/dev/null || { echo "skipped: compute-sanitizer is not here"; return; }
  compute-sanitizer --tool "$tool" --error-exitcode 1 "$program" tests/gpu/small.lua "$@" 2>&1 | tee "$work/sanitizer"
  local status=${PIPESTATUS[0]}
  if [ "$status" != 0 ] && grep -q 'Device not supported' "$work/sanitizer"; then
    echo "skipped: compute-sanitizer does not support this machine"
    return 0
  fi
  return "$status"
}
