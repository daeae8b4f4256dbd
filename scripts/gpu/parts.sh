# scripts/gpu/parts.sh - finds which checks of scripts/gpu-check are left, and runs them within its
# time.
#
# A check leaves two files in the folder of results: NAME.row, its line of the table, and NAME.log,
# all that it printed. Both are packed into logs.tar.gz after each check, and a later call reads
# there what is done.
#
# NAME.row: name|verdict|passed|failed|pending|seconds|sources|tries
# Verdicts: ok; FAILED and TOO LONG, which say something of the program; INFRA, which says that the
# machine was at fault; cut short. Only what is ok is done.

file_of() { echo "$results/${1//\//-}"; }

# ---- what to do ----------------------------------------------------------------------------------

selected=() # names of checks

# Selects the checks that --only names, by part or by name. Errors: ends the program.
select_checks() {
  local name wanted found
  [ -n "$only" ] || { selected=("${check_names[@]}"); return; }
  for wanted in ${only//,/ }; do
    found=''
    for name in "${check_names[@]}"; do
      if [ "$name" = "$wanted" ] || [ "${check_part[$name]}" = "$wanted" ]; then found=yes; fi
    done
    [ -n "$found" ] || refuse "--only: there is no part '$wanted', expected some of ${parts[*]}"
  done
  for name in "${check_names[@]}"; do
    case ,$only, in *,"$name",* | *,"${check_part[$name]}",*) selected+=("$name") ;; esac
  done
  [ ${#selected[@]} -gt 0 ] || refuse "--only names no part, expected some of ${parts[*]}"
}

# Takes up the results of an earlier call.
take_earlier() {
  if [ -z "$earlier" ]; then
    earlier=$out/logs.tar.gz same=yes
    [ -s "$earlier" ] || return 0
  elif [ ! -s "$earlier" ]; then
    echo "nothing to continue in $earlier: this is the first call"
    return 0
  fi
  tar -C "$results" -xzf "$earlier" || { rm -rf "${results:?}"/*; refuse "--continue: $earlier is no archive of results"; }
  rm -f "$results/no_gpu"
}

same='' # yes: results of other sources do not count

# Sets verdict, seconds, of (its sources) and tries from a check's row; fails where it has none.
read_row() { # NAME
  local row
  read -r row 2>/dev/null <"$results/${1//\//-}.row" || return
  IFS='|' read -r _ verdict _ _ _ seconds_before of tries <<<"$row"
}

# A check that ended well before a call with --continue is done, whatever changed since.
is_done() { # NAME
  local verdict seconds_before of tries
  read_row "$1" || return
  case $verdict in
    ok*) [ -z "$same" ] || [ "$of" = "$sources" ] ;;
    *) [ -n "$skip_failed" ] && says_much "$verdict" && [ "$of" = "$sources" ] ;;
  esac
}

says_much() { case $1 in FAILED* | "TOO LONG"*) ;; *) false ;; esac; } # VERDICT: about the program?

# 0: failed once, and is done first, because a cold or hanging machine must not hide the result. 2:
# failed twice with these sources, and is done last, so that it does not take the time of the
# others.
turn_of() { # NAME
  local verdict seconds_before of tries
  if ! read_row "$1" || ! says_much "$verdict" || [ "$of" != "$sources" ]; then echo 1; return; fi
  if [ "${tries:-1}" -gt 1 ]; then echo 2; else echo 0; fi
}

# Specs run by the seconds that they took before, so that most of them are reached; the rest as
# listed.
time_of() { # NAME
  local verdict seconds_before='' of tries
  [ "${check_part[$1]}" = specs ] && read_row "$1" || true
  echo "${seconds_before:-0}"
}

left() {
  local name number=0
  for name in "${selected[@]}"; do
    number=$((number + 1))
    if [ "$name" = build ] || is_done "$name"; then continue; fi
    printf '%s %s %s %s %s\n' "$(turn_of "$name")" "$(rank_of "$name")" "$(time_of "$name")" $number "$name"
  done | sort -n -k1,1 -k2,2 -k3,3 -k4,4 | cut -d' ' -f5
}

# Only specs are sorted, among themselves: what is listed before or after them keeps its place.
rank_of() { # NAME
  if [ "${check_part[$1]}" = specs ]; then echo 1; else echo 0; fi
}

print_left() {
  local name
  for name in $(left); do printf '%-28s %4s s  %s\n' "$name" "${check_limit[$name]}" "${check_command[$name]}"; done
}

# ---- running -------------------------------------------------------------------------------------

# Counts the tests that passed, failed and are pending, as busted and the C tests report them;
# dashes where nothing counts.
count_tests() { # LOG
  awk '/^\[  PASSED  \] [0-9]+ tests?\./ { good += $4; any = 1 }
    /^\[  FAILED  \] [0-9]+ tests?, listed/ || /^\[  ERROR   \] [0-9]+ errors?, listed/ { bad += $4; any = 1 }
    /^\[ SKIPPED  \] [0-9]+ tests?, listed/ { waiting += $4; any = 1 }
    /^\[ +[A-Z]+ +\] [0-9]+/ { any = 1 }
    /^[0-9]+ passed, [0-9]+ failed$/ { good += $1; bad += $3; any = 1 }
    END { if (any) print good + 0, bad + 0, waiting + 0; else print "- - -" }' "$1"
}

# The exit code by which a check says that the machine is at fault (EX_UNAVAILABLE of sysexits.h).
machine_fault=69

# A failure says nothing about the program if the GPU does not answer afterwards.
verdict() { # STATUS LIMIT LOG
  case $1 in
    0) if grep -q '^\([a-z0-9_.]* \)\?skipped: ' "$3"; then echo "ok, something skipped"; else echo ok; fi; return ;;
    "$machine_fault") echo "INFRA: the machine"; return ;;
    124 | 137) [ "$limit" -ge "$2" ] || { echo "cut short: time was up"; return; } ;;
  esac
  if ! answers; then echo "INFRA: the GPU does not answer"; return; fi
  case $1 in 124 | 137) echo "TOO LONG" ;; *) echo "FAILED ($1)" ;; esac
}

# Asks whether the GPU computes, in a process of its own, because one that saw a fault sees it
# forever.
answers() {
  [ -x "${program:-}" ] || return 0
  timeout -k 1 "${GPIPE_GPU_ANSWER:-20}" "$program" scripts/gpu/answers.lua >/dev/null 2>&1
}

# The pattern of figures, which are shown while a check runs: the reply of a lent machine holds only
# the end of what is printed.
figures='^[a-z][a-z0-9_.]*\.[a-z0-9_.-]+ |^skipped: '

# Seconds for the report, and for a check to end once it is told to: a twentieth of the time.
reserve=$((seconds / 20 + 1))

seconds_left() { echo $((seconds - SECONDS - reserve)); }

# Prints clocks, power and why the clocks are lower than they could be, before and after each check,
# because a slow GPU explains a slow figure.
print_state() { # WHEN
  local state
  state=$(nvidia-smi -i 0 --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active \
    --format=csv,noheader 2>/dev/null) || return 0
  echo "state.$1 $state"
}

# Prints the kernel's last messages after a failed check, where faults of the driver show.
print_kernel_log() { dmesg 2>/dev/null | tail -n 15 | sed 's/^/kernel: /'; }

# run_check NAME: runs a check; its command and what that starts end at the limit.
run_check() {
  local name=$1 file begin=$SECONDS status limit=${check_limit[$1]} good bad waiting show tries=0
  local verdict seconds_before of result
  file=$(file_of "$name")
  [ "$limit" -le "$(seconds_left)" ] || limit=$(seconds_left)
  [ "$limit" -ge 2 ] || return 1
  if read_row "$name" && [ "$of" = "$sources" ] && says_much "$verdict"; then tries=${tries:-1}; else tries=0; fi
  echo "== $name"
  print_state before >"$file.log" # tail wants it before the check writes
  # shellcheck disable=SC2086 # words hold no spaces
  timeout -k 3 "$limit" bash -c '"$@"' check ${check_command[$name]} >>"$file.log" 2>&1 </dev/null &
  running=$!
  tail --pid=$running -s 0.2 -n +1 -f "$file.log" | grep --line-buffered -E "$figures" &
  show=$!
  wait "$running"
  status=$?
  running=''
  wait $show
  print_state after | tee -a "$file.log"
  read -r good bad waiting < <(count_tests "$file.log")
  result=$(verdict $status "${check_limit[$name]}" "$file.log")
  case $result in ok* | "cut short"*) ;; *) print_kernel_log >>"$file.log" ;; esac
  echo "$name|$result|$good|$bad|$waiting|$((SECONDS - begin))|$sources|$((tries + 1))" >"$file.row"
  cut -d'|' -f2,6 "$file.row" | sed "s#\(.*\)|\(.*\)#   \1, \2 s#"
  write_report
}

running='' # process id of the check that runs
stop_running() { [ -z "$running" ] || kill "$running" 2>/dev/null; }

# Runs all that is left, while there is time.
run_left() {
  local name
  for name in $(left); do run_check "$name" || return 0; done
}

# Sets program: the one that was named, that of the pack, or one that it builds.
get_program() {
  local why
  if [ -n "$built" ]; then
    program=$built/gpipe-lua
  elif why=$(take_prebuilt "$work/built"); then
    program=$work/built/gpipe-lua
    echo "build.prebuilt $(fact_of_pack commit), CUDA $(fact_of_pack CUDA), cuDNN $(fact_of_pack cuDNN)" |
      tee "$(file_of build).log"
    echo "build|ok, prebuilt|-|-|-|0|$sources" >"$(file_of build).row"
  else
    echo "build.prebuilt not used: $why"
    program=$build/gpipe-lua
    run_check build
  fi
  GPIPE_LUA=$program GPIPE_MODULE=$(dirname "$program")/gpipe.so
  [ -x "$program" ]
}
