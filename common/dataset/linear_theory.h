// Linear theory of structure formation in a flat universe of matter and a cosmological constant:
// how strongly matter is clustered at each scale and time.

#ifndef COMMON_DATASET_LINEAR_THEORY_H_
#define COMMON_DATASET_LINEAR_THEORY_H_

namespace assay::dataset {

struct Cosmology {
  double omega_m;  // matter density today over the critical density
  double sigma_8;  // rms fluctuation today in spheres of 8 Mpc/h
  double n_s;      // slope of the primordial spectrum
  double h;        // Hubble constant in units of 100 km/s/Mpc
};

// Transfer function without baryon wiggles; k in h/Mpc. Tends to 1 for small k.
// Eisenstein and Hu 1998 (ApJ 496, 605), equations 26 and 28 to 31, Omega_b = 0.0486, T = 2.7255 K.
double Transfer(const Cosmology& cosmology, double k);

// Linear growth from redshift z until today, D(z) / D(0): 1 at z = 0, less before.
// Carroll, Press and Turner 1992 (ARA&A 30, 499), equation 29.
double Growth(double omega_m, double z);

// Linear matter power spectrum today, scaled to sigma_8.
class PowerSpectrum {
 public:
  explicit PowerSpectrum(const Cosmology& cosmology);

  // In (Mpc/h)^3, for k in h/Mpc, k > 0.
  double operator()(double k) const;

 private:
  const Cosmology cosmology_;
  double amplitude_ = 1;
};

// Rms fluctuation in spheres of `radius` Mpc/h: the integral that defines sigma_8 for radius 8.
double SphereFluctuation(const PowerSpectrum& spectrum, double radius);

}  // namespace assay::dataset

#endif  // COMMON_DATASET_LINEAR_THEORY_H_
