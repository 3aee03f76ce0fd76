"""`RubricJudge`: a score by a rubric alone, which says what of the sample the judge sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Unpack

from pydantic import BaseModel

from vivavoce.errors import GraderFault, UsageError
from vivavoce.messages import AIMessage, SystemMessage
from vivavoce.metrics.config import MetricConfig
from vivavoce.metrics.evidence import Checker
from vivavoce.metrics.judging import UNCUT_TOKENS
from vivavoce.metrics.prompts import Rubric, Wording, read_rubric
from vivavoce.metrics.question import Piece, Question, Verdict
from vivavoce.metrics.rating import RatingMetric, RatingOptions
from vivavoce.metrics.transcript import Transcript, transcript
from vivavoce.metrics.types import MultiTurnEvaluationInput, Reading
from vivavoce.models.custom import ModelLike
from vivavoce.models.model import Request
from vivavoce.samples.sample import Sample


class RubricJudge(RatingMetric):
    """Scores from 0 to 1 by a rubric, which says itself what the judge sees; a sample's own rubric goes before it.

    The rubric may ask for the `input`, `ground_truth`, `submission` and `conversation`, and for what the sample has in
    `rubric_vars`. It is `kind: model_judge` of a suite.
    """

    template: ClassVar[str] = "judged/rubric_judge.jinja"
    own_variables: ClassVar[frozenset[str]] = frozenset(("rubric",))

    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        rubric: Rubric,
        system_prompt: str | None = None,
        **options: Unpack[RatingOptions],
    ) -> None:
        config = MetricConfig(class_name=type(self).__name__, name="model_judge")
        super().__init__(config, model, **{"tokens": UNCUT_TOKENS, **options})
        self.rubric = rubric
        self.system_prompt = system_prompt

    @property
    def parameters(self) -> Mapping[str, object]:
        """The rubric and the system prompt."""
        return {"rubric": self.rubric.hash, "system_prompt": self.system_prompt}

    def inapplicable(self, metric_input: MultiTurnEvaluationInput) -> str | None:
        """Return None: what an extractor picks can always be judged."""
        del metric_input
        return None

    def variables(self, metric_input: MultiTurnEvaluationInput) -> Mapping[str, object]:
        """Return the rubric with its variables filled.

        Raises:
            GraderFault: the rubric asks for what the sample does not have, or the sample's own cannot be used.
        """
        try:
            rubric, values = self._filling(metric_input)
            return {"rubric": Wording(rubric.render(values))}
        except UsageError as error:
            raise GraderFault(str(error), kind="options") from error

    def questions(self, reading: Reading) -> list[Question]:
        """Return what the judge is asked; its evidence may be in the submission, too."""
        questions, submission = super().questions(reading), reading.metric_input.submission
        if not submission:
            return questions
        messages = [*reading.metric_input.messages, AIMessage(content=submission)]
        checker = Checker(messages, reading.transcript(self.shown))
        return [replace(question, checker=checker) for question in questions]

    def read(self, reply: BaseModel, question: Question) -> Verdict:
        """Return the score of the answer, with the hash of its rubric."""
        rubric, _ = self._filling(question.metric_input)
        return replace(super().read(reply, question), extra={"rubric": rubric.hash})

    def _request(
        self,
        metric_input: MultiTurnEvaluationInput,
        written: Transcript,
        piece: Piece,
        task: str,
        shape: type[BaseModel],
    ) -> Request:
        """Return the question without the conversation, which only the rubric may show."""
        request = super()._request(metric_input, Transcript(), piece, task, shape)
        system, user = request.messages
        text = user.text.lstrip("\n")
        if self.system_prompt is not None:
            system = SystemMessage(content=f"{self.system_prompt}\n\n{system.text}")
        return replace(request, messages=[system, user.model_copy(update={"content": text})])

    def _filling(self, metric_input: MultiTurnEvaluationInput) -> tuple[Rubric, dict[str, Any]]:
        sample = metric_input.sample or Sample.model_construct(id="", ground_truth=metric_input.reference)
        values: dict[str, Any] = {
            **sample.rubric_vars,
            "input": sample.input
            if isinstance(sample.input, str)
            else [message.text for message in sample.user_messages],
            "ground_truth": sample.ground_truth,
            "submission": metric_input.submission or "",
            "conversation": Wording(transcript(metric_input.messages, policy=metric_input.policy).text()),
        }
        if sample.rubric is None:
            return self.rubric, values
        return read_rubric(sample.rubric, set(values), f"the rubric of sample {sample.id}"), values
