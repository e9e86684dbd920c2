// Finds the parts of a noisy picture: blur, threshold, open, and count what hangs together.
//
//   build/release/examples/vision_filters
#include <cstdio>

#include <kiln/kiln.h>
#include <kiln/vision/vision.h>

using namespace kiln;

int main() {
  manual_seed(0);
  const Tensor y = arange(96).to(f32).unsqueeze(1), x = arange(128).to(f32).unsqueeze(0);
  Tensor picture = randn({96, 128}) * 0.25;
  const double discs[][3] = {{20, 20, 8}, {30, 60, 12}, {70, 35, 10}, {60, 100, 15}};
  for (const auto& [row, column, radius] : discs) {
    const Tensor distance = (y - row).square() + (x - column).square();
    picture += (distance <= radius * radius).to(f32);
  }
  const Tensor smooth = vision::median_blur(vision::gaussian_blur(picture, 5), 5);
  const Tensor kernel = vision::structuring_element("ellipse", 5, 5);
  const auto parts = vision::connected_components_with_stats(vision::opening(smooth > 0.5, kernel));
  std::printf("%lld discs\n", static_cast<long long>(parts.count.item<int64_t>()));
  for (int64_t k = 1; k <= parts.count.item<int64_t>(); ++k) {
    std::printf("  around row %.0f, column %.0f: %lld pixels\n",
                parts.centroid.select(0, k).select(0, 1).item(),
                parts.centroid.select(0, k).select(0, 0).item(),
                static_cast<long long>(parts.area.select(0, k).item<int64_t>()));
  }
}
