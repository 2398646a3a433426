// What is known of the caches behind a path, by the kind of its file system.

#ifndef WORKER_AGENT_FILE_SYSTEM_H_
#define WORKER_AGENT_FILE_SYSTEM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace assay::agent {

struct FileSystem {
  std::string type;        // ext4, nfs, ...; its number in hexadecimal if we have no name for it
  bool is_memory = false;  // what lies there is in memory, whatever is reset
  bool is_local = false;   // a device of this node, or its memory, has the files
  bool may_be_remote = false;  // other nodes may serve or read its files
  bool is_page_cache = true;  // the kernel tells which pages of its files are in this node's memory
  // Caches that a reset of this node's page cache neither empties nor knows, as sentences.
  std::vector<std::string> unknown_caches;
};

// Errno's code if `path` cannot be looked at.
absl::StatusOr<FileSystem> FileSystemOf(const std::string& path);

// The same by statfs's number; `is_virtual`: the node is a virtual machine.
FileSystem FileSystemOfType(long type, bool is_virtual);

// Writes back what of the file system is changed, and waits for no other (syncfs). Errno's code.
absl::Status SyncFileSystem(const std::string& path);

}  // namespace assay::agent

#endif  // WORKER_AGENT_FILE_SYSTEM_H_
