# scripts/gpu/parts.sh - run the parts of scripts/gpu-check within its time, and write its table and
# report.
#
# A part leaves two files in the folder of results: NAME.row, its line of the table, and NAME.log,
# all that it printed. The report is put together from them after each part, so that one cut short
# says what is known.

no_gpu=no
order=() # names of parts, as they began

file_of() { echo "$results/${1//\//-}"; }

# ---- parts ---------------------------------------------------------------------------------------

# Tests that passed, failed and wait, as busted and the tests of C count them; dashes where nothing
# counts.
count_tests() { # LOG
  awk '/^[0-9]+ success(es)? \/ [0-9]+ failures? \/ [0-9]+ errors? \/ [0-9]+ pending/ { good += $1; bad += $4 + $7; waiting += $10; any = 1 }
    /^[0-9]+ passed, [0-9]+ failed$/ { good += $1; bad += $3; any = 1 }
    END { if (any) print good, bad, waiting + 0; else print "- - -" }' "$1"
}

verdict() { # STATUS
  case $1 in 0) echo ok ;; 124 | 137) echo "TOO LONG" ;; *) echo "FAILED ($1)" ;; esac
}

# run NAME LIMIT COMMAND...: COMMAND is a function or a program; it and what it starts end at the
# limit.
run() {
  local name=$1 limit=$2 file begin=$SECONDS status left=$((seconds - SECONDS)); shift 2
  file=$(file_of "$name")
  [ "$limit" -le "$left" ] || limit=$left
  if [ "$limit" -lt 5 ]; then
    echo "$name|not run: no time left|-|-|-|0" >"$file.row"
    return
  fi
  timeout -k 5 "$limit" bash -c '"$@"' part "$@" >"$file.log" 2>&1 </dev/null
  status=$?
  read -r good bad waiting < <(count_tests "$file.log")
  echo "$name|$(verdict $status)|${good:--}|${bad:--}|${waiting:--}|$((SECONDS - begin))" >"$file.row"
}

# part NAME LIMIT COMMAND...: now; the report is up to date after it.
part() {
  order+=("$1")
  run "$@"
  write_report
}

# at_once NAME LIMIT COMMAND...: beside the others; `wait` afterwards.
at_once() {
  order+=("$1")
  while [ "$(jobs -rp | wc -l)" -ge $((($(nproc) + 1) / 2)) ]; do wait -n; done
  run "$@" &
}

note() { # NAME WHAT: a line of the table where nothing ran
  order+=("$1")
  echo "$1|$2|-|-|-|0" >"$(file_of "$1").row"
  write_report
}

# ---- the report ----------------------------------------------------------------------------------

print_table() {
  local name
  echo "| part | result | passed | failed | pending | seconds |"
  echo "|---|---|---|---|---|---|"
  for name in "${order[@]}"; do
    [ ! -e "$(file_of "$name").row" ] || sed 's/^/| /; s/|/ | /2g; s/$/ |/; s/  */ /g' "$(file_of "$name").row"
  done
}

print_facts() {
  echo "- date: $(date -u '+%Y-%m-%d %H:%M UTC')"
  echo "- commit: $(git describe --always --dirty 2>/dev/null || echo unknown)"
  echo "- GPU: $(nvidia-smi --query-gpu=name,compute_cap,memory.total --format=csv,noheader 2>/dev/null | paste -sd';' || true)"
  echo "- driver: $(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
  echo "- CUDA: $("${CUDACXX:-nvcc}" --version 2>/dev/null | sed -n 's/.*release //p')"
  echo "- system: $(uname -sr), $(nproc) cores${GPIPE_CUDA_PLUGIN:+, plugin $GPIPE_CUDA_PLUGIN}"
}

# What failing parts printed last: busted and ninja say there what is wrong.
print_failures() {
  local name file
  for name in "${order[@]}"; do
    file=$(file_of "$name")
    [ -e "$file.log" ] && ! grep -q '|ok|' "$file.row" 2>/dev/null || continue
    printf '\n### %s\n\n```text\n' "$name"
    tail -n 60 "$file.log" | cut -c1-400
    printf '```\n'
  done
}

figures() { # NAME...: logs of what prints figures
  local name
  for name in "$@"; do
    [ ! -s "$(file_of "$name").log" ] || grep -E '^[a-z0-9_.]+ ' "$(file_of "$name").log"
  done
}

write_report() {
  {
    printf '# What scripts/gpu-check found\n\n'
    print_facts
    printf '\n## Parts\n\n'
    print_table
    printf '\n## Figures\n\n```text\n'
    figures bench/gpu torch
    printf '```\n\n## Failures\n'
    print_failures
  } >"$report.new"
  mv "$report.new" "$report"
}

# The table, where the rest is, and the exit code.
finish() {
  write_report
  print_table
  figures bench/gpu torch
  echo "report: $report; logs: $results"
  if grep -qsE '\|(FAILED|TOO LONG|not run)' "$results"/*.row; then exit 1; fi
  [ $no_gpu = no ] || exit 77
  exit 0
}
