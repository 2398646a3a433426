#include "server/notify_config.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/status.h"
#include "server/notify/notice.h"

namespace assay {
namespace {

constexpr int kHooksMax = 16;
constexpr size_t kNameBytesMax = 32;
constexpr int32_t kTimeoutMaxS = 3600;
constexpr int32_t kRetryMaxS = 30 * 24 * 3600;

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
         });
}

std::string FieldOf(const v1::NotifyConfig& hook) {
  return absl::StrCat("notify { name: \"", hook.name(), "\" }");
}

void CheckOne(const v1::NotifyConfig& hook, std::vector<std::string>* problems) {
  const std::string field = FieldOf(hook);
  if (!IsName(hook.name()))
    problems->push_back(absl::StrCat(field, ": name is not 1 to ", kNameBytesMax,
                                     " letters, digits, dashes and underscores"));
  if (hook.command_size() == 0 || !absl::StartsWith(hook.command(0), "/")) {
    problems->push_back(absl::StrCat(
        field,
        ": command does not begin with the absolute path of a program; give each argument "
        "as a string of its own: [\"/usr/lib/assay/notify-mail\", \"ops@example.org\"]"));
  }
  const std::vector<std::string> kinds = notify::NoticeKinds();
  if (hook.on().empty())
    problems->push_back(absl::StrCat(field, ": on is empty: choose among ",
                                     absl::StrJoin(kinds, ", "), ", or as entry.*"));
  for (const std::string& pattern : hook.on()) {
    const bool is_known = std::any_of(
        kinds.begin(), kinds.end(),
        [&pattern](const std::string& kind) { return notify::IsKindOf(pattern, kind); });
    if (!is_known)
      problems->push_back(absl::StrCat(field, ": on: nothing is called \"", pattern,
                                       "\"; choose among ", absl::StrJoin(kinds, ", "),
                                       ", or as entry.*"));
  }
  if (hook.timeout_s() < 0 || hook.timeout_s() > kTimeoutMaxS)
    problems->push_back(absl::StrCat(field, ": timeout_s is ", hook.timeout_s(), ": give 1 to ",
                                     kTimeoutMaxS, ", or 0 for 30"));
  if (hook.retry_for_s() < 0 || hook.retry_for_s() > kRetryMaxS)
    problems->push_back(absl::StrCat(field, ": retry_for_s is ", hook.retry_for_s(), ": give 1 to ",
                                     kRetryMaxS, ", or 0 for a day"));
}

notify::HookOptions OptionsOf(const v1::NotifyConfig& hook) {
  constexpr int32_t kTimeoutS = 30;
  constexpr int32_t kRetryS = 24 * 3600;
  return {.name = hook.name(),
          .argv = {hook.command().begin(), hook.command().end()},
          .patterns = {hook.on().begin(), hook.on().end()},
          .timeout = absl::Seconds(hook.timeout_s() == 0 ? kTimeoutS : hook.timeout_s()),
          .retry_for = absl::Seconds(hook.retry_for_s() == 0 ? kRetryS : hook.retry_for_s())};
}

}  // namespace

std::vector<std::string> NotifyProblems(const v1::ServerConfig& config) {
  std::vector<std::string> problems;
  if (config.notify_size() > kHooksMax)
    problems.push_back(absl::StrCat("notify: are ", config.notify_size(), ": give at most ",
                                    kHooksMax, ", a thread each"));
  std::set<std::string> names;
  for (const v1::NotifyConfig& hook : config.notify()) {
    CheckOne(hook, &problems);
    if (!names.insert(hook.name()).second)
      problems.push_back(absl::StrCat(FieldOf(hook), ": is there twice"));
  }
  return problems;
}

std::vector<std::string> NotifyWarnings(const v1::ServerConfig& config) {
  std::vector<std::string> warnings;
  for (const v1::NotifyConfig& hook : config.notify())
    if (access(hook.command(0).c_str(), X_OK) != 0)
      warnings.push_back(absl::StrCat(FieldOf(hook), ": cannot run ", hook.command(0),
                                      ": put an executable file there"));
  return warnings;
}

absl::StatusOr<std::unique_ptr<notify::Notifier>> StartNotifier(const v1::ServerConfig& config,
                                                                const Clock* clock,
                                                                runtime::Runtime* runtime) {
  notify::NotifierOptions options = {.data_directory = config.data_directory(),
                                     .database_path = runtime->database_path(),
                                     .web_url = config.web_url()};
  for (const v1::NotifyConfig& hook : config.notify())
    options.hooks.push_back(OptionsOf(hook));
  RETURN_IF_ERROR(notify::ForgetOtherHooks(options.data_directory, options.hooks));
  if (options.hooks.empty()) return nullptr;
  return notify::Notifier::Start(options, clock, &runtime->watchers());
}

}  // namespace assay
