# scripts/count.awk - count the tests in a log of ctest: prints passed, failed, pending.
#
# C tests end with "N passed, M failed", busted with "N successes / M failures / K errors / P
# pending". A program that failed without having counted a failure (crash, time-out, a leak at its
# end) counts as one.

/^[0-9]+\/[0-9]+ Testing: / { good = bad = 0 }
/^[0-9]+ passed, [0-9]+ failed$/ { good += $1; bad += $3 }
/^[0-9]+ success(es)? \/ [0-9]+ failures? \/ [0-9]+ errors? \/ [0-9]+ pending/ { good += $1; bad += $4 + $7; waiting += $10 }
/^Test Passed\.$/ { ended_well = 1 }
/^Test (Failed|Timeout)|^Test [Ff]ailed|^Test not run|^Unable to/ { ended_well = 0 }
/^".*" end time: / {
  if (!ended_well && bad == 0) bad = 1
  passed += good
  failed += bad
  good = bad = ended_well = 0
}
END { print passed + 0, failed + 0, waiting + 0 }
