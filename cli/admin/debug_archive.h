// A bundle of texts as one file, and what must not be in it.

#ifndef CLI_ADMIN_DEBUG_ARCHIVE_H_
#define CLI_ADMIN_DEBUG_ARCHIVE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace assay::cli {

struct BundleFile {
  std::string name;
  std::string text;
};

// `text` with "(token left out)" in place of every token of ours (common/secret.h) and
// "(key left out)" in place of every private key in PEM, whoever has put them there. Pure.
std::string WithoutSecrets(absl::string_view text);

// Writes `files`, without secrets, into the folder `folder` of a tar archive, compressed with zstd,
// that is the owner's alone. ALREADY_EXISTS if there is such a file; else errors of the file
// system, after which there is none.
absl::Status WriteBundle(const std::string& path, const std::string& folder,
                         const std::vector<BundleFile>& files, absl::Time now);

}  // namespace assay::cli

#endif  // CLI_ADMIN_DEBUG_ARCHIVE_H_
