// Two GPUs, of which the second knows no energy. FakeNvmlHang(1) lets the next question wait until
// FakeNvmlHang(0).

#include <atomic>

namespace {

std::atomic<int> hangs = 0;

// The number of the device, from 1.
unsigned long long NumberOf(void* device) {
  return static_cast<unsigned long long>(*static_cast<int*>(device));
}

int devices[] = {1, 2};

}  // namespace

extern "C" {

void FakeNvmlHang(int value) {
  hangs = value;
  hangs.notify_all();
}
int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &devices[index];
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* percents) {
  hangs.wait(1);
  percents[0] = 90 + static_cast<unsigned>(NumberOf(device));
  percents[1] = 40;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* bytes) {
  bytes[0] = 80'000;
  bytes[1] = 30'000;
  bytes[2] = 50'000;
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* mw) {
  *mw = 300'000 * static_cast<unsigned>(NumberOf(device));
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* mj) {
  *mj = 7'000;
  return NumberOf(device) == 1 ? 0 : 3;  // not supported
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1'980 : 2'619;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 4;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = 55;
  return 0;
}
}
