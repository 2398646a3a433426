// How figures that are computed when they are asked for become families of Prometheus.

#ifndef SERVER_METRICS_FAMILY_H_
#define SERVER_METRICS_FAMILY_H_

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

namespace assay::metrics {

using Families = std::vector<prometheus::MetricFamily>;
using Labels = std::vector<prometheus::ClientMetric::Label>;

inline prometheus::MetricFamily GaugeFamily(std::string name, std::string help) {
  return {std::move(name), std::move(help), prometheus::MetricType::Gauge, {}};
}
inline prometheus::MetricFamily CounterFamily(std::string name, std::string help) {
  return {std::move(name), std::move(help), prometheus::MetricType::Counter, {}};
}

// One more series of `family`.
inline void AddValue(prometheus::MetricFamily* family, double value, Labels labels = {}) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  metric.gauge.value = value;
  metric.counter.value = value;
  family->metric.push_back(std::move(metric));
}

inline prometheus::MetricFamily OneGauge(std::string name, std::string help, double value,
                                         Labels labels = {}) {
  prometheus::MetricFamily family = GaugeFamily(std::move(name), std::move(help));
  AddValue(&family, value, std::move(labels));
  return family;
}

}  // namespace assay::metrics

#endif  // SERVER_METRICS_FAMILY_H_
