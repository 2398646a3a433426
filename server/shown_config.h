// The coordinator's configuration as it may be shown to others.

#ifndef SERVER_SHOWN_CONFIG_H_
#define SERVER_SHOWN_CONFIG_H_

#include <string>
#include <vector>

#include "assay/v1/config.pb.h"

namespace assay {

struct ShownConfig {
  std::string text;                   // text proto
  std::vector<std::string> left_out;  // "launcher.slurm.worker.enrolment_token", each once
};

// Texts are shown if they are known to hold no secret (paths, addresses, names); of all others,
// also of fields that come later, "(left out)" stands in their place. Of a hook's command the
// program is shown.
ShownConfig ShowConfig(const v1::ServerConfig& config);

}  // namespace assay

#endif  // SERVER_SHOWN_CONFIG_H_
