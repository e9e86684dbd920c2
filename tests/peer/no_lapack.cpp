// What Kiln does without LAPACK. This program holds lapack.cpp as KILN_LAPACK=OFF compiles it, and
// its functions come before those of the library it links.
#include <cstdio>
#include <functional>
#include <string>

#include "kiln/kiln.h"

int main() {
  using namespace kiln;
  int failures = 0;
  const auto check = [&](bool good, const char* what) {
    if (!good) std::printf("failed: %s\n", what);
    failures += good ? 0 : 1;
  };
  const auto throws = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const NotImplementedError& error) {
      return std::string(error.what()).find("KILN_LAPACK=OFF") != std::string::npos;
    }
    return false;
  };
  const Tensor x = eye(100, {f64}) * 2.0;
  check(throws([&] { (void)linalg::svd(x); }), "svd");
  check(throws([&] { (void)linalg::eigh(x); }), "eigh");
  check(throws([&] { (void)linalg::eig(x); }), "eig");
  check(throws([&] { (void)linalg::qr(x); }), "qr");
  check(throws([&] { (void)linalg::inv(x); }), "inv");
  check(throws([&] { (void)linalg::cholesky(x); }), "cholesky");
  check(throws([&] { (void)linalg::solve(x, x); }), "solve");
  check(throws([&] { (void)linalg::lstsq(x, x); }), "lstsq");
  // Small matrices and products need no LAPACK.
  const Tensor small = tensor({{2.0, 0.0}, {0.0, 4.0}});
  check(linalg::inv(small).equal(tensor({{0.5, 0.0}, {0.0, 0.25}})), "inverse of a small matrix");
  check(x.matmul(x).equal(eye(100, {f64}) * 4.0), "product");
  return failures == 0 ? 0 : 1;
}
