# scripts/gpu/report.sh - the report of scripts/gpu-check, put together from the results after each
# check, so that one cut short says what is known.

print_table() {
  local name row
  echo "| check | result | passed | failed | pending | seconds | sources | tries |"
  echo "|---|---|---|---|---|---|---|---|"
  for name in "${check_names[@]}"; do
    if read -r row 2>/dev/null <"$results/${name//\//-}.row"; then echo "| ${row//|/ | } |"; fi
  done
}

print_facts() {
  echo "- date: $(date -u '+%Y-%m-%d %H:%M UTC')"
  echo "- commit: $(git describe --always --dirty 2>/dev/null || fact_of_pack commit 2>/dev/null || echo unknown), sources $sources"
  [ ! -e "$results/no_gpu" ] || echo "- $(cat "$results/no_gpu")"
  sed -n 's/^facts\.\([^ ]*\) /- \1: /p' "$(file_of facts).log" 2>/dev/null
  [ -z "${GPIPE_CUDA_PLUGIN:-}" ] || echo "- plugin: $GPIPE_CUDA_PLUGIN"
  [ -z "$rehearse" ] || echo "- a rehearsal: its sizes are small, and its figures say nothing"
}

# Prints how fast GPT-2 trains with each switch, beside the default; the default runs twice to show
# noise.
print_switches() {
  local name rate base
  base=$(rate_of gpt/default)
  [ -n "$base" ] || return 0
  printf '\n## Training GPT-2\n\n| check | settings | tokens/s | of the default |\n|---|---|---|---|\n'
  for name in "${check_names[@]}"; do
    [ "${check_part[$name]}" = gpt ] && [ -e "$results/${name//\//-}.log" ] || continue
    rate=$(rate_of "$name")
    [ -z "$rate" ] || echo "| $name | ${check_command[$name]#train_gpt} | $rate | $(awk -v a="$rate" -v b="$base" 'BEGIN { printf "%.3f", b ? a / b : 0 }') |"
  done
}

rate_of() { sed -nE 's/^(gpu\.gpt\.tokens|torch\.[a-z]+) ([0-9.]+) tok.*/\2/p' "$(file_of "$1").log" 2>/dev/null | head -n 1; }

print_figures() {
  local name file
  printf '\n## Figures\n'
  for name in "${check_names[@]}"; do
    file=$results/${name//\//-}
    [ "$name" != facts ] && [ -e "$file.log" ] && grep -qE "$figures" "$file.log" || continue
    printf '\n%s\n\n```text\n' "$name"
    grep -E "$figures" "$file.log" | cut -c1-200
    printf '```\n'
  done
}

# Prints the whole profile: it is a table, which the patterns of figures do not match.
print_profile() {
  local log=$results/gpt-profile.log
  [ -s "$log" ] || return 0
  printf '\n## Profile of a step\n\n```text\n'
  grep -v '^gpu\.' "$log" | head -n 200
  printf '```\n'
}

# Prints the end of the logs of failing checks: busted and ninja say there what is wrong.
print_failures() {
  local name file
  printf '\n## Failures\n'
  for name in "${check_names[@]}"; do
    file=$results/${name//\//-}
    [ -e "$file.log" ] && ! grep -q '|ok' "$file.row" 2>/dev/null || continue
    printf '\n### %s\n\n```text\n' "$name"
    tail -n 60 "$file.log" | cut -c1-400
    printf '```\n'
  done
}

# Shortens a log to what may travel: its beginning and its end.
shorten_logs() {
  local file
  for file in "$results"/*.log; do
    [ -e "$file" ] && [ "$(stat -c %s "$file")" -gt 400000 ] || continue
    { head -c 100000 "$file"; printf '\n... shortened ...\n'; tail -c 250000 "$file"; } >"$file.short"
    mv "$file.short" "$file"
  done
}

write_report() {
  { printf '# What scripts/gpu-check found\n\n'; print_facts
    printf '\n## Checks\n\n'; print_table
    print_switches; print_profile; print_figures; print_failures; } >"$work/report.md"
  shorten_logs
  tar -C "$results" -czf "$work/logs.tar.gz" .
  cp "$work/report.md" "$work/logs.tar.gz" "$out/"
}

# Prints the tables and where the rest is, and sets the exit code.
finish() {
  local todo
  write_report
  print_switches
  echo
  print_table | cut -d'|' -f1-7
  echo "report: $out/report.md; logs: $out/logs.tar.gz"
  todo=$(left | paste -sd' ')
  [ -z "$todo" ] || echo "left for a later call, with --continue: $todo"
  if grep -qsE '\|(FAILED|TOO LONG|INFRA)' "$results"/*.row; then exit 1; fi
  [ ! -e "$results/no_gpu" ] || exit 77
  [ -z "$todo" ] || exit 3
  exit 0
}
