#include "server/metrics/figures.h"

#include <prometheus/counter.h>

#include <algorithm>
#include <iterator>

#include "server/metrics/family.h"

namespace assay::metrics {
namespace {

void Append(Families more, Families* all) {
  std::move(more.begin(), more.end(), std::back_inserter(*all));
}

Families ToFamilies(const std::vector<HookView>& hooks) {
  prometheus::MetricFamily delivered =
      CounterFamily("assay_notices_delivered_total", "Changes that a hook of notify was told.");
  prometheus::MetricFamily failed =
      CounterFamily("assay_notice_attempts_failed_total",
                    "Times that the command of a hook failed or did not end in time.");
  prometheus::MetricFamily given_up = CounterFamily(
      "assay_notices_given_up_total", "Changes that a hook was not told after all attempts.");
  prometheus::MetricFamily lag =
      GaugeFamily("assay_notice_lag_seconds",
                  "Age of the oldest change that a hook has still to be told; 0: there is none.");
  for (const HookView& hook : hooks) {
    const Labels labels = {{"hook", hook.name}};
    AddValue(&delivered, hook.delivered, labels);
    AddValue(&failed, hook.failed_attempts, labels);
    AddValue(&given_up, hook.given_up, labels);
    AddValue(&lag, hook.lag_seconds, labels);
  }
  return {std::move(delivered), std::move(failed), std::move(given_up), std::move(lag)};
}

}  // namespace

Figures::Figures(const Clock* clock)
    : loop_(clock, &registry_),
      calls_(prometheus::BuildCounter()
                 .Name("assay_rpcs_total")
                 .Help("Calls of the API that have ended, by method and status code.")
                 .Register(registry_)) {}

void Figures::CallEnded(absl::string_view method, absl::StatusCode code) {
  calls_.Add({{"method", std::string(method)}, {"code", absl::StatusCodeToString(code)}})
      .Increment();
}

void Figures::Open(Facts facts, Questions questions) {
  facts_ = std::move(facts);
  questions_ = std::move(questions);
  directory_.emplace(facts_.database_path, facts_.disk_reserve_bytes);
}

std::vector<prometheus::MetricFamily> Figures::Collect() const {
  Families all = registry_.Collect();
  Append(loop_.Collect(), &all);
  Append(directory_->Collect(), &all);
  all.push_back(OneGauge("assay_command_queue_length", "Commands that wait for the core.",
                         static_cast<double>(questions_.queue_length())));
  prometheus::MetricFamily refused =
      CounterFamily("assay_refused_calls_total",
                    "Calls and connections that were refused for who makes them, by status code.");
  for (const auto& [code, count] : questions_.refused_calls())
    AddValue(&refused, static_cast<double>(count), {{"code", absl::StatusCodeToString(code)}});
  all.push_back(std::move(refused));
  Append(ToFamilies(questions_.hooks()), &all);
  all.push_back(OneGauge("assay_build_info", "1; the label says which version this is.", 1,
                         {{"version", facts_.version}}));
  all.push_back(OneGauge("assay_start_time_seconds", "When the coordinator started, as Unix time.",
                         absl::ToDoubleSeconds(facts_.start_time - absl::UnixEpoch())));
  prometheus::MetricFamily ends =
      GaugeFamily("assay_certificate_end_time_seconds",
                  "When the certificates with which the coordinator serves end, as Unix time.");
  for (const auto& [name, end] : facts_.certificate_ends)
    AddValue(&ends, absl::ToDoubleSeconds(end - absl::UnixEpoch()), {{"certificate", name}});
  all.push_back(std::move(ends));
  // A family without a series says nothing, and its header alone is noise.
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const auto& family) { return family.metric.empty(); }),
            all.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

}  // namespace assay::metrics
