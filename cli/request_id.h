// Names for requests, so that the coordinator recognises a repeated one.

#ifndef CLI_REQUEST_ID_H_
#define CLI_REQUEST_ID_H_

#include <string>

namespace assay::cli {

// A fresh random UUID (RFC 4122, version 4).
std::string NewRequestId();

}  // namespace assay::cli

#endif  // CLI_REQUEST_ID_H_
