#include "server/web/assets.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/log.h"
#include "common/sha256.h"
#include "server/web/compression.h"
#include "server/web/embedded_assets.h"

namespace assay::web {
namespace {

constexpr size_t kDigestDigits = 16;  // 64 bits: no two versions of one file share them by chance

std::string TypeOf(absl::string_view name) {
  if (absl::EndsWith(name, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(name, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(name, ".svg")) return "image/svg+xml";
  return "text/plain; charset=utf-8";
}

const std::map<std::string, Asset, std::less<>>& AssetTable() {
  static const auto* const table = [] {
    auto* made = new std::map<std::string, Asset, std::less<>>;
    for (const EmbeddedAsset& file : EmbeddedAssets()) {
      Asset asset;
      asset.content = file.content;
      asset.gzip = Gzip(asset.content);
      if (asset.gzip.size() >= asset.content.size()) asset.gzip.clear();
      asset.content_type = TypeOf(file.name);
      asset.digest = Sha256Hex(asset.content).substr(0, kDigestDigits);
      made->emplace(file.name, std::move(asset));
    }
    return made;
  }();
  return *table;
}

}  // namespace

const Asset* FindAsset(absl::string_view name) {
  const auto found = AssetTable().find(std::string(name));
  return found == AssetTable().end() ? nullptr : &found->second;
}

std::string AssetUrl(absl::string_view name) {
  const Asset* const asset = FindAsset(name);
  CHECK(asset != nullptr) << "asset=" << Quoted(name);
  return absl::StrCat("/static/", name, "?v=", asset->digest);
}

}  // namespace assay::web
