// What each port of InfiniBand and RoCE has received and sent, and its errors
// (/sys/class/infiniband).

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "worker/agent/telemetry/number_source.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

constexpr int64_t kWordBytes = 4;  // data is counted in such

}  // namespace

std::unique_ptr<TelemetrySource> MakeInfinibandSource(const SourceOptions& options) {
  auto source = std::make_unique<NumberSource>();
  const std::string root = options.sys + "/class/infiniband";
  for (const std::string& device : ListDirectory(root).value_or(std::vector<std::string>())) {
    const std::string ports = absl::StrCat(root, "/", device, "/ports");
    for (const std::string& port : ListDirectory(ports).value_or(std::vector<std::string>())) {
      const std::string name = absl::StrCat("infiniband.", device, "_", port, ".");
      const std::string counters = absl::StrCat(ports, "/", port, "/counters/");
      source->Add({name + "received", "bytes", true}, counters + "port_rcv_data", kWordBytes);
      source->Add({name + "sent", "bytes", true}, counters + "port_xmit_data", kWordBytes);
      source->Add({name + "symbol_errors", "events", true}, counters + "symbol_error");
      source->Add({name + "waits", "events", true}, counters + "port_xmit_wait");
    }
  }
  return source;
}

}  // namespace assay::agent
