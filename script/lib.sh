# Shared by the scripts beside it; sourced, never run. Leaves the shell in the repository's root.

set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
jobs=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# usage: prints the comment at the head of the script that runs.
usage() {
  awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"
}

# build PRESET TARGET...: configures (unless that is done) and builds; no target means everything.
# With KILN_CI=1 in the environment, as in .ci/run, warnings are errors.
build() {
  build_preset=$1
  shift
  if [ "${KILN_CI-}" = 1 ] && [ ! -f "build/$build_preset/build.ninja" ]; then
    configure_options="${configure_options-} -DKILN_WERROR=ON"
  fi
  if [ ! -f "build/$build_preset/build.ninja" ] || [ -n "${configure_options:-}" ]; then
    # shellcheck disable=SC2086 # a list of options
    cmake --preset "$build_preset" ${configure_options:-} || die "configuring failed"
  fi
  if [ $# -gt 0 ]; then
    cmake --build --preset "$build_preset" --parallel "$jobs" --target "$@" || die "the build failed"
  else
    cmake --build --preset "$build_preset" --parallel "$jobs" || die "the build failed"
  fi
}
