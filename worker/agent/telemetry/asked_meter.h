// A meter of the whole node that is asked over a network, in a thread of its own.

#ifndef WORKER_AGENT_TELEMETRY_ASKED_METER_H_
#define WORKER_AGENT_TELEMETRY_ASKED_METER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/telemetry/energy.h"
#include "worker/agent/telemetry/asking_thread.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {

struct MeterAnswer {
  telemetry::MeterState state = telemetry::MeterState::kReads;
  std::string detail{};                // for the log, where it has no reading
  std::optional<int64_t> energy_uj{};  // a counter
  std::optional<int64_t> power_mw{};
};

// Columns energy.NAME, power.NAME and meter.NAME, which is how it stands with the meter
// (MeterState). A sample has what was answered to the question of the sample before, so its
// readings are at most a second and a half old; where nothing has come by then it has none. A meter
// that stands still has none either: a counter that has not moved for five seconds, or power that
// has been the same for two minutes.
class AskedMeter final : public TelemetrySource {
 public:
  using Ask = std::function<MeterAnswer()>;

  // `make` and what it returns are called in the thread, which is waited for at the end as long as
  // an answer takes.
  AskedMeter(const std::string& name, const std::function<Ask()>& make,
             std::chrono::milliseconds timeout, std::function<int64_t()> now_ns);

  const std::vector<telemetry::Column>& columns() const override { return columns_; }
  bool is_meter() const override { return true; }
  void Sample(std::span<int64_t> values) override;

 private:
  struct Stamped {
    MeterAnswer answer;
    int64_t at_ns = 0;
  };
  // A number, and since when it is the same.
  struct Held {
    std::optional<int64_t> value;
    int64_t since_ns = 0;

    bool StandsStill(std::optional<int64_t> now, int64_t at_ns, int64_t limit_ns);
  };

  void Note(const MeterAnswer& answer);

  const std::string name_;
  const std::function<int64_t()> now_ns_;
  const std::vector<telemetry::Column> columns_;
  AskingThread<Stamped> thread_;
  bool is_asked_ = false;
  std::set<telemetry::MeterState> noted_;  // what the log has
  Held energy_;
  Held power_;
};

// The lines "NAME VALUE" of a file of secrets, by name. FAILED_PRECONDITION if others than its
// owner may read it, INVALID_ARGUMENT for a line without a value; errno's code if it cannot be
// read.
absl::StatusOr<std::map<std::string, std::string>> ReadMeterSecrets(const std::string& path);

}  // namespace assay::agent

#endif  // WORKER_AGENT_TELEMETRY_ASKED_METER_H_
