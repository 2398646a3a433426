#!/usr/bin/env bash
# Builds Debian packages of the release build into build/packages.
# Usage: deploy/package.sh [--version VERSION] [--no-build] [--offline DIR]
#   --version  of the packages; default: the project's, with ~devN.COMMIT unless the commit is tagged vX
#   --no-build takes build/release as it is
#   --offline  makes DIR a repository for apt with the packages and all that they need of Debian 12
# Who made them: DEBFULLNAME and DEBEMAIL. SOURCE_DATE_EPOCH is the commit's time unless it is set.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD

version="" offline="" builds=yes
while (($# > 0)); do
  case $1 in
    --version) version=$2; shift 2 ;;
    --offline) offline=$2; shift 2 ;;
    --no-build) builds=no; shift ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

project_version=$(sed -n 's/^project(assay VERSION \([^ ]*\).*/\1/p' CMakeLists.txt)
if [[ -z $version ]]; then
  version=$project_version
  git describe --exact-match --match "v$version" >/dev/null 2>&1 ||
    version+="~dev$(git rev-list --count HEAD).$(git rev-parse --short HEAD)"
fi
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
maintainer="${DEBFULLNAME:-Assay} <${DEBEMAIL:-packages@assay.invalid}>"
export SOURCE_DATE_EPOCH

if [[ $builds == yes ]]; then
  deploy/install_packages.sh packages
  cmake --workflow --preset release
fi

tree=build/packages/tree
rm -rf build/packages
mkdir -p "$tree"
cp -r deploy/debian "$tree/debian"
sed -i "s/@MAINTAINER@/$maintainer/" "$tree/debian/control"
cat >"$tree/debian/changelog" <<END
assay ($version) unstable; urgency=medium

  * See /usr/share/doc/assay/changelog.gz.

 -- $maintainer  $(date --utc --date="@$SOURCE_DATE_EPOCH" +'%a, %d %b %Y %H:%M:%S +0000')
END
cuda=""
[[ ! -e build/release/bin/libassay_cuda.so ]] || cuda=yes
(cd "$tree" && ASSAY_SOURCE=$source ASSAY_BUILD=$source/build/release ASSAY_CUDA=$cuda \
  dpkg-buildpackage --build=binary --no-sign --no-check-builddeps >"$source/build/packages/log" 2>&1) ||
  { tail -30 build/packages/log >&2; exit 1; }
ls build/packages/*.deb

[[ -z $offline ]] || deploy/offline_repository.sh build/packages "$offline"
