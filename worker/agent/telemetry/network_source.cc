// What each network interface but the loopback has received and sent (/proc/net/dev).

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

#include "worker/agent/telemetry/line_source.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

// "  eth0: 1234 5 0 0 0 0 0 0 5678 6 0 ...": bytes, packets, errors, dropped, fifo, frame,
// compressed, multicast received; bytes, packets, errors, dropped, ... sent.
std::optional<DeviceLine> ReadInterface(absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return std::nullopt;
  const std::string name(absl::StripAsciiWhitespace(line.substr(0, colon)));
  const std::vector<absl::string_view> words = WordsOf(line.substr(colon + 1));
  if (name == "lo" || words.size() < 12) return std::nullopt;
  return DeviceLine{name,
                    {NumberOf(words[0]), NumberOf(words[8]), NumberOf(words[2]),
                     NumberOf(words[10]), NumberOf(words[3])}};
}

}  // namespace

std::unique_ptr<TelemetrySource> MakeNetworkSource(const SourceOptions& options) {
  return std::make_unique<LineSource>(
      options.proc + "/self/net/dev", "network",
      std::vector<telemetry::Column>{{"received", "bytes", true},
                                     {"sent", "bytes", true},
                                     {"receive_errors", "events", true},
                                     {"send_errors", "events", true},
                                     {"dropped", "events", true}},
      ReadInterface);
}

}  // namespace assay::agent
