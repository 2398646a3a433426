// JSON of others as nlohmann's documents: the one way in, so that none is nested deeper than the
// recursive walks over it (printing, copying, comparing) can stand.

#ifndef COMMON_JSON_DOCUMENT_H_
#define COMMON_JSON_DOCUMENT_H_

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace assay {

// Brackets within brackets, the outermost counted. Ours have five at most.
inline constexpr int kJsonDocumentDepthMax = 64;

// True if `text` opens more than `depth_max` brackets within each other, those in strings left out.
// `text` need be no JSON.
bool IsJsonDeeperThan(absl::string_view text, int depth_max);

// The document in `text`. Discarded (is_discarded()) if it is no JSON, holds what is no UTF-8, or
// is nested deeper than kJsonDocumentDepthMax. `Json` is nlohmann::json or nlohmann::ordered_json.
template <typename Json>
Json ParseJsonDocument(absl::string_view text) {
  if (IsJsonDeeperThan(text, kJsonDocumentDepthMax)) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

}  // namespace assay

#endif  // COMMON_JSON_DOCUMENT_H_
