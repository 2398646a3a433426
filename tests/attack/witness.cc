#include "tests/attack/witness.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "common/file.h"
#include "common/log.h"

namespace assay::testing {
namespace {

constexpr int kCallsPerConnection = 10;
// Whoever waits for longer takes the call for lost.
constexpr absl::Duration kPatience = absl::Seconds(10);
constexpr absl::Duration kPace = absl::Milliseconds(5);  // between two calls

// "VmRSS:     1234 kB" in /proc/<pid>/status.
int64_t KibibytesAfter(absl::string_view label, absl::string_view status) {
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::ConsumePrefix(&line, label)) continue;
    int64_t kibibytes = 0;
    CHECK(absl::SimpleAtoi(absl::StripSuffix(line, "kB"), &kibibytes)) << "line=" << line;
    return kibibytes;
  }
  LOG(FATAL) << "no " << label;
  return 0;
}

}  // namespace

absl::Duration AttackDuration() {
  const char* const text = std::getenv("ASSAY_ATTACK_SECONDS");
  int seconds = 3;
  if (text != nullptr) CHECK(absl::SimpleAtoi(text, &seconds));
  return absl::Seconds(seconds);
}

void Account::Add(const Account& other) {
  latencies.insert(latencies.end(), other.latencies.begin(), other.latencies.end());
  losses.insert(losses.end(), other.losses.begin(), other.losses.end());
}

absl::Duration Account::Quantile(double share) const {
  if (latencies.empty()) return absl::ZeroDuration();
  std::vector<absl::Duration> sorted = latencies;
  std::sort(sorted.begin(), sorted.end());
  const auto index = static_cast<size_t>(share * static_cast<double>(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

Witness::Witness(Endpoint endpoint) : endpoint_(std::move(endpoint)), thread_([this] { Run(); }) {}

Witness::~Witness() {
  Stop();
}

Account Witness::Stop() {
  bell_.Ring();
  if (thread_.joinable()) thread_.join();
  return account_;
}

void Witness::Run() {
  do {
    Client client(endpoint_);
    for (int i = 0; i < kCallsPerConnection; ++i) {
      const absl::Time start = absl::Now();
      grpc::ClientContext context;
      PrepareCall(endpoint_, kPatience, &context);
      v1::ServerInfo response;
      const absl::Status status =
          FromGrpc(client.admin().GetServerInfo(&context, v1::GetServerInfoRequest(), &response));
      if (status.ok()) {
        account_.latencies.push_back(absl::Now() - start);
      } else {
        account_.losses.push_back(status.ToString());
      }
      if (bell_.Wait(kPace)) return;
    }
  } while (!bell_.Wait(kPace));
}

Memory MemoryOf(pid_t pid) {
  const absl::StatusOr<std::string> status = ReadFile(absl::StrCat("/proc/", pid, "/status"));
  CHECK_OK(status.status());
  constexpr int64_t kKibibyte = 1024;
  return {.resident = KibibytesAfter("VmRSS:", *status) * kKibibyte,
          .peak = KibibytesAfter("VmHWM:", *status) * kKibibyte};
}

int64_t DescriptorsOf(pid_t pid) {
  const absl::StatusOr<std::vector<std::string>> names =
      ListDirectory(absl::StrCat("/proc/", pid, "/fd"));
  CHECK_OK(names.status());
  return std::ssize(*names);
}

std::string LoadAverage() {
  const absl::StatusOr<std::string> text = ReadFile("/proc/loadavg");
  CHECK_OK(text.status());
  const std::vector<std::string> words = absl::StrSplit(*text, ' ');
  return absl::StrCat(words[0], " ", words[1], " ", words[2]);
}

}  // namespace assay::testing
