// An entry as the package that MLPerf asks for: its files, without the disk. Who exports fetches
// the result files one by one (artifacts.h) and puts everything where it wants it.

#ifndef COMMON_CLIENT_EXPORT_H_
#define COMMON_CLIENT_EXPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/resources.pb.h"

#include "common/client/client.h"
#include "common/client/json.h"
#include "common/package/system_description.h"

namespace assay::client {

// The artifact of a run that the package calls its result file; null if it left none.
const v1::ArtifactRef* ResultFile(const v1::Run& run);

// The runs that make up the package, of all of the entry's: those that ended in order, count for
// the result and left their log. Of an imported entry all that it came with.
std::vector<v1::Run> PackagedRuns(const v1::Submission& entry, const std::vector<v1::Run>& runs);

// The instances of a throughput set that do not count and have left their log: they are handed in
// as pruned_results. Of other entries none.
std::vector<v1::Run> PrunedRuns(const v1::Submission& entry, const std::vector<v1::Run>& runs);

// The folder of the entry's organisation, and the name of its system in the package: as they were
// where it was imported from.
std::string OrganizationFolder(const v1::Submission& entry);
std::string SystemFolder(const v1::Submission& entry);

// Where the result files lie below the organisation's folder: results/SYSTEM[/strong]/BENCHMARK. In
// v0.7 there is no strong and weak (rules specification, section 4.1). Of an imported entry, where
// they lay.
std::string ResultsPath(const v1::Submission& entry);

// What the first node that ran says of itself; nullopt if none does, as for imported history, whose
// nodes nobody has seen. The coordinator's error if it cannot say. Blocks.
absl::StatusOr<std::optional<Json>> NodeDescription(const Client& client,
                                                    const std::vector<v1::Run>& runs);

struct PackageFile {
  std::string path;  // below the organisation's folder
  std::string content;
  bool is_executable = false;
};

// Everything of the package but its result files: systems/SYSTEM.json and what stands in
// benchmarks/BENCHMARK/SYSTEM to run it again. `runs` are the packaged ones. Of an imported entry
// the description is the one that it came with, byte for byte, and there is nothing else.
std::vector<PackageFile> DescribingFiles(const v1::Submission& entry,
                                         const std::vector<v1::Run>& runs,
                                         const Json& node_description);

using package::PathPart;

// systems/SYSTEM.json: what the node says of itself, under the entry's name, with every member that
// the rules demand (rules specification, section 4.2).
Json SystemJson(const v1::Submission& entry, const Json& node_description);

// In a package, the folder beside the submission file with the source of the entry's program.
inline constexpr char kPackagedSource[] = "source";

// The folder beside it with what the nodes of each run had passed in their pre-flight.
inline constexpr char kPackagedPreflights[] = "preflight";
// And the one with how the nodes of each run saw its first touch.
inline constexpr char kPackagedWitness[] = "witness";

// benchmarks/BENCHMARK/SYSTEM, below the organisation's folder.
std::string BenchmarkPath(const v1::Submission& entry);

// The submission file that would make this entry again.
std::string SubmissionToml(const v1::Submission& entry);

}  // namespace assay::client

#endif  // COMMON_CLIENT_EXPORT_H_
