"""Places, low bits and floors, by which a blind curator cannot follow a box."""

from __future__ import annotations

import nacl.public
import numpy as np
import pytest

from hushbid.protocol.crypto.blinding import MASK_BYTES, BlindKeys
from hushbid.protocol.crypto.unlinking import OwnMask, PairKey, Places
from hushbid.protocol.errors import ConfigError, LocalProtocolError

SESSION, BATCH, ROUND = bytes(range(16)), 3, 4
BOUND = 10**9
OWNER, OTHER, CONSUMER = (nacl.public.PrivateKey(bytes([number]) * 32) for number in (1, 2, 3))
ROWS = np.random.default_rng(0).integers(-9000, 9000, (40, 8)).astype(np.int16)


def pair(secret: nacl.public.PrivateKey = OWNER, session: bytes = SESSION) -> PairKey:
    return PairKey(secret, CONSUMER.public_key, session)


def own_mask(places: Places | None = None, number: int = ROUND) -> OwnMask:
    mask = BlindKeys(bytes(32), SESSION).mask(number, BOUND)
    return OwnMask(mask, places or pair().places(number, BATCH))


def order(places: Places) -> list[int]:
    return [places.place(handle) for handle in range(1, places.count + 1)]


def test_owner_and_consumer_have_the_same_places_and_nobody_else_has() -> None:
    theirs = PairKey(CONSUMER, OWNER.public_key, SESSION).places(ROUND, BATCH)
    assert order(theirs) == order(pair().places(ROUND, BATCH))
    others = (
        pair(OTHER).places(ROUND, BATCH),
        pair(session=SESSION[::-1]).places(ROUND, BATCH),
        PairKey(OTHER, OWNER.public_key, SESSION).places(ROUND, BATCH),
    )
    assert all(order(each) != order(theirs) for each in others)
    # Places of the next round begin with no part of those of this one.
    assert order(pair().places(ROUND + 1, BATCH))[: theirs.count] != order(theirs)


def test_places_are_a_permutation_that_is_undone() -> None:
    places = pair().places(ROUND, BATCH)
    assert places.count == BATCH * ROUND
    assert sorted(order(places)) == list(range(places.count))
    assert [places.handle(place) for place in order(places)] == list(range(1, places.count + 1))
    arranged = places.arranged(np.arange(places.count, dtype=np.uint8))
    assert [arranged.index(number) for number in range(places.count)] == order(places)


def test_every_permutation_is_as_likely() -> None:
    found = [tuple(order(pair().places(number, 1))) for number in (3,)]
    drawn = [tuple(order(Places(bytes([at % 256, at // 256]) * 16, 3, 1))) for at in range(6000)]
    counts = {each: drawn.count(each) for each in set(drawn)}
    assert len(counts) == 6
    assert found[0] in counts
    assert max(abs(count - 1000) for count in counts.values()) < 150, "five deviations"


def test_new_boxes_are_numbered_in_another_order_than_that_of_scores() -> None:
    shuffled = [pair().places(number, BATCH).shuffled((7, 8, 9)) for number in range(1, 40)]
    assert {tuple(sorted(each)) for each in shuffled} == {(7, 8, 9)}
    assert len(set(shuffled)) == 6


def test_the_order_of_scores_is_kept_and_equal_points_differ() -> None:
    mask, other = own_mask(), own_mask(pair(OTHER).places(ROUND, BATCH))
    handles = list(range(1, 13))
    scores = [-BOUND, -7, -1, 0, 0, 0, 1, 2, 3, 4, 5, BOUND]
    rows = ROWS[[0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10]]
    made = mask.of(handles, scores, rows)
    assert [each for each in made if each not in made[3:6]] == sorted(
        each for each in made if each not in made[3:6]
    )
    assert made[2] < min(made[3:6])
    assert max(made[3:6]) < made[6]
    assert len({*made, *other.of(handles, scores, rows)}) == 2 * len(made)
    assert {len(each) for each in made} == {MASK_BYTES}
    # Of two copies the order is one of numbers; of other points of one score it is one of φ.
    copies = [int.from_bytes(each, "big") for each in made[3:5]]
    assert copies[0] >> 16 == copies[1] >> 16
    swapped = mask.of([handles[5], handles[3]], [0, 0], rows[[3, 5]])
    assert (swapped[0] < swapped[1]) == (made[3] < made[5])
    assert (mask.tie(rows[3]) < mask.tie(rows[5])) == (made[3] < made[5])


def test_floors_lie_below_all_points_and_no_two_are_equal() -> None:
    mask = own_mask()
    floors = mask.floors()
    assert len(floors) == len(set(floors)) == BATCH * ROUND
    assert max(floors) < mask.of([1], [-BOUND], ROWS[:1])[0]
    assert all(mask.is_floor(floor) for floor in floors)
    assert not mask.is_floor(mask.of([1], [-BOUND], ROWS[:1])[0])
    assert not mask.is_floor(bytes(MASK_BYTES))
    assert all(any(floor) for floor in floors), "zeros are no score"


def test_a_score_fits_its_point_in_any_box_and_no_other() -> None:
    mask = own_mask()
    (masked,) = mask.of([5], [123], ROWS[:1])
    assert mask.fits(masked, 123, ROWS[0])
    assert mask.fits(mask.of([6], [123], ROWS[:1])[0], 123, ROWS[0])
    assert not mask.fits(masked, 122, ROWS[0])
    assert not mask.fits(masked, 124, ROWS[0])
    assert not mask.fits(masked, 123, ROWS[1])
    assert not own_mask(pair(OTHER).places(ROUND, BATCH)).fits(masked, 123, ROWS[0])
    assert not mask.fits(mask.floors()[0], 123, ROWS[0])


def test_a_score_beyond_its_bound_is_refused() -> None:
    for score in (-BOUND - 1, BOUND + 1):
        with pytest.raises(LocalProtocolError, match="outside of its bound"):
            own_mask().of([1, 2], [0, score], ROWS[:2])
    assert own_mask().of([], [], ROWS[:0]) == []


@pytest.mark.parametrize("bound", [1, BOUND, 2**44 - 1, 2**63 - 1])
def test_a_masked_score_is_the_number_that_the_documents_say(bound: int) -> None:
    places = pair().places(ROUND, BATCH)
    common = BlindKeys(bytes(32), SESSION).mask(ROUND, bound)
    mask, scale = OwnMask(common, places), common.scale
    scores = [-bound, -1, 0, 1, bound]
    handles = [1, 5, 3, 12, 2]
    ties, low = places.ties(ROWS[:5]).tolist(), places.low().tolist()
    expected = [
        scale * (score + bound + 1) + common.offset + (tie * (scale >> 16) >> 64 << 16) + low[handle - 1]
        for handle, score, tie in zip(handles, scores, ties, strict=True)
    ]
    made = mask.of(handles, scores, ROWS[:5])
    assert [int.from_bytes(each, "big") for each in made] == expected
    floors = [common.offset + (word * scale >> 64) for word in places.floors().tolist()]
    assert [int.from_bytes(each, "big") for each in mask.floors()] == floors


def test_places_of_taken_boxes_are_in_order_and_no_others() -> None:
    places = pair().places(ROUND, BATCH)
    assert places.taken([7, 2, 11]).tolist() == sorted(places.place(handle) for handle in (2, 7, 11))


def test_a_key_that_gives_everything_away_is_refused() -> None:
    with pytest.raises(ConfigError, match="low order"):
        PairKey(OWNER, nacl.public.PublicKey(bytes(32)), SESSION)
