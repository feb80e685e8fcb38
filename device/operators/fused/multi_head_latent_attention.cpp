// Latent attention, a head at a time: its keys and values are expanded from the latent rows, then attended causally.
#include "sagebook_kernel.h"
#include "../common/attend.h"

extern "C" int sagebook_kernel(const sb_tensor *inputs, int64_t n_inputs, sb_tensor *outputs, int64_t n_outputs,
                               const double *attributes, int64_t n_attributes) {
  if (n_inputs != 6 || n_outputs != 1 || n_attributes != 1) return 1;
  Dense q(inputs[0]), turned(inputs[1]), c(inputs[2]), k_turned(inputs[3]), to_key(inputs[4]), to_value(inputs[5]);
  if (q.code || turned.code || c.code || k_turned.code || to_key.code || to_value.code) return 2;
  const int64_t s = q.size(0), h = q.size(1), dn = q.size(2), dr = turned.size(2), t = c.size(0), r = c.size(1);
  const int64_t dv = to_value.size(2), width = dn + dr;
  Dense out({s, h, dv});
  int failed = 0;
#pragma omp parallel for schedule(dynamic) if (h > 1 && h * t * r * dn >= 16 * SB_PARALLEL)
  for (int64_t head = 0; head < h; ++head) {
    std::vector<float> plain(t * dn), values(t * dv), keys(t * width), queries(s * width), answers(s * dv);
    int code = product(c.data(), to_key.data() + head * r * dn, plain.data(), t, r, dn);
    code = code ? code : product(c.data(), to_value.data() + head * r * dv, values.data(), t, r, dv);
    for (int64_t j = 0; j < t; ++j) {
      std::memcpy(keys.data() + j * width, plain.data() + j * dn, sizeof(float) * dn);
      std::memcpy(keys.data() + j * width + dn, k_turned.data() + j * dr, sizeof(float) * dr);
    }
    for (int64_t i = 0; i < s; ++i) {
      std::memcpy(queries.data() + i * width, q.data() + (i * h + head) * dn, sizeof(float) * dn);
      std::memcpy(queries.data() + i * width + dn, turned.data() + (i * h + head) * dr, sizeof(float) * dr);
    }
    code = code ? code
                : attend(queries.data(), keys.data(), values.data(), answers.data(), s, t, width, dv,
                         static_cast<float>(attributes[0]), [&](int64_t i, float *scores) {
                           for (int64_t j = t - s + i + 1; j < t; ++j) scores[j] = -__builtin_inff();
                         });
    for (int64_t i = 0; i < s; ++i)
      std::memcpy(out.data() + (i * h + head) * dv, answers.data() + i * dv, sizeof(float) * dv);
#pragma omp critical
    failed = code ? code : failed;
  }
  return failed ? failed : out.into(outputs[0]);
}
