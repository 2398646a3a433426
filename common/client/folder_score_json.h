// Published results as they were judged and scored offline, beside what the official tools say of
// them.

#ifndef COMMON_CLIENT_FOLDER_SCORE_JSON_H_
#define COMMON_CLIENT_FOLDER_SCORE_JSON_H_

#include "common/client/json.h"
#include "common/package/set_score.h"

namespace assay::client {

// A folder of result files with its score and runs, as JSON, assay.folder_score/v2. Members named
// as in the stored official scores (org, official_pass1_min, rcp, ...) have the same meaning and
// rounding as there; the others are ours. Pure.
Json FolderScoreJson(const package::SetScore& set);

}  // namespace assay::client

#endif  // COMMON_CLIENT_FOLDER_SCORE_JSON_H_
