"""Downloads from a server on this computer: whole, interrupted, wrong, and from a local copy."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from recollect.bench.data.download import RECORD_FILE, PublishedFile, download, download_files, import_copy
from recollect.errors import InputError, RecollectError

DATA = bytes(range(256)) * 1000
SHA = f"sha256:{hashlib.sha256(DATA).hexdigest()}"
MD5 = f"md5:{hashlib.md5(DATA, usedforsecurity=False).hexdigest()}"


@dataclass
class Site:
    """What the server has and how it behaves; ``requests`` lists the Range of every request."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=lambda: {"/data": DATA})
    ranges: bool = True
    announces: bool = True
    cut_at: int | None = None  # the connection ends after so many bytes of the answer
    shifted: bool = False  # resumes at another byte than requested
    requests: list[str | None] = field(default_factory=list)


def handler_of(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested = self.headers.get("Range")
            site.requests.append(requested)
            if self.path not in site.files:
                self.send_error(404)
                return
            data, begin = site.files[self.path], 0
            if requested and site.ranges:
                begin = int(requested.removeprefix("bytes=").removesuffix("-"))
                if begin >= len(data):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(data)}")
                    self.end_headers()
                    return
                self.send_response(206)
                reported = begin - 1 if site.shifted else begin
                self.send_header("Content-Range", f"bytes {reported}-{len(data) - 1}/{len(data)}")
            else:
                self.send_response(200)
            if site.announces:
                self.send_header("Content-Length", str(len(data) - begin))
            self.end_headers()
            self.wfile.write(data[begin:][: site.cut_at])

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler_of(site)) as server:
        site.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("checksum", ["", SHA, MD5])
@pytest.mark.parametrize("size", [None, len(DATA)])
def test_a_file_comes_whole_and_is_reported(site: Site, tmp_path: Path, checksum: str, size: int | None) -> None:
    reports: list[tuple[str, int, int | None]] = []
    part = PublishedFile(f"{site.address}/data", "data.csv", size, checksum)
    target = download(part, tmp_path, progress=lambda *now: reports.append(now))
    assert target.read_bytes() == DATA
    assert list(tmp_path.iterdir()) == [target]
    assert reports[0] == ("data.csv", 0, len(DATA))
    assert reports[-1] == ("data.csv", len(DATA), len(DATA))
    assert [done for _, done, _ in reports] == sorted(done for _, done, _ in reports)


def test_an_interrupted_download_is_resumed(site: Site, tmp_path: Path) -> None:
    part = PublishedFile(f"{site.address}/data", "data.csv", checksum=SHA)
    site.cut_at = 100_000
    with pytest.raises(RecollectError, match="expected 256000 bytes, but the connection ended at 100000; try again"):
        download(part, tmp_path)
    assert (tmp_path / "data.csv.part").stat().st_size == 100_000
    with pytest.raises(RecollectError, match="ended at 200000"):
        download(part, tmp_path)
    site.cut_at = None
    reports: list[int] = []
    assert download(part, tmp_path, progress=lambda _, done, __: reports.append(done)).read_bytes() == DATA
    assert site.requests == [None, "bytes=100000-", "bytes=200000-"]
    assert reports[0] == 200_000


def test_a_server_that_cannot_go_on_sends_all_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.csv.part").write_bytes(b"x" * 1000)
    site.ranges = False
    assert download(PublishedFile(f"{site.address}/data", "data.csv"), tmp_path).read_bytes() == DATA


def test_a_server_that_resumes_at_another_byte_is_not_trusted(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.csv.part").write_bytes(DATA[:1000])
    site.shifted = True
    with pytest.raises(RecollectError, match=r"interrupted \(requested bytes from 1000, got bytes 999-"):
        download(PublishedFile(f"{site.address}/data", "data.csv"), tmp_path)
    assert (tmp_path / "data.csv.part").read_bytes() == DATA[:1000]


@pytest.mark.parametrize("size", [None, len(DATA)])
def test_a_complete_partial_file_is_only_checked(site: Site, tmp_path: Path, size: int | None) -> None:
    (tmp_path / "data.csv.part").write_bytes(DATA)
    assert download(PublishedFile(f"{site.address}/data", "data.csv", size, SHA), tmp_path).read_bytes() == DATA
    assert len(site.requests) == (size is None)


def test_a_remainder_longer_than_the_file_is_deleted(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.csv.part").write_bytes(DATA + b"more")
    assert download(PublishedFile(f"{site.address}/data", "data.csv"), tmp_path).read_bytes() == DATA


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"checksum": "sha256:00"}, "expected the sha256 checksum 00, got "),
        ({"checksum": "md5:00"}, "expected the md5 checksum 00, got "),
        ({"size": 1000}, "expected 1000 bytes, got 256000"),
    ],
)
def test_another_content_than_published_is_deleted(
    site: Site, tmp_path: Path, part: dict[str, str | int], message: str
) -> None:
    with pytest.raises(RecollectError, match=message):
        download(PublishedFile(f"{site.address}/data", "data.csv", **part), tmp_path)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_answer_without_an_announced_length_is_found_by_the_published_size(
    site: Site, tmp_path: Path
) -> None:
    site.announces, site.cut_at = False, 5000
    with pytest.raises(RecollectError, match="expected 256000 bytes, but the connection ended at 5000"):
        download(PublishedFile(f"{site.address}/data", "data.csv", len(DATA)), tmp_path)


