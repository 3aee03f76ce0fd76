"""Components of variance: those that were put in come out, and what does not repeat is not measured."""

from __future__ import annotations

import numpy as np
import pytest

from vivavoce.stats.planning import Components, components


def simulate(samples: float, trials: float, judge: float, shape: tuple[int, int, int]) -> dict[str, list[list[float]]]:
    """Scores with these standard deviations between samples, trials and judgements."""
    dice = np.random.default_rng(7)
    a, b, n = shape
    of_sample = dice.normal(0, samples, a)
    of_trial = dice.normal(0, trials, (a, b))
    scores = of_sample[:, None, None] + of_trial[:, :, None] + dice.normal(0, judge, (a, b, n))
    return {f"s{i}": scores[i].tolist() for i in range(a)}


@pytest.mark.parametrize("put_in", [(0.3, 0.2, 0.1), (0.1, 0.3, 0.05), (0.2, 0.0, 0.3)])
def test_what_was_put_in_comes_out(put_in: tuple[float, float, float]) -> None:
    result = components(simulate(*put_in, (4000, 5, 3)))
    assert [result.samples, result.trials, result.judgements] == pytest.approx(
        [deviation**2 for deviation in put_in], abs=0.007
    )


def test_a_balanced_table_by_hand() -> None:

    scores = {"a": [[1.0, 3.0], [5.0, 7.0]], "b": [[0.0, 2.0], [0.0, 2.0]]}
    result = components(scores)
    # means 2, 6, 1, 1; of samples 4, 1; of all 2.5. SSE 8 over 4; SSB 2*(4+4) over 2; SSA 4*(2.25+2.25) over 1
    # so MSE 2, MSB 8, MSA 18: e = 2, t = (8 - 2) / 2 = 3, s = (18 - 2 - 2 * 3) / 4 = 2.5
    assert result == Components(samples=2.5, trials=3.0, judgements=2.0)


def test_unbalanced_tables_are_right_on_average() -> None:
    full = simulate(0.3, 0.2, 0.1, (4000, 4, 2))
    some = {name: trials[: 1 + i % 4] for i, (name, trials) in enumerate(full.items())}
    some = {
        name: [trial[: 1 + (i + j) % 2] for j, trial in enumerate(sample_trials)]
        for i, (name, sample_trials) in enumerate(some.items())
    }
    result = components(some)
    assert [result.samples, result.trials, result.judgements] == pytest.approx([0.09, 0.04, 0.01], abs=0.012)


def test_what_does_not_repeat_is_none_and_never_0() -> None:
    one_judgement = components({"a": [[1.0], [0.0]], "b": [[1.0], [1.0]]})
    assert (one_judgement.judgements, one_judgement.trials) == (None, 0.25)
    assert components({"a": [[1.0]], "b": [[0.0]]}) == Components(samples=0.5, trials=None, judgements=None)
    assert components({"a": [[1.0], [0.0]]}) == Components(samples=None, trials=0.5, judgements=None)
    assert components({"a": [[1.0, 0.0]]}) == Components(samples=None, trials=None, judgements=0.5)
    assert components({}) == components({"a": [[]]}) == Components(None, None, None)


def test_an_estimate_below_0_is_0() -> None:
    assert components({"a": [[0.0], [1.0]], "b": [[1.0], [0.0]]}).samples == 0.0
