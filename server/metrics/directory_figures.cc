#include "server/metrics/directory_figures.h"

#include <sys/statvfs.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "server/metrics/family.h"

namespace assay::metrics {
namespace {

// 0 if there is none: SQLite removes an empty log. Nullopt if that cannot be told.
std::optional<double> FileBytes(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory) return 0;
  if (error) return std::nullopt;
  return static_cast<double>(size);
}

void AddIfKnown(const char* name, const char* help, std::optional<double> value,
                Families* families) {
  prometheus::MetricFamily family = GaugeFamily(name, help);
  if (value.has_value()) AddValue(&family, *value);
  families->push_back(std::move(family));
}

}  // namespace

std::vector<prometheus::MetricFamily> DirectoryFigures::Collect() const {
  struct statvfs info = {};
  std::optional<double> free_bytes;
  std::optional<double> size_bytes;
  if (statvfs(database_path_.c_str(), &info) == 0) {
    const double block_bytes = static_cast<double>(info.f_frsize);
    free_bytes = static_cast<double>(info.f_bavail) * block_bytes;
    size_bytes = static_cast<double>(info.f_blocks) * block_bytes;
  }
  Families families;
  AddIfKnown("assay_data_directory_free_bytes",
             "What the coordinator may still write where data_directory is.", free_bytes,
             &families);
  AddIfKnown("assay_data_directory_size_bytes", "The file system of data_directory.", size_bytes,
             &families);
  AddIfKnown("assay_data_directory_reserve_bytes",
             "While less than this is free, nothing new is accepted.",
             static_cast<double>(reserve_bytes_), &families);
  AddIfKnown("assay_database_size_bytes", "SQLite's database, assay.db.", FileBytes(database_path_),
             &families);
  AddIfKnown("assay_database_wal_size_bytes", "SQLite's write-ahead log, assay.db-wal.",
             FileBytes(database_path_ + "-wal"), &families);
  return families;
}

}  // namespace assay::metrics
