// The JSON in which resources are shown: objects keep the order of their members.

#ifndef COMMON_CLIENT_JSON_H_
#define COMMON_CLIENT_JSON_H_

#include "nlohmann/json.hpp"

namespace assay::client {

using Json = nlohmann::ordered_json;

}  // namespace assay::client

#endif  // COMMON_CLIENT_JSON_H_
