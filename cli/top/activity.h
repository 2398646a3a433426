// What goes on at the coordinator now: runs and nodes, read with a few requests, and shown as two
// tables of a given height.

#ifndef CLI_TOP_ACTIVITY_H_
#define CLI_TOP_ACTIVITY_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "assay/v1/resources.pb.h"

#include "cli/terminal/environment.h"
#include "cli/terminal/print.h"
#include "common/client/client.h"

namespace assay::cli {

struct Activity {
  std::vector<v1::Run> runs;                      // assigned, running or delivering; newest first
  std::map<std::string, v1::Submission> entries;  // of these runs, by name
  std::vector<v1::Worker> nodes;                  // but those that are gone, by name
};

// Reads it again and again. Not thread-safe.
class ActivityReader {
 public:
  explicit ActivityReader(const client::Client* client) : client_(*client) {}

  // Three requests and one for each 1,000 nodes, and one for each entry that was not seen before.
  absl::StatusOr<Activity> Read();

 private:
  const client::Client& client_;
  std::map<std::string, v1::Submission> entries_;
};

// Keys by which nodes may be sorted, as people write them. The first one is what they get unasked.
std::vector<std::string> NodeSortKeys();

// Both as JSON: {"runs": [...], "nodes": [...]}, nodes sorted by `key`: the most first, or by name.
// What is not known comes last.
Json ActivityJson(const Activity& activity, absl::string_view key, absl::Time now);

std::vector<Column> NodeColumns();

// `activity` as ActivityJson gives it, in lines of at most `env.width` columns, as text for a
// SafeStream. At most `height_max` of them: what does not fit is counted. `problem`: why it is not
// newer, or empty.
std::vector<std::string> ActivityLines(const Json& activity, const Environment& env,
                                       const PrintOptions& options, size_t height_max,
                                       absl::string_view problem);

}  // namespace assay::cli

#endif  // CLI_TOP_ACTIVITY_H_
