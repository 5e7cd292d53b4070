import json


def test_without_a_name_all_are_listed(run):
    shown = run("attack")
    assert "reconstruction" in shown
    assert "Run one: deniable attack difference" in shown
    listed = json.loads(run("attack", "--json"))
    assert listed[0]["name"] == "difference"
    assert len(listed) == 10


def test_an_attack_shows_its_table_and_draws(run, folder):
    shown = run("attack", "last-bit", "--picture", "bits.png")
    assert "Deniable's lattice" in shown
    assert "picture: bits.png" in shown
    assert (folder / "bits.png").stat().st_size > 5_000


def test_json(run):
    found = json.loads(run("attack", "seed", "--json"))
    assert found["attack"] == "seed"
    assert found["parameters"]["counts"] == 8
    assert found["numbers"]["private_matches"] == 0
    assert len(found["rows"][0]) == len(found["columns"])


def test_help(run):
    assert "--picture" in run("attack", "--help")


def test_what_cannot_be_done_is_said_in_one_line(run):
    assert "did you mean linkage" in run("attack", "linkag", code=2)
    assert "no such folder" in run("attack", "seed", "--picture", "none/x.png", code=2)
    assert ".svg or .png" in run("attack", "seed", "--picture", "x.gif", code=2)
    assert "name the attack" in run("attack", "--picture", "x.png", code=2)


def test_a_picture_that_cannot_be_written_is_said_so(run, folder):
    (folder / "taken.png").mkdir()
    assert "is a folder" in run("attack", "last-bit", "--picture", "taken.png", code=2)
