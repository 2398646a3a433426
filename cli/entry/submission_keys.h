// The keys of a submission file: what they hold, where it goes and what it means. Reading the file
// and its reference page (assay help submission, assay-submission(5)) are made from this table.

#ifndef CLI_ENTRY_SUBMISSION_KEYS_H_
#define CLI_ENTRY_SUBMISSION_KEYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "assay/v1/resources.pb.h"

namespace assay::cli {

// A key of the file's top level. One setter of the three is there.
struct SubmissionKey {
  const char* name;
  const char* example;
  const char* help;
  bool is_required = false;
  int64_t number_max = 0;
  void (*set_text)(v1::SubmissionSpec*, const std::string&) = nullptr;
  void (*set_number)(v1::SubmissionSpec*, int32_t) = nullptr;
  void (*set_flag)(v1::SubmissionSpec*, bool) = nullptr;
};
const std::vector<SubmissionKey>& SubmissionKeys();

// A table of the file, or a key that is read in a way of its own.
struct SubmissionTable {
  const char* name;
  const char* example;
  const char* help;
};
const std::vector<SubmissionTable>& SubmissionTables();

// The help topic.
std::string SubmissionTopic();

}  // namespace assay::cli

#endif  // CLI_ENTRY_SUBMISSION_KEYS_H_
