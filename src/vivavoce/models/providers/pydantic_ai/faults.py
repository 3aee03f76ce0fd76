"""What the library raises, as faults."""

from __future__ import annotations

import json

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)

from vivavoce.errors import Fault, ModelFault, RateLimited
from vivavoce.records.score import shorten


def fault_of(error: Exception, name: str) -> Fault:
    """Return the fault that an exception stands for, while the model `name` was asked."""
    if isinstance(error, Fault):
        return error
    if isinstance(error, ModelAPIError):
        return _refused(error, name)
    if isinstance(error, ContentFilterError):
        return ModelFault(f"{name} declined to answer", kind="refusal", evidence=shorten(error.body or str(error)))
    if isinstance(error, UnexpectedModelBehavior):
        return ModelFault(f"{name}: the answer is malformed: {error.message}", kind="format", evidence=error.body)
    if isinstance(error, UserError):
        return ModelFault(f"{name} cannot be asked this: {error}", kind="unsupported")
    return ModelFault(f"asking {name} raised {type(error).__name__}: {error}")


def _refused(error: ModelAPIError, name: str) -> Fault:
    if isinstance(error, ModelTimeoutError | ModelRequestTimeout):
        return ModelFault(f"{name}: no answer within its time", kind="timeout", retryable=True)
    if isinstance(error, ModelConnectionError):
        return ModelFault(f"{name}: the connection broke: {error}", kind="connection", retryable=True)
    evidence = shorten(_text(error.body) if error.body else str(error))
    status = error.status_code if isinstance(error, ModelHTTPError) else None
    message = f"{name} answered {status}" if status else f"{name} refused"
    waits = isinstance(error, ModelUnavailableError) and error.retry_after is not None
    if status is None and type(error) is ModelAPIError:  # without a subclass: the answer could not be read
        return ModelFault(f"{name}: the answer is malformed", kind="format", evidence=evidence)
    if isinstance(error, ModelRateLimitError) or waits:
        wait = error.retry_after
        return RateLimited(message, retry_after=wait, evidence=evidence, blame=ModelFault.blame, status=status)
    may_pass = isinstance(error, ModelUnavailableError | ModelServerError) or (status or 0) >= 500
    return ModelFault(message, kind="http", evidence=evidence, retryable=may_pass, status=status)


def _text(body: object) -> str:
    return body if isinstance(body, str) else json.dumps(body, default=str)
