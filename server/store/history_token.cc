#include "server/store/history_token.h"

#include <variant>

#include "absl/strings/escaping.h"

#include "common/json_document.h"

namespace assay::store {
namespace {

using TokenJson = nlohmann::json;

TokenJson TokenToJson(const SqlValue& value) {
  if (const auto* const integer = std::get_if<int64_t>(&value)) return *integer;
  if (const auto* const number = std::get_if<double>(&value)) return *number;
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

SqlValue TokenFromJson(const TokenJson& json) {
  if (json.is_number_float()) return json.get<double>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_string()) return json.get<std::string>();
  return {};
}

}  // namespace

std::string WriteHistoryToken(const std::string& hash, const HistoryToken& token) {
  TokenJson json = TokenJson::array({hash, token.total_count, token.hidden_count});
  for (const SqlValue& value : token.position)
    json.push_back(TokenToJson(value));
  return absl::WebSafeBase64Escape(json.dump(-1, ' ', false, TokenJson::error_handler_t::replace));
}

absl::StatusOr<HistoryToken> ReadHistoryToken(const std::string& hash, const std::string& text,
                                              size_t value_count) {
  const absl::Status wrong = absl::InvalidArgumentError(
      "page_token is not of this question: ask with the filter, order, groups and aggregates of "
      "the "
      "page before, or leave it empty");
  std::string bytes;
  if (!absl::WebSafeBase64Unescape(text, &bytes)) return wrong;
  const auto json = ParseJsonDocument<TokenJson>(bytes);
  constexpr size_t kHead = 3;
  if (!json.is_array() || json.size() != kHead + value_count || json[0] != hash ||
      !json[1].is_number_integer() || !json[2].is_number_integer())
    return wrong;
  HistoryToken token{.total_count = json[1].get<int64_t>(), .hidden_count = json[2].get<int64_t>()};
  for (size_t i = kHead; i < json.size(); ++i)
    token.position.push_back(TokenFromJson(json[i]));
  return token;
}

}  // namespace assay::store
