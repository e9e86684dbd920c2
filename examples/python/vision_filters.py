"""Finds the parts of a noisy picture: blur, threshold, open, and count what hangs together.

    python examples/python/vision_filters.py
"""

import kiln
from kiln import vision

kiln.manual_seed(0)
y, x = kiln.meshgrid(kiln.arange(96.0), kiln.arange(128.0), indexing="ij")
picture = 0.25 * kiln.randn(96, 128)
for row, column, radius in ((20, 20, 8), (30, 60, 12), (70, 35, 10), (60, 100, 15)):
    picture += ((y - row) ** 2 + (x - column) ** 2 <= radius**2).float()

smooth = vision.median_blur(vision.gaussian_blur(picture, 5), 5)
mask = vision.opening(smooth > 0.5, vision.structuring_element("ellipse", 5, 5))
parts = vision.connected_components_with_stats(mask)
print(f"{parts['count'].item()} discs")
for k in range(1, parts["count"].item() + 1):
    column, row = parts["centroid"][k].tolist()
    print(f"  around row {row:.0f}, column {column:.0f}: {parts['area'][k].item()} pixels")

edges = vision.sobel_magnitude(smooth)
turned = vision.rotate(smooth, 90)
print(f"strongest edge {edges.max().item():.2f}; turned {tuple(turned.shape)}")
