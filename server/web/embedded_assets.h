// The files of server/web/assets, as CMake has put them into the program.

#ifndef SERVER_WEB_EMBEDDED_ASSETS_H_
#define SERVER_WEB_EMBEDDED_ASSETS_H_

#include <span>

namespace assay::web {

struct EmbeddedAsset {
  const char* name;
  const char* content;
};

std::span<const EmbeddedAsset> EmbeddedAssets();

}  // namespace assay::web

#endif  // SERVER_WEB_EMBEDDED_ASSETS_H_
