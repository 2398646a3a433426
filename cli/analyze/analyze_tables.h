// The tables of assay analyze: for programs plain numbers, for people numbers with their spread.

#ifndef CLI_ANALYZE_ANALYZE_TABLES_H_
#define CLI_ANALYZE_ANALYZE_TABLES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "cli/analyze/analysis_input.h"
#include "cli/command/context.h"
#include "cli/terminal/print.h"
#include "common/analysis/scaling.h"

namespace assay::cli {

// A table in both forms. Each item holds the fields of both column lists.
struct AnalysisTable {
  std::string schema;
  Json items = Json::array();
  std::vector<Column> people;  // text fields end in "_text"; JSON does not show them
  std::vector<Column> programs;
};

// Figure 1, equations 1 and 2.
AnalysisTable BreakdownTable(const AnalysisInput& input);
// Table 5; of the entries whose logs have staging keys.
AnalysisTable StagingTable(const AnalysisInput& input);
// Table 6.
AnalysisTable ComputeTable(const AnalysisInput& input);
// Figure 2.
AnalysisTable ScalingTable(const AnalysisInput& input);
// Figure 2 b: what each batch size takes, by benchmark and division.
AnalysisTable EpochTable(const AnalysisInput& input);

// Prints the table, for people with its notes below it.
absl::Status PrintTable(const Context& context, AnalysisTable table);

// "16.49", or "" where there is no value.
std::string Fixed(std::optional<double> value, int decimals);
// "16.49 ± 0.61": a spread too small for the decimals gets one more.
std::string WithSpread(const std::optional<analysis::Moments>& moments, int decimals);

// Name, system, benchmark and division: the first members of every item.
Json EntryIdentity(const analysis::Entry& entry);

}  // namespace assay::cli

#endif  // CLI_ANALYZE_ANALYZE_TABLES_H_
