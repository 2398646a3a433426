#include "common/journal.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "absl/strings/str_cat.h"

#include "common/file.h"

namespace assay {
namespace {

struct Named {
  const char* key;  // in the record
  const char* field;
};
constexpr Named kNamed[] = {{"run", "ASSAY_RUN"},
                            {"submission", "ASSAY_ENTRY"},
                            {"entry", "ASSAY_ENTRY"},
                            {"worker", "ASSAY_NODE"},
                            {"node", "ASSAY_NODE"}};

// The record's next word, which ends at a blank outside of quotation marks.
absl::string_view NextWord(absl::string_view* record) {
  bool is_quoted = false;
  size_t end = 0;
  for (; end < record->size(); ++end) {
    const char c = (*record)[end];
    if (c == '\\' && is_quoted) ++end;
    if (c == '"') is_quoted = !is_quoted;
    if (c == ' ' && !is_quoted) break;
  }
  end = std::min(end, record->size());
  const absl::string_view word = record->substr(0, end);
  record->remove_prefix(std::min(end + 1, record->size()));
  return word;
}

// r-7 of runs/r-7, and of r-7 and "r-7", and of r-7: and r-7,
std::string ValueOf(absl::string_view text) {
  if (const size_t slash = text.rfind('/'); slash != absl::string_view::npos)
    text.remove_prefix(slash + 1);
  const absl::string_view kOutside = "\":,;";
  while (!text.empty() && kOutside.find(text.front()) != absl::string_view::npos)
    text.remove_prefix(1);
  while (!text.empty() && kOutside.find(text.back()) != absl::string_view::npos)
    text.remove_suffix(1);
  return std::string(text);
}

}  // namespace

JournalFields FieldsOf(absl::string_view record) {
  JournalFields fields;
  while (!record.empty()) {
    const absl::string_view word = NextWord(&record);
    const size_t equals = word.find('=');
    if (equals == absl::string_view::npos) continue;
    const auto* const named =
        std::find_if(std::begin(kNamed), std::end(kNamed),
                     [&](const Named& one) { return word.substr(0, equals) == one.key; });
    if (named == std::end(kNamed)) continue;
    const bool is_known = std::any_of(fields.begin(), fields.end(), [named](const auto& field) {
      return field.first == named->field;
    });
    std::string value = ValueOf(word.substr(equals + 1));
    if (!is_known && !value.empty()) fields.emplace_back(named->field, std::move(value));
  }
  return fields;
}

bool SendToJournal(const std::string& socket_path, const JournalFields& fields) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return false;
  std::string datagram;
  for (const auto& [name, value] : fields)
    absl::StrAppend(&datagram, name, "=", value, "\n");
  return sendto(fd.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == static_cast<ssize_t>(datagram.size());
}

}  // namespace assay
