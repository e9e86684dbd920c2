"""Fails when a page of the site links to a file or a heading that is not there.

usage: site_links.py FOLDER
"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(errors="replace"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            if (tag, name) in {("a", "href"), ("img", "src"), ("link", "href"), ("script", "src")}:
                self.links.append(value or "")


def main() -> None:
    """Checks all pages but Doxygen's, which makes its own links."""
    root = pathlib.Path(sys.argv[1])
    pages = {p: Page(p) for p in root.rglob("*.html") if root / "cpp" not in p.parents}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if urllib.parse.urlparse(link).scheme or path.name == "404.html":
                continue
            file = (path.parent / urllib.parse.unquote(target)).resolve() if target else path
            if not file.exists():
                broken.append(f"{path.relative_to(root)}: {link}")
            elif anchor and file in pages and anchor not in pages[file].anchors:
                broken.append(f"{path.relative_to(root)}: no heading {link}")
    for line in sorted(set(broken)):
        print(line)
    if broken:
        sys.exit(f"site: {len(set(broken))} links lead nowhere")
    print(f"site: {len(pages)} pages, every link leads somewhere")


main()
