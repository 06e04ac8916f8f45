"""Names with settings: one text, two parts."""

import copy
import json
import pickle

from pagnn_bench.config.names import Name


def test_a_name_is_its_text():
    plain, other = Name("gain"), Name("gain", "round=true")
    assert (str(plain), plain.plain, plain.settings) == ("gain", "gain", "")
    assert (str(other), other.plain, other.settings) == ("gain[round=true]", "gain", "round=true")
    assert plain == "gain" != other
    assert sorted([other, plain]) == [plain, other]
    assert json.dumps({other: other}) == '{"gain[round=true]": "gain[round=true]"}'


def test_what_a_person_writes_is_read_back():
    for name in (Name("gain"), Name("gain", "round=true"), Name("a", "space={x: [1, 2]}")):
        read = Name.parse(str(name))
        assert (read.plain, read.settings) == (name.plain, name.settings)


def test_the_parts_survive_copies():
    for name in (Name("gain"), Name("gain", "round=true")):
        for twin in (copy.deepcopy(name), pickle.loads(pickle.dumps(name)), Name.parse(name)):
            assert (twin, twin.plain, twin.settings) == (name, name.plain, name.settings)
