# What script/aarch64 and script/wheels share: a cross compiler for 64-bit ARM, ARM's libraries, and
# programs for ARM that start like others. Sourced after lib.sh, never run.

debian=${KILN_DEBIAN_MIRROR:-http://deb.debian.org/debian}
sysroot=$root/build/aarch64-sysroot
# What script/bootstrap installs, and Python, for ARM.
aarch64_libraries="libc6-dev libstdc++-12-dev libgomp1 libhwy-dev libcli11-dev nlohmann-json3-dev doctest-dev
  zlib1g-dev libpng-dev libjpeg-dev libwebp-dev libopenblas-openmp-dev opencl-c-headers libsndfile1
  python3.11-venv libpython3.11-dev"
aarch64_tools="mmdebstrap qemu-user-static gcc-12-aarch64-linux-gnu g++-12-aarch64-linux-gnu"

# aarch64_compiler: installs the cross compiler and qemu where they are missing.
aarch64_compiler() {
  for tool in mmdebstrap qemu-aarch64-static aarch64-linux-gnu-gcc-12 aarch64-linux-gnu-g++-12; do
    command -v $tool >/dev/null || {
      [ "$(id -u)" -eq 0 ] ||
        die "needs $tool; as root, run: apt-get update && apt-get install $aarch64_tools"
      echo "${0##*/}: installing $aarch64_tools"
      apt-get -qq update || true
      # shellcheck disable=SC2086 # a list of packages
      DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends $aarch64_tools \
        >/dev/null || die "the cross compiler could not be installed"
      return 0
    }
  done
}

# aarch64_sysroot: unpacks the libraries. Links to absolute paths are made relative: they mean this
# folder.
aarch64_sysroot() {
  [ "$(cat "$sysroot/kiln-packages" 2>/dev/null || true)" != "$aarch64_libraries" ] || return 0
  echo "${0##*/}: unpacking ARM's libraries from $debian"
  rm -rf "$sysroot"
  mkdir -p "$root/build"
  # shellcheck disable=SC2086 # a list of packages
  mmdebstrap --quiet --architectures=arm64 --variant=extract \
    --include="$(echo $aarch64_libraries | tr ' ' ',')" bookworm "$sysroot" "$debian" ||
    die "ARM's libraries could not be unpacked"
  find "$sysroot" -type l -lname '/*' | while read -r link; do
    ln -sfnr "$sysroot$(readlink "$link")" "$link"
  done
  echo "$aarch64_libraries" >"$sysroot/kiln-packages"
}

# aarch64_starts: whether a program for ARM can be started here.
aarch64_starts() {
  "$sysroot/lib/ld-linux-aarch64.so.1" --version >/dev/null 2>&1
}

# The bytes are the head of an ELF file for ARM, and which of its bits count.
register_qemu() {
  binfmt=/proc/sys/fs/binfmt_misc
  [ -e $binfmt/register ] || mount -t binfmt_misc none $binfmt 2>/dev/null || return 1
  printf '%s' ':kiln-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:F' \
    2>/dev/null >$binfmt/register
}

# aarch64_programs: makes the kernel start programs for ARM.
aarch64_programs() {
  aarch64_starts && return
  if [ "$(id -u)" -eq 0 ]; then register_qemu || true; fi
  aarch64_starts ||
    die "programs for ARM do not start here; as root, run: apt-get install binfmt-support qemu-user-static"
}
