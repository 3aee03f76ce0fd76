"""The tester of an experiment: an agent that leads conversations, and the subject of each test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from vivavoce.penelope.agent import PenelopeAgent
from vivavoce.penelope.context import TestContext
from vivavoce.penelope.persona import Persona, persona_for
from vivavoce.samples.sample import Sample


@dataclass(frozen=True, slots=True)
class Tester:
    """An agent, and defaults for samples: a persona or several by their shares, and whether tests are adversarial."""

    __test__: ClassVar[bool] = False
    agent: PenelopeAgent
    persona: str | dict[str, str] | None = None
    adversarial: bool | None = None
    personas: Sequence[tuple[float, Persona]] = ()

    def most_turns(self, sample: Sample) -> int:
        """Return the maximum number of messages that a conversation about a sample sends."""
        return sample.max_turns or self.agent.max_turns

    def context(self, sample: Sample, trial: int = 0) -> TestContext:
        """Return the context of the test of a sample.

        Raises:
            UsageError: the sample names a persona that does not exist.
        """
        choices = (sample.adversarial, self.adversarial, self.agent.setup.strategy.adversarial)
        adversarial = next(one for one in choices if one is not None)
        context = sample.context
        return self.agent.context(
            sample.instructions,
            sample.goal or "",
            scenario=sample.scenario,
            restrictions=sample.restrictions,
            context=context if context is None or isinstance(context, dict) else {"context": context},
            policy=sample.policy,
            persona=sample.persona if sample.persona is not None else self._persona(sample),
            facts=sample.facts,
            must=sample.must,
            must_not=sample.must_not,
            openings=[one.text for one in sample.said],
            adversarial=adversarial,
            max_turns=self.most_turns(sample) + sample.history_turns,
            min_turns=(self.agent.min_turns if sample.min_turns is None else sample.min_turns) + sample.history_turns,
            trial=trial,
        )

    def _persona(self, sample: Sample) -> str | dict[str, str] | Persona | None:
        """Return the persona of a sample without one; it is that of all its trials, so that these ask the same."""
        return persona_for(sample.id, self.personas) if self.personas else self.persona
