# scripts/gpu/parts.sh - which checks of scripts/gpu-check are left, and running them within its
# time.
#
# A check leaves two files in the folder of results: NAME.row, its line of the table, and NAME.log,
# all that it printed. Both are packed into logs.tar.gz after each, from which a later call takes up
# what is done.
#
# NAME.row: name|verdict|passed|failed|pending|seconds|sources

file_of() { echo "$results/${1//\//-}"; }

# ---- what to do ----------------------------------------------------------------------------------

selected=() # names of checks

# Those that --only names, by part or by name. Errors: ends the program.
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

# Take up the results of an earlier call.
take_earlier() {
  sources=$(tree_hash)
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

same='' # yes: results of other sources count for nothing

# What ended well before a call that was told to continue is done, whatever changed since; what
# failed is done with the same sources.
is_done() { # NAME
  local row verdict of
  read -r row 2>/dev/null <"$results/${1//\//-}.row" || return
  IFS='|' read -r _ verdict _ _ _ _ of <<<"$row"
  case $verdict in
    ok*) [ -z "$same" ] || [ "$of" = "$sources" ] ;;
    "cut short"*) false ;;
    *) [ "$of" = "$sources" ] ;;
  esac
}

left() { local name; for name in "${selected[@]}"; do [ "$name" = build ] || is_done "$name" || echo "$name"; done; }

print_left() {
  local name
  for name in $(left); do printf '%-28s %4s s  %s\n' "$name" "${check_limit[$name]}" "${check_command[$name]}"; done
}

# ---- running -------------------------------------------------------------------------------------

# Tests that passed, failed and wait, as busted and the tests of C count them; dashes where nothing
# counts.
count_tests() { # LOG
  awk '/^\[  PASSED  \] [0-9]+ tests?\./ { good += $4; any = 1 }
    /^\[  FAILED  \] [0-9]+ tests?, listed/ || /^\[  ERROR   \] [0-9]+ errors?, listed/ { bad += $4; any = 1 }
    /^\[ SKIPPED  \] [0-9]+ tests?, listed/ { waiting += $4; any = 1 }
    /^\[ +[A-Z]+ +\] [0-9]+/ { any = 1 }
    /^[0-9]+ passed, [0-9]+ failed$/ { good += $1; bad += $3; any = 1 }
    END { if (any) print good + 0, bad + 0, waiting + 0; else print "- - -" }' "$1"
}

verdict() { # STATUS LIMIT LOG
  case $1 in
    0) if grep -q '^\([a-z0-9_.]* \)\?skipped: ' "$3"; then echo "ok, something skipped"; else echo ok; fi ;;
    124 | 137) if [ "$limit" -lt "$2" ]; then echo "cut short: time was up"; else echo "TOO LONG"; fi ;;
    *) echo "FAILED ($1)" ;;
  esac
}

# Figures, as the reply of a machine that is lent shows only the end of what is printed.
figures='^[a-z][a-z0-9_.]*\.[a-z0-9_.-]+ |^skipped: '

# What the report takes, and a check to end once it is told to; a twentieth of the time.
reserve=$((seconds / 20 + 1))

seconds_left() { echo $((seconds - SECONDS - reserve)); }

# run_check NAME: its command and what that starts end at the limit.
run_check() {
  local name=$1 file begin=$SECONDS status limit=${check_limit[$1]} good bad waiting show
  file=$(file_of "$name")
  [ "$limit" -le "$(seconds_left)" ] || limit=$(seconds_left)
  [ "$limit" -ge 2 ] || return 1
  echo "== $name"
  : >"$file.log" # tail wants it before the check writes
  # shellcheck disable=SC2086 # words hold no spaces
  timeout -k 3 "$limit" bash -c '"$@"' check ${check_command[$name]} >>"$file.log" 2>&1 </dev/null &
  running=$!
  tail --pid=$running -s 0.2 -n +1 -f "$file.log" | grep --line-buffered -E "$figures" &
  show=$!
  wait "$running"
  status=$?
  running=''
  wait $show
  read -r good bad waiting < <(count_tests "$file.log")
  echo "$name|$(verdict $status "${check_limit[$name]}" "$file.log")|$good|$bad|$waiting|$((SECONDS - begin))|$sources" >"$file.row"
  cut -d'|' -f2,6 "$file.row" | sed "s#\(.*\)|\(.*\)#   \1, \2 s#"
  write_report
}

running='' # process of the check that runs
stop_running() { [ -z "$running" ] || kill "$running" 2>/dev/null; }

# All that is left, while there is time.
run_left() {
  local name
  for name in $(left); do run_check "$name" || return 0; done
}

# Set program: the one that was named, that of the pack, or one that is built.
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
