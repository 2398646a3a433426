// What must hold for the readers of TOML files whatever their bytes: a file is refused with its
// place and in words, or it means the same when written and read again. Shared by the smoke test,
// which mutates a small corpus, and by the libFuzzer targets.

#ifndef TESTS_FUZZ_TOML_PROPERTIES_H_
#define TESTS_FUZZ_TOML_PROPERTIES_H_

#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

#include "cli/command/settings.h"
#include "cli/entry/submission_file.h"
#include "common/client/config.h"
#include "common/client/export.h"
#include "common/file.h"
#include "common/log.h"
#include "common/rules/facility_round.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/pack_properties.h"
#include "tests/support/temp_dir.h"

namespace assay::testing {

// A file that somebody submits.
inline void CheckSubmissionFile(absl::string_view bytes) {
  const cli::SubmissionFile file = cli::ParseSubmissionFile(bytes, "x.toml");
  for (const cli::Diagnostic& problem : file.problems) {
    CHECK(!problem.message.empty() && !problem.remedy.empty());
    CHECK(!cli::FormatDiagnostic(file, problem).empty());
  }
  if (!file.problems.empty()) return;
  v1::Submission entry;
  *entry.mutable_spec() = file.spec;
  const cli::SubmissionFile again =
      cli::ParseSubmissionFile(client::SubmissionToml(entry), "again.toml");
  CHECK(again.problems.empty()) << cli::FormatDiagnostic(again, again.problems[0]);
  CHECK(again.spec.hyperparameters_size() == file.spec.hyperparameters_size());
}

// A round that a facility defines.
inline void CheckFacilityRound(absl::string_view bytes) {
  const absl::StatusOr<std::unique_ptr<const rules::RuleSet>> round =
      rules::ParseFacilityRound(bytes, "round.toml");
  if (round.ok()) {
    CheckRules((*round)->data());
  } else {
    CHECK(round.status().message().find("round.toml") != absl::string_view::npos);
  }
}

// The settings of one user, in a file.
inline void CheckCliConfig(absl::string_view bytes) {
  static auto* const file = new MemoryFile();
  static const auto* const environment = [] {
    static const auto* const home = new TempDir();
    auto* made = new cli::Environment();
    made->variables = {{"HOME", home->path()}};
    made->working_directory = home->path();
    made->system_config_path = home->Path("none.toml");
    CHECK_OK(MakeDirectories(made->UserConfigDirectory()));
    const std::string path = cli::UserConfigPath(*made);
    CHECK(symlink(file->path().c_str(), path.c_str()) == 0);
    return made;
  }();
  file->Replace(bytes);
  const absl::StatusOr<client::Config> config = cli::LoadConfig(*environment, {});
  if (!config.ok()) {
    CHECK(!config.status().message().empty());
    return;
  }
  CHECK(!config->All().empty());
}

}  // namespace assay::testing

#endif  // TESTS_FUZZ_TOML_PROPERTIES_H_
