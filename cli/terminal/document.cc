#include "cli/terminal/document.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/client/json.h"
#include "common/printable.h"
#include "yaml-cpp/yaml.h"

// jq's headers know nothing of C++.
extern "C" {
#include "jq.h"
#include "jv.h"
}

namespace assay::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// True if a plain (unquoted) YAML scalar of this text would be read as something else than text.
bool NeedsQuotes(const std::string& text) {
  if (text.empty()) return true;
  const YAML::Node node(text);
  bool truth = false;
  double number = 0;
  return text == "~" || absl::AsciiStrToLower(text) == "null" ||
         YAML::convert<bool>::decode(node, truth) || YAML::convert<double>::decode(node, number);
}

bool HasUnprintable(absl::string_view text) {
  while (!text.empty()) {
    const CodePoint first = DecodeUtf8(text);
    if (first.value < 0 || IsUnprintable(first.value)) return true;
    text.remove_prefix(first.size);
  }
  return false;
}

void EmitText(const std::string& text, YAML::Emitter* out) {
  const bool is_unprintable = HasUnprintable(text);
  if (is_unprintable) *out << YAML::EscapeNonAscii;
  if (is_unprintable || NeedsQuotes(text)) *out << YAML::DoubleQuoted;
  *out << text;
}

void Emit(const Json& value, YAML::Emitter* out) {
  if (value.is_object()) {
    *out << YAML::BeginMap;
    for (const auto& [name, member] : value.items()) {
      *out << YAML::Key;
      EmitText(name, out);
      *out << YAML::Value;
      Emit(member, out);
    }
    *out << YAML::EndMap;
  } else if (value.is_array()) {
    *out << YAML::BeginSeq;
    for (const Json& element : value)
      Emit(element, out);
    *out << YAML::EndSeq;
  } else if (value.is_string()) {
    EmitText(value.get_ref<const std::string&>(), out);
  } else if (value.is_null()) {
    *out << YAML::Null;
  } else {
    *out << Dump(value);
  }
}

struct JqDeleter {
  void operator()(jq_state* state) const { jq_teardown(&state); }
};

// jq reports through this: a message, and whether a result may still come.
void KeepMessage(void* messages, jv message) {
  const jv text = jq_format_error(message);
  static_cast<std::vector<std::string>*>(messages)->emplace_back(jv_string_value(text));
  jv_free(text);
}

std::string TextOf(jv result) {
  const jv text =
      jv_get_kind(result) == JV_KIND_STRING ? result : jv_dump_string(result, /*flags=*/0);
  std::string copy(jv_string_value(text),
                   static_cast<size_t>(jv_string_length_bytes(jv_copy(text))));
  jv_free(text);
  return copy;
}

}  // namespace

std::string ToYaml(const Json& document) {
  YAML::Emitter out;
  Emit(document, &out);
  // The emitter escapes everything unprintable but DEL.
  return absl::StrCat(client::EscapeInJson(out.c_str()), "\n");
}

absl::StatusOr<std::string> FilterWithJq(const std::string& program, const Json& document) {
  const std::unique_ptr<jq_state, JqDeleter> jq(jq_init());
  if (jq == nullptr) return absl::ResourceExhaustedError("--jq: out of memory");
  std::vector<std::string> messages;
  jq_set_error_cb(jq.get(), KeepMessage, &messages);
  const auto failure = [&messages] {
    return absl::InvalidArgumentError(absl::StrCat("--jq: ", absl::StrJoin(messages, "\n")));
  };
  if (jq_compile(jq.get(), program.c_str()) == 0) return failure();
  const std::string text = Dump(document);
  jq_start(jq.get(), jv_parse_sized(text.data(), static_cast<int>(text.size())), /*flags=*/0);
  std::string lines;
  jv result = jq_next(jq.get());
  for (; jv_is_valid(result) != 0; result = jq_next(jq.get()))
    absl::StrAppend(&lines, TextOf(result), "\n");
  const bool has_failed = jv_invalid_has_msg(jv_copy(result)) != 0;
  if (has_failed) {
    const jv message = jv_invalid_get_msg(result);
    const jv shown = jv_get_kind(message) == JV_KIND_STRING ? message : jv_dump_string(message, 0);
    messages.emplace_back(jv_string_value(shown));
    jv_free(shown);
    return failure();
  }
  jv_free(result);
  return lines;
}

}  // namespace assay::cli
