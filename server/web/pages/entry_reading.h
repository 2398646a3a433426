// An entry with all that its page shows, read as the visitor, and the sections of that page.

#ifndef SERVER_WEB_PAGES_ENTRY_READING_H_
#define SERVER_WEB_PAGES_ENTRY_READING_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "assay/v1/resources.pb.h"

#include "common/client/entry_score.h"
#include "common/client/run_course.h"
#include "common/rules/ruleset.h"
#include "server/web/chart.h"
#include "server/web/course_cache.h"
#include "server/web/page.h"
#include "server/web/pages/parts.h"

namespace assay::web {

struct EntryReading {
  v1::Submission entry;
  std::vector<v1::Run> runs;
  client::EntryScore score;
  Json json;      // of the entry, with its score's members and sentences
  Json run_rows;  // of each run, with `part`: what became of it in the score
  const rules::RuleSet* rules = nullptr;  // null: not a built-in round
  const rules::Benchmark* benchmark = nullptr;

  std::string id() const { return TextOf(json, "id"); }
  std::string quality_key() const {
    return benchmark == nullptr ? "eval_error" : benchmark->quality_key;
  }
};

// The errors of GetEntry. Blocks.
absl::StatusOr<EntryReading> ReadEntryReading(const Context& context, const std::string& id);

// What a run's log tells, in the order of the entry's runs.
struct RunReading {
  std::string id;
  std::string part;
  CourseCache::Course course;  // never null
};

// Of so many runs logs are read for a page; the others are left out, and a sentence says so.
inline constexpr size_t kCoursesMax = 24;

// Of a log of that entry, as it was read before or is read now; null if it cannot be read. Blocks.
CourseCache::Course ReadCourse(const Context& context, const EntryReading& reading,
                               const v1::ArtifactRef& log);

// Reads the logs of the first kCoursesMax runs that left one, first of all of those that count.
// A log that cannot be read is left out. Blocks.
std::vector<RunReading> ReadCourses(const Context& context, const EntryReading& reading);

// Sections, with their headings.
Html ScoreSection(const EntryReading& reading);
Table RunsTable(const EntryReading& reading);
Html ConvergenceSection(const Request& request, const EntryReading& reading,
                        const std::vector<RunReading>& courses);
Html PhasesSection(const EntryReading& reading, const std::vector<RunReading>& courses);
Html TouchSection(const Context& context, const EntryReading& reading, Json* json);
Html EnergySection(const EntryReading& reading);
Json EntryFindings(const EntryReading& reading);
Html HyperparametersSection(const EntryReading& reading);
Html SystemSection(const Context& context, const EntryReading& reading, Json* json);
Html MaterialsSection(const Context& context, const EntryReading& reading, Json* json);
Html LedgerSection(const EntryReading& reading);

// Quality by what `axis` says (epoch, samples or seconds), with the target.
LineChart ConvergenceChart(const EntryReading& reading, const std::vector<RunReading>& courses,
                           const std::string& axis);
// Of each run, from its beginning to its end.
BarChart PhasesChart(const std::vector<RunReading>& courses);

}  // namespace assay::web

#endif  // SERVER_WEB_PAGES_ENTRY_READING_H_
