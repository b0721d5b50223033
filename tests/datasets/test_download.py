"""Downloads, from a server on this machine that serves files well, badly or not at all."""

import hashlib
import io
import json
import socket
import threading
import wave
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from timesliver.datasets import audio, eeg, info, load, names
from timesliver.datasets.download import fetch
from timesliver.datasets.places import cache_folder, temporary_folder
from timesliver.errors import InvalidInputError, MissingExtraError

pooch = pytest.importorskip("pooch")
REMEDY = "put it at the right place"


class Server:
    """Serve `files` (path to content); those in `broken` end too early."""

    def __init__(self):
        self.files, self.broken = {}, set()
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.removeprefix("/")
                content = served.files.get(path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if path in served.broken else content)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server():
    with Server() as served:
        yield served


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("TIMESLIVER_DATA", raising=False)
    monkeypatch.setenv("TIMESLIVER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def nobody():
    """Return the address of a server that is not there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/"


def contents(folder):
    return sorted(path.name for path in folder.rglob("*")) if folder.exists() else []


class TestFetch:
    @pytest.fixture
    def target(self, tmp_path):
        (tmp_path / "there").mkdir()
        return tmp_path / "there" / "file.bin"

    def test_whole(self, server, target):
        server.files["a"] = bytes(range(256)) * 1000
        digest = hashlib.sha256(server.files["a"]).hexdigest()
        for checksum in (None, digest, f"sha256:{digest.upper()}"):
            fetch(server.url + "a", target, checksum, remedy=REMEDY)
            assert target.read_bytes() == server.files["a"]
        assert contents(target.parent) == ["file.bin"]

    def test_broken_transfer(self, server, target):
        server.files["a"] = b"x" * 500_000
        server.broken.add("a")
        with pytest.raises(InvalidInputError, match=rf"cannot download {server.url}a.*; {REMEDY}"):
            fetch(server.url + "a", target, remedy=REMEDY)
        assert contents(target.parent) == []

    def test_wrong_checksum(self, server, target):
        server.files["a"] = b"changed"
        with pytest.raises(InvalidInputError, match=rf"sha1 checksum \w+, expected 0000.*{REMEDY}"):
            fetch(server.url + "a", target, "sha1:0000", remedy=REMEDY)
        assert contents(target.parent) == []

    def test_an_older_file_survives(self, server, target):
        target.write_bytes(b"good")
        server.files["a"] = b"bad"
        with pytest.raises(InvalidInputError):
            fetch(server.url + "a", target, "sha1:0000", remedy=REMEDY)
        assert target.read_bytes() == b"good"

    def test_no_such_file(self, server, target):
        with pytest.raises(InvalidInputError, match=rf"404.*; {REMEDY}"):
            fetch(server.url + "b", target, remedy=REMEDY)
        assert contents(target.parent) == []

    def test_no_server(self, target):
        with pytest.raises(InvalidInputError, match=rf"server cannot be reached\); {REMEDY}"):
            fetch(nobody() + "a", target, remedy=REMEDY)
        assert contents(target.parent) == []

    def test_without_pooch(self, target, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "pooch", None)
        with pytest.raises(MissingExtraError, match=r"'pooch'.*timesliver\[archive\]"):
            fetch("http://127.0.0.1/", target, remedy=REMEDY)


def ts(n_cases, label="a b"):
    rows = "".join(f"{i}.5,2,3:{'ab'[i % 2]}\n" for i in range(n_cases))
    return f"@univariate true\n@equalLength true\n@classLabel true {label}\n@data\n{rows}".encode()


class TestArchive:
    """Through aeon, which asks Zenodo for a record, and then for the files in it."""

    @pytest.fixture
    def serve(self, server, monkeypatch):
        pytest.importorskip("aeon")
        from aeon.datasets import _data_loaders as loaders

        def urlopen(request, timeout):
            path = request.full_url.removeprefix(server.url)
            known = path if path in server.files else "record"
            return opened(server.url + known, timeout=timeout)

        opened = loaders.urlopen
        monkeypatch.setattr(loaders, "urlopen", urlopen)

        def serve(**files):
            links = [{"key": name, "links": {"self": server.url + name}} for name in files]
            server.files.update(files, record=json.dumps({"files": links}).encode())

        return serve

    def test_whole(self, serve, server, cache):
        serve(**{"Coffee_TRAIN.ts": ts(28), "Coffee_TEST.ts": ts(28)})
        data = load("coffee")
        assert (data.name, data.X.shape, data.y[:2].tolist()) == ("Coffee", (28, 1, 3), ["a", "b"])
        assert data.X[1, 0].tolist() == [1.5, 2, 3]
        server.files.clear()
        assert load("Coffee", "test").X.shape == (28, 1, 3)  # from the cache
        assert contents(cache) == ["Coffee.npz", "ucr"]
        assert "Coffee" in names()

    def test_a_name_that_is_not_registered(self, serve):
        serve(**{"Adiac_TRAIN.ts": ts(4), "Adiac_TEST.ts": ts(6)})
        assert load("adiac", "test").X.shape == (6, 1, 3)
        assert load("Adiac").name == "Adiac"

    def test_broken_transfer(self, serve, server, cache):
        serve(**{"Coffee_TRAIN.ts": ts(28), "Coffee_TEST.ts": ts(28)})
        server.broken.add("Coffee_TRAIN.ts")
        with pytest.raises(InvalidInputError, match=r"the set Coffee.*put Coffee_TRAIN\.ts"):
            load("Coffee")
        assert contents(cache) == []

    def test_cases_that_are_missing(self, serve, cache):
        serve(**{"Coffee_TRAIN.ts": ts(28), "Coffee_TEST.ts": ts(20)})
        with pytest.raises(InvalidInputError, match="20 test cases, expected 28"):
            load("Coffee")
        assert contents(cache) == []

    def test_offline_and_the_files_put_by_hand(self, server, monkeypatch, cache):
        pytest.importorskip("aeon")
        from aeon.datasets import _data_loaders as loaders

        def urlopen(*_, **__):
            raise OSError("no network")

        monkeypatch.setattr(loaders, "urlopen", urlopen)
        with pytest.raises(InvalidInputError, match=r"no network.*put Coffee_TRAIN\.ts") as caught:
            load("Coffee")
        folder = cache / "ucr" / "Coffee"
        assert str(folder) in str(caught.value)
        folder.mkdir(parents=True)
        (folder / "Coffee_TRAIN.ts").write_bytes(ts(4))
        assert load("Coffee").X.shape == (4, 1, 3)


def esc50(categories=audio.CATEGORIES, seconds=5):
    """Return an archive laid out like ESC-50's, with short-waved clips."""
    rows = ["filename,fold,target,category,esc10,src_file,take"]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for target, category in enumerate([*categories, "rain"]):
            for i in range(40):
                name = f"{i % 5 + 1}-{target}{i:02}-A-{target}.wav"
                rows.append(f"{name},{i % 5 + 1},{target},{category},False,{target}{i:02},A")
                sound = io.BytesIO()
                with wave.open(sound, "wb") as clip:
                    clip.setparams((1, 2, 100, 0, "NONE", ""))
                    clip.writeframes(bytes(2 * 100 * seconds))
                archive.writestr(f"ESC-50-master/audio/{name}", sound.getvalue())
        archive.writestr("ESC-50-master/meta/esc50.csv", "\n".join(rows))
    return content.getvalue()


class TestAudio:
    def test_download_and_load(self, server, cache, monkeypatch):
        server.files["esc.zip"] = esc50()
        monkeypatch.setattr(audio, "URL", server.url + "esc.zip")
        folder = audio.download_animals(server.url + "esc.zip")
        assert len(list(folder.glob("*.wav"))) == 400
        made = []

        def mfcc(path):
            made.append(path.name)
            return np.full((40, 501), len(made))

        monkeypatch.setattr(audio, "mfcc", mfcc)
        parts = [load("ESC50_animals", split) for split in ("train", "validation", "test")]
        assert [part.X.shape for part in parts] == [(n, 40, 501) for n in (240, 80, 80)]
        assert len(made) == 400  # computed once for all parts
        parts = [load("esc50_animals_paper", split) for split in ("train", "validation", "test")]
        assert [len(part) for part in parts] == [280, 60, 60]
        clips = np.concatenate([part.X[:, 0, 0] for part in parts])
        assert sorted(clips) == list(range(1, 401))
        assert all(len(set(np.unique(part.y, return_counts=True)[1])) == 1 for part in parts)

        stored = next((cache / "audio").glob("*.npz"))
        stored.write_bytes(stored.read_bytes()[:1000])
        with pytest.raises(InvalidInputError, match=r"mfcc-\w+\.npz .* cache: delete it"):
            load("ESC50_animals")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (esc50()[:100_000], "not a zip file"),
            (esc50(categories=audio.CATEGORIES[:9]), "must list 40 clips of each"),
            (esc50(seconds=4), "is not 5 s long"),
        ],
    )
    def test_not_what_it_should_be(self, server, cache, content, message):
        server.files["esc.zip"] = content
        with pytest.raises(InvalidInputError, match=rf"{message}.*put the 400 animal clips"):
            audio.download_animals(server.url + "esc.zip")
        assert contents(cache) == []

    def test_broken_or_changed(self, server, cache):
        server.files["esc.zip"] = esc50()
        with pytest.raises(InvalidInputError, match="checksum"):
            audio.download_animals(server.url + "esc.zip", "sha256:00")
        server.broken.add("esc.zip")
        with pytest.raises(InvalidInputError, match="cannot download"):
            audio.download_animals(server.url + "esc.zip")
        assert contents(cache) == []

    def test_coefficients(self, tmp_path):
        pytest.importorskip("librosa")
        soundfile = pytest.importorskip("soundfile")
        time = np.arange(5 * 44_100) / 44_100
        for name, pitch in (("low", 200), ("high", 5000)):
            soundfile.write(tmp_path / f"{name}.wav", np.sin(2 * np.pi * pitch * time), 44_100)
        low, high = (audio.mfcc(tmp_path / f"{name}.wav") for name in ("low", "high"))
        assert low.shape == high.shape == (40, 501)
        assert low[1, 250] > 0 > high[1, 250]  # the first cosine: more at the bottom than on top
        (tmp_path / "bad.wav").write_bytes(b"RIFF")
        with pytest.raises(InvalidInputError, match=r"cannot read the sound file .*bad\.wav"):
            audio.mfcc(tmp_path / "bad.wav")

    def test_tables_with_mistakes(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TIMESLIVER_DATA", str(tmp_path))
        folder = tmp_path / audio.FOLDER
        folder.mkdir(parents=True)
        with pytest.raises(InvalidInputError, match=r"no meta\.csv"):
            load("ESC50_animals")
        (folder / "meta.csv").write_text("filename,fold\na.wav,1\n")
        with pytest.raises(InvalidInputError, match="must have the columns"):
            load("ESC50_animals")
        rows = [f"{one}{i}.wav,1,0,{one},{i}" for one in audio.CATEGORIES for i in range(40)]
        (folder / "meta.csv").write_text("\n".join([",".join(audio.COLUMNS), *rows]))
        with pytest.raises(InvalidInputError, match=r"lacks 400 clips, the first is dog0\.wav"):
            load("ESC50_animals")


RECORD = "SC4001E0"


@pytest.fixture(scope="module")
def night_files(tmp_path_factory):
    """Return the two files of a short night: 70 epochs of wake, 60 of sleep, 70 of wake."""
    mne = pytest.importorskip("mne")
    pytest.importorskip("edfio")
    folder = tmp_path_factory.mktemp("edf")
    said = ["W"] * 70 + list("1234R") * 12 + ["W"] * 69 + ["?"]
    signal = np.repeat(np.arange(len(said)), 3000) * 1e-7  # 0.1 microvolt more in each epoch
    signal = np.stack([signal, -signal])
    files = {}
    for name in eeg._recordings()[RECORD]:
        channels = mne.create_info(["EEG Fpz-Cz", "EEG Pz-Oz"], 100, "eeg")
        raw = mne.io.RawArray(signal, channels, verbose="ERROR")
        if "Hypnogram" in name:
            onsets = 30 * np.arange(len(said))
            stages = [f"Sleep stage {one}" for one in said]
            raw.set_annotations(mne.Annotations(onsets, 30, stages))
        raw.export(folder / name, fmt="edf", verbose="ERROR")
        files[name] = (folder / name).read_bytes()
    return files


class TestSleep:
    @pytest.fixture
    def known(self, night_files, monkeypatch):
        sums = {name: hashlib.sha1(content).hexdigest() for name, content in night_files.items()}
        monkeypatch.setattr(eeg, "_recordings", lambda: {RECORD: sums})

    def test_download_and_prepare(self, night_files, known, server, cache):
        server.files.update(night_files)
        path = eeg.prepare_night(RECORD, server.url)
        assert contents(cache) == [f"SleepEDF_{RECORD}.npz", "eeg"]
        with np.load(path) as night:
            assert night["epoch_index"].tolist() == list(range(10, 190))
            assert night["X"].shape == (180, 1, 3000)
            expected = np.arange(10, 190)[:, None] * 0.1
            np.testing.assert_allclose(night["X"][:, 0], expected + np.zeros(3000), atol=1e-2)
            stages = dict(zip(*np.unique(night["y"], return_counts=True), strict=True))
        assert stages == {"W": 120, "N1": 12, "N2": 12, "N3": 24, "REM": 12}
        data = load(f"SleepEDF_{RECORD}", "train")
        assert data.X.shape[1:] == (1, 3000)

    def test_files_put_by_hand(self, night_files, known, tmp_path, monkeypatch):
        (tmp_path / "eeg").mkdir()
        monkeypatch.setenv("TIMESLIVER_DATA", str(tmp_path))
        for name, content in night_files.items():
            (tmp_path / "eeg" / name).write_bytes(content)
        assert len(load(f"SleepEDF_{RECORD}")) > 50

    def test_broken_or_changed(self, night_files, known, server, cache):
        server.files.update(night_files)
        signal, hypnogram = night_files
        server.files[hypnogram] = night_files[hypnogram] + b"x"
        with pytest.raises(InvalidInputError, match=r"checksum.*put the file at"):
            eeg.prepare_night(RECORD, server.url)
        server.broken.add(signal)
        with pytest.raises(InvalidInputError, match=f"cannot download.*eeg/{signal}"):
            eeg.prepare_night(RECORD, server.url)
        assert contents(cache) == []

    def test_a_file_that_is_no_recording(self, night_files, tmp_path):
        (tmp_path / "a.edf").write_bytes(b"no recording")
        with pytest.raises(InvalidInputError, match=r"cannot read .*a\.edf"):
            eeg.read_night(tmp_path / "a.edf", tmp_path / "a.edf")

    def test_subjects_balance_and_seeds(self, cache):
        """Twenty subjects, from prepared night_files of a few epochs each."""
        (cache / "eeg").mkdir(parents=True)
        stages = np.array(["W", "W", "N1", "N2", "N3", "REM", "W"])
        for number, record in enumerate(eeg._recordings()):
            X = np.full((7, 1, 3000), number, dtype=np.float32)
            np.savez(cache / f"eeg/SleepEDF_{record}.npz", X=X, y=stages, epoch_index=np.arange(7))
        subject = np.array([record[3:5] for record in eeg._recordings()])
        seen = {}
        for split in info("SleepEDF").splits:
            data = load("SleepEDF", split)
            assert len(set(np.unique(data.y, return_counts=True)[1])) == 1
            seen[split] = set(subject[np.unique(data.X[:, 0, 0].astype(int))])
        assert {split: len(who) for split, who in seen.items()} == eeg.SUBJECTS
        assert len(set.union(*seen.values())) == 20
        other = load("SleepEDF", "test", seed=1).X[:, 0, 0].astype(int)
        assert set(subject[np.unique(other)]) != seen["test"]

    def test_no_sleep(self):
        with pytest.raises(InvalidInputError, match="no epoch"):
            eeg.epochs_of_interest(np.array(["W", "", "W"]))


class TestCache:
    def test_default(self, monkeypatch):
        monkeypatch.delenv("TIMESLIVER_CACHE")
        assert cache_folder().name == "timesliver"
        assert cache_folder().is_absolute()

    def test_a_corrupt_file(self, cache):
        (cache / "ucr").mkdir(parents=True)
        (cache / "ucr/Coffee.npz").write_bytes(b"PK not really")
        with pytest.raises(InvalidInputError, match=r"Coffee\.npz .*cache: delete it"):
            load("Coffee")

    def test_yours_comes_first(self, cache, tmp_path, monkeypatch):
        for number, folder in enumerate((tmp_path / "mine", cache)):
            folder.mkdir()
            np.savez(folder / "Coffee.npz", X_train=np.full((2, 1, 3), number), y_train=[1, 2])
        assert load("Coffee").X[0, 0, 0] == 1
        monkeypatch.setenv("TIMESLIVER_DATA", str(tmp_path / "mine"))
        assert load("Coffee").X[0, 0, 0] == 0

    def test_what_a_crash_left_is_no_set(self, cache):
        (cache / "ucr").mkdir(parents=True)
        (cache / "ucr/.Wave.1a2b3c4d.npz").write_bytes(b"half")
        (cache / ".work-1/Wave").mkdir(parents=True)
        (cache / ".work-1/Wave/Wave_TRAIN.ts").touch()
        assert not [name for name in names() if "Wave" in name and "UWave" not in name]

    def test_a_folder_that_cannot_be_written(self, tmp_path, monkeypatch):
        (tmp_path / "file").touch()
        monkeypatch.setenv("TIMESLIVER_CACHE", str(tmp_path / "file" / "cache"))
        with pytest.raises(InvalidInputError, match="TIMESLIVER_CACHE"), temporary_folder():
            pass
