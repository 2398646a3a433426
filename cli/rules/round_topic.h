// The reference page of a facility's round file.

#ifndef CLI_RULES_ROUND_TOPIC_H_
#define CLI_RULES_ROUND_TOPIC_H_

#include <string>

namespace assay::cli {

std::string RoundTopic();

}  // namespace assay::cli

#endif  // CLI_RULES_ROUND_TOPIC_H_
