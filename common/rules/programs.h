// What an entry says of the program that its runs execute, where that is the submitter's own: what
// cannot be started, and what the closed division demands of it. Judged before anything is queued.

#ifndef COMMON_RULES_PROGRAMS_H_
#define COMMON_RULES_PROGRAMS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/rules/finding.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

// As CommandWorkload of proto/assay/v1/workload.proto.
struct Program {
  std::string division;
  std::vector<std::string> command;
  std::string launcher;
  std::string log;
  std::map<std::string, std::string> env;
  std::vector<std::string> collect;
  int64_t stop_grace_s = 10;
  int64_t memory_mib = 0;
  bool has_source = false;
  std::string source_digest;
  int64_t source_bytes = 0;
  std::string git_commit;
  bool is_modified = false;
  std::string image_path;  // empty: no image
  std::string image_digest;
};

inline constexpr int64_t kStopGraceMax = 120;  // seconds

// The rules, by id.
std::span<const TextRule> ProgramRules();

// Keys are those of a submission file: workload.command.
//   R-WRK-001 no program; 002 no such launcher; 003 a variable that is not the submitter's to set;
//   004 a variable in the command that the program does not have; 005 no such log; 006 a pattern
//   that leaves the output; 007 a grace, 008 a memory limit out of bounds; 009 a source that is
//   none; 010 the closed division wants a source from a commit; 012 an image that is none.
std::vector<Finding> CheckProgram(const Program& program);

// R-WRK-011: a program for srun, where nodes come from a launcher that can be none of Slurm's.
Finding SrunWithoutSlurm(absl::string_view node_launcher);

// R-WRK-020: an entry without a program, for a benchmark that the native trainer does not know.
std::vector<Finding> CheckNativeTrainer(absl::string_view benchmark);

}  // namespace assay::rules

#endif  // COMMON_RULES_PROGRAMS_H_
