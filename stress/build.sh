# Sourced by scripts/stress and stress/stages: how programs that attack the library are configured,
# built and started, one build folder for each sanitizer. Knows no stage.
# shellcheck shell=bash

stress_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stress_into=${stress_into:-$stress_root/build}
stress_launch=() # what a program of the sanitizer is started with

# stress_use SANITIZER: none, tsan or asan. Sets stress_build and stress_launch, and the tool's
# options: none that hide a report.
stress_use() {
  stress_build=$stress_into/stress-$1
  stress_launch=()
  stress_flags=(-DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g" -DCMAKE_CXX_COMPILER=clang++)
  case "$1" in
    none) stress_flags=(-DCMAKE_BUILD_TYPE=Release) ;;
    tsan)
      stress_flags+=(-DCAIRN_SANITIZE=thread)
      # oneTBB comes uninstrumented. Older runtimes die where addresses are randomised widely.
      export TSAN_OPTIONS="ignore_noninstrumented_modules=1"
      if setarch -R true 2>/dev/null; then stress_launch=(setarch -R); fi
      ;;
    # The fuzz targets are of the same build: others only carry the counters of what was covered.
    asan)
      stress_flags+=("-DCAIRN_SANITIZE=fuzzer-no-link,address,undefined" -DCAIRN_BUILD_BENCH=ON)
      # What was freed is kept for a while, which must not look like memory that grows.
      export ASAN_OPTIONS="quarantine_size_mb=64"
      ;;
    *) return 1 ;;
  esac
}

# stress_make TARGET...: after stress_use.
stress_make() {
  [[ -f $stress_build/build.ninja ]] ||
    cmake -S "$stress_root" -B "$stress_build" -G Ninja -DCAIRN_WERROR=ON -DCAIRN_HIP=OFF \
      -DCAIRN_BUILD_STRESS=ON -DCAIRN_BUILD_TESTS=OFF -DCAIRN_BUILD_BENCH=OFF \
      -DCAIRN_SYNC_HOOK=ON "${stress_flags[@]}" || return 1
  cmake --build "$stress_build" --target "$@"
}
