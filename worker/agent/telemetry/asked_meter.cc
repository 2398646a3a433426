#include "worker/agent/telemetry/asked_meter.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"

namespace assay::agent {
namespace {

using telemetry::MeterState;

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kAgeMaxNs = kSecondNs * 3 / 2;
constexpr int64_t kStillCounterNs = 5 * kSecondNs;
constexpr int64_t kStillPowerNs = 120 * kSecondNs;
// Before it is said that it cannot be had any more.
constexpr std::chrono::milliseconds kGrace(500);

}  // namespace

bool AskedMeter::Held::StandsStill(std::optional<int64_t> now, int64_t at_ns, int64_t limit_ns) {
  if (!now.has_value()) return false;
  if (now != value) {
    value = now;
    since_ns = at_ns;
  }
  return at_ns - since_ns > limit_ns;
}

AskedMeter::AskedMeter(const std::string& name, const std::function<Ask()>& make,
                       std::chrono::milliseconds timeout, std::function<int64_t()> now_ns)
    : name_(name),
      now_ns_(std::move(now_ns)),
      columns_({{absl::StrCat("energy.", name), "uJ", true},
                {absl::StrCat("power.", name), "mW", false},
                {absl::StrCat("meter.", name), "state", false}}),
      thread_(
          [make, now_ns = now_ns_] {
            return [ask = make(), now_ns] {
              MeterAnswer answer = ask();
              return Stamped{std::move(answer), now_ns()};
            };
          },
          timeout + kGrace) {}

void AskedMeter::Sample(std::span<int64_t> values) {
  std::optional<Stamped> taken = thread_.TakeAndAsk();
  if (!std::exchange(is_asked_, true)) return;
  const int64_t now_ns = now_ns_();
  MeterAnswer answer = taken.has_value() ? std::move(taken->answer)
                                         : MeterAnswer{.state = MeterState::kLate,
                                                       .detail = "no answer within a second"};
  // It was this process that did not ask.
  if (taken.has_value() && now_ns - taken->at_ns > kAgeMaxNs) return;
  const bool is_counter_still = energy_.StandsStill(answer.energy_uj, now_ns, kStillCounterNs);
  const bool is_power_still = power_.StandsStill(answer.power_mw, now_ns, kStillPowerNs);
  if (is_counter_still || (is_power_still && !answer.energy_uj.has_value()))
    answer = {.state = MeterState::kStandsStill,
              .detail = is_counter_still ? "its counter of energy does not move"
                                         : "it has shown the same power for two minutes"};
  if (answer.energy_uj.has_value()) values[0] = *answer.energy_uj;
  if (answer.power_mw.has_value()) values[1] = *answer.power_mw;
  values[2] = static_cast<int64_t>(answer.state);
  Note(answer);
}

// Each state once: the column tells how often.
void AskedMeter::Note(const MeterAnswer& answer) {
  if (answer.state == MeterState::kReads || !noted_.insert(answer.state).second) return;
  LOG(WARNING) << "meter does not read meter=" << name_
               << " reason=" << Quoted(telemetry::ToText(answer.state))
               << " detail=" << Quoted(answer.detail);
}

absl::StatusOr<std::map<std::string, std::string>> ReadMeterSecrets(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(path, " holds secrets and is open to others: chmod 600 ", path));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::map<std::string, std::string> secrets;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (content.empty() || content[0] == '#') continue;
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(content, absl::MaxSplits(' ', 1));
    const absl::string_view value = absl::StripAsciiWhitespace(halves.second);
    if (value.empty())
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the line of \"", halves.first, "\" has no value"));
    secrets[std::string(halves.first)] = std::string(value);
  }
  return secrets;
}

}  // namespace assay::agent
