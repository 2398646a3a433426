// Where values lie on the axis of a chart.

#ifndef SERVER_WEB_CHART_SCALE_H_
#define SERVER_WEB_CHART_SCALE_H_

#include <vector>

namespace assay::web {

// The range of values that an axis shows, which grows with what is added.
class ChartScale {
 public:
  // `begin` and `end`: coordinates of the lowest and the highest value.
  ChartScale(bool is_log, double begin, double end) : is_log_(is_log), begin_(begin), end_(end) {}

  // Whether the axis can show the value.
  bool Takes(double value) const;
  // Makes room for a value that it takes; ignores others.
  void Add(double value);
  // Ends at ticks, and is never empty. Call once all is added.
  void Settle();

  double At(double value) const;
  const std::vector<double>& ticks() const { return ticks_; }
  bool has_values() const { return has_values_; }

 private:
  const bool is_log_;
  const double begin_, end_;
  bool has_values_ = false;
  double low_ = 0, high_ = 0;
  std::vector<double> ticks_;
};

}  // namespace assay::web

#endif  // SERVER_WEB_CHART_SCALE_H_
