"""The command `extract`: what it says."""

from locus.cli import main


def test_the_command_says_what_it_wrote_and_goes_on(capsys, tmp_path, folder):
    words = ["extract", str(folder), "--model", "classic", "--out", str(tmp_path / "out.h5")]
    assert main(words) == 0
    assert f"10 images written to {tmp_path}/out.h5" in capsys.readouterr().out
    (folder / "bad.png").touch()
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "0 images written" in captured.out
    assert "10 were there; 1 could not be read" in captured.out
    assert "bad.png is left out" in captured.err
    assert main([*words, "--layout", "hloc"]) == 2


def test_keypoints_by_name(capsys, tmp_path, folder):
    words = ["extract", str(folder), "--model", "classic", "--out", str(tmp_path / "out.h5"), "--keypoints"]
    assert main([*words, "sift", "--layout", "hloc"]) == 0
    assert "at keypoints of sift)" in capsys.readouterr().out
    assert main([*words, "sift"]) == 2
    assert "add --layout hloc" in " ".join(capsys.readouterr().err.split())
    assert main([*words, "swift", "--layout", "hloc"]) == 2
    assert "swift is no keypoint detector" in " ".join(capsys.readouterr().err.split())


def test_ctrl_c_says_how_to_go_on(capsys, tmp_path, folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("locus.features.extraction.batches", interrupted)
    assert main(["extract", str(folder), "--model", "classic", "--out", str(tmp_path / "out.h5")]) == 130
    assert "the same command goes on" in capsys.readouterr().err
