#!/usr/bin/env bash
# Runs a part of the conformance suite on further OpenCL implementations, each as the only platform.
#
#   backend_opencl/tests/platforms.sh FOLDER [NAME ...] [-- arguments of pytest]
#
# NAME is pocl, intel or oclgrind; without one, all. They are installed into FOLDER: the first two from
# wheels, Oclgrind from its Debian package (nothing is installed into the system). PYTHON is an
# interpreter with duograph[conformance] and pyopencl; default .venv/bin/python.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
mkdir -p "${1:?the folder to install into}"
folder=$(cd "$1" && pwd)
shift
names=()
while (($#)) && [[ $1 != -- ]]; do names+=("$1") && shift; done
(($#)) && shift
((${#names[@]})) || names=(pocl intel oclgrind)
(($#)) || set -- -k "[add- or [matmul- or [softmax- or [reduce_sum- or [gather- or [cumsum- or [sort- or [conv-"

# Install wheels into a virtual environment of their own, once.
wheels() {
  local place=$folder/$1
  shift
  [[ -d $place ]] && return
  "$python" -m venv "$place"
  "$place/bin/pip" install --quiet --disable-pip-version-check "$@"
}

# Write the file that makes a library an OpenCL platform: name, then the path of the library.
platform() {
  [[ -e $2 ]] || { echo "$1: there is no library" >&2 && exit 1; }
  mkdir -p "$folder/$1.vendors" && echo "$2" >"$folder/$1.vendors/$1.icd"
}

for name in "${names[@]}"; do
  libraries=
  options=
  case $name in
    pocl)
      words=portable
      wheels pocl pocl-binary-distribution
      platform pocl "$(find "$folder/pocl" -name 'libpocl*.so' | head -1)"
      ;;
    intel)
      words="intel(r) opencl"
      wheels intel intel-opencl-rt intel-cmplr-lib-rt
      platform intel "$(find "$folder/intel" -name 'libintelocl.so' | head -1)"
      libraries=$folder/intel/lib
      ;;
    oclgrind)
      words=oclgrind
      if [[ ! -d $folder/oclgrind ]]; then
        mkdir -p "$folder/packages" && cd "$folder/packages"
        apt-get download --quiet oclgrind "$(apt-cache depends oclgrind | awk '/liboclgrind/ {print $2}')"
        for package in *.deb; do dpkg -x "$package" "$folder/oclgrind"; done
      fi
      platform oclgrind "$folder/oclgrind/usr/lib/oclgrind/liboclgrind-rt-icd.so"
      libraries=$(echo "$folder"/oclgrind/usr/lib/*-linux-gnu):$folder/oclgrind/usr/lib/oclgrind
      options=-cl-opt-disable
      ;;
    *) echo "$name: wanted pocl, intel or oclgrind" >&2 && exit 2 ;;
  esac
  echo "== $name"
  (cd "$folder" && LD_LIBRARY_PATH=$libraries PYOPENCL_BUILD_OPTIONS=$options OCL_ICD_VENDORS=$folder/$name.vendors \
    DUOGRAPH_OPENCL_DEVICE=$words DUOGRAPH_CACHE_LIMIT=0 PYOPENCL_NO_CACHE=1 \
    "$python" -m pytest -q -p no:cacheprovider --pyargs duograph.conformance --device OpenCL --quick "$@")
done