def test_a_refusal_and_an_unreachable_server_are_one_sentence(site: Site, tmp_path: Path) -> None:
    with pytest.raises(RecollectError, match="/none: the server refuses: 404"):
        download(PublishedFile(f"{site.address}/none", "data.csv"), tmp_path)
    with pytest.raises(
        RecollectError, match=r"cannot be reached .* offline, download the file elsewhere .* --from"
    ) as caught:
        download(PublishedFile("http://127.0.0.1:9/data", "data.csv"), tmp_path)
    assert "\n" not in str(caught.value)


def parts_of(site: Site) -> tuple[PublishedFile, ...]:
    site.files = {"/a": b"one", "/b": b"two"}
    return PublishedFile(f"{site.address}/a", "a"), PublishedFile(
        f"{site.address}/b", "b", checksum="sha256:" + sha(b"two")
    )


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_set_of_files_appears_when_all_are_there_and_checked(site: Site, tmp_path: Path) -> None:
    folder, parts = tmp_path / "home" / "set", parts_of(site)
    del site.files["/b"]
    with pytest.raises(RecollectError, match="404"):
        download_files(folder, parts, check=lambda path: path)
    assert not folder.exists()
    site.files["/b"] = b"two"
    seen: list[set[str]] = []
    assert download_files(folder, parts, check=lambda path: seen.append({f.name for f in path.iterdir()})) == folder
    assert seen == [{"a", "b"}]
    assert {file.name for file in folder.parent.iterdir()} == {"set"}
    assert (folder / "b").read_bytes() == b"two"
    assert len(site.requests) == 3  # the first file came once


def test_received_files_are_recorded(site: Site, tmp_path: Path) -> None:
    folder, parts = tmp_path / "set", parts_of(site)
    download_files(folder, parts, check=lambda path: path)
    stored = json.loads((folder / RECORD_FILE).read_text())
    assert stored["version"] == 1
    assert stored["files"] == [
        {"url": parts[0].url, "size": 3, "sha256": sha(b"one"), "checked": "no checksum is published"},
        {"url": parts[1].url, "size": 3, "sha256": sha(b"two"), "checked": parts[1].checksum},
    ]


def refuse(path: Path) -> None:
    raise InputError(f"{path}: not this")


def test_a_set_that_the_check_refuses_is_deleted(site: Site, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not this"):
        download_files(tmp_path / "set", parts_of(site), check=refuse)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_when_nothing_came(tmp_path: Path) -> None:
    with pytest.raises(RecollectError, match="cannot be reached"):
        download_files(tmp_path / "set", [PublishedFile("http://127.0.0.1:9/a", "a")], check=lambda path: path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecollectError, match=r"cannot write to .*file"):
        download_files(tmp_path / "file" / "set", [PublishedFile("http://127.0.0.1:9/a", "a")], check=lambda path: path)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_local_copy_replaces_earlier_data(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "source" / "a"
    source.parent.mkdir()
    source.write_bytes(b"new")
    folder = tmp_path / "home" / "set"
    folder.mkdir(parents=True)
    (folder / "old").touch()
    import_copy(folder, source if kind == "file" else source.parent, check=lambda path: path)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"a": b"new"}
    assert list(folder.parent.iterdir()) == [folder]


def test_a_local_copy_that_is_missing_or_refused_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "set"
    folder.mkdir(parents=True)
    (folder / "old").touch()
    with pytest.raises(InputError, match="there is no such file or folder"):
        import_copy(folder, tmp_path / "none", check=lambda path: path)
    with pytest.raises(InputError, match="not this"):
        import_copy(folder, folder / "old", check=refuse)
    assert [file.name for file in folder.iterdir()] == ["old"]
