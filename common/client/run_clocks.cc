#include "common/client/run_clocks.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

#include "common/client/artifacts.h"
#include "common/node_clock.h"

namespace assay::client {

rules::RunClocks ClocksOf(const client::Client& client, const v1::Run& run) {
  const std::optional<int64_t> run_start_ms =
      run.has_run_start_ms() ? std::optional(run.run_start_ms()) : std::nullopt;
  return {run_start_ms, [&client, &run](const std::string& name) -> std::optional<std::string> {
            for (const v1::ArtifactRef& file : run.artifacts()) {
              if (file.file_name() != name || file.size_bytes() > kClockSamplesBytesMax) continue;
              absl::StatusOr<std::string> text = client::DownloadArtifact(client, file);
              if (text.ok()) return *std::move(text);
            }
            return std::nullopt;
          }};
}

}  // namespace assay::client
