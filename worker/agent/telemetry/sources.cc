#include <memory>
#include <utility>
#include <vector>

#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

using MakeSource = std::unique_ptr<TelemetrySource> (*)(const SourceOptions&);

constexpr MakeSource kSources[] = {
    MakeCpuSource,     MakePressureSource,   MakeMemorySource,    MakeDiskSource, MakeServerSource,
    MakeNetworkSource, MakeInfinibandSource, MakeFrequencySource, MakeRaplSource, MakeCraySource,
    MakeHwmonSource,   MakeNvmlSource,       MakeRedfishSource,   MakeSnmpSource, MakeSlurmSource,
    MakeClockSource,   MakeRunSource};

}  // namespace

std::vector<std::unique_ptr<TelemetrySource>> MakeSources(const SourceOptions& options) {
  std::vector<std::unique_ptr<TelemetrySource>> sources;
  for (const MakeSource make : kSources) {
    std::unique_ptr<TelemetrySource> source = make(options);
    if (!source->columns().empty()) sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace assay::agent
