// How much room the data directory has, and how large what is in it has become.

#ifndef SERVER_METRICS_DIRECTORY_FIGURES_H_
#define SERVER_METRICS_DIRECTORY_FIGURES_H_

#include <prometheus/collectable.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::metrics {

// Thread-safe. Asks the file system at each scrape: no figure is there of what cannot be asked.
class DirectoryFigures final : public prometheus::Collectable {
 public:
  //   database_path: of SQLite's file, which has its write-ahead log beside it.
  //   reserve_bytes: while less is free, nothing new is accepted.
  DirectoryFigures(std::string database_path, int64_t reserve_bytes)
      : database_path_(std::move(database_path)), reserve_bytes_(reserve_bytes) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::string database_path_;
  const int64_t reserve_bytes_;
};

}  // namespace assay::metrics

#endif  // SERVER_METRICS_DIRECTORY_FIGURES_H_
