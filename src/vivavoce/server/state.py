"""What the requests of an application share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from fastapi import FastAPI, Request

if TYPE_CHECKING:
    from anyio import CapacityLimiter

    from vivavoce.server.access import Access
    from vivavoce.server.authenticator import Authenticator
    from vivavoce.server.fair_share import FairShare
    from vivavoce.server.jobs import Jobs
    from vivavoce.server.live_summary import LiveSummary
    from vivavoce.server.monitoring import Monitoring
    from vivavoce.server.policy import ServerPolicy
    from vivavoce.server.process_route import RequestProcesses
    from vivavoce.server.webhooks import Sender
    from vivavoce.store.store import Store


@dataclass(slots=True, kw_only=True)
class RequestState:
    """What every request may use; in the process of a single request there is nothing else.

    `secret` signs forms. Such a process opens the `store` only for requests that need it.
    """

    store: Store | None
    policy: ServerPolicy
    secret: bytes


@dataclass(slots=True, kw_only=True)
class ServerState(RequestState):
    """What the requests of a server share; `sender` sends webhooks while the application is served."""

    access: Access
    authenticator: Authenticator
    monitoring: Monitoring
    jobs: Jobs
    live_summary: LiveSummary
    processes: RequestProcesses
    turns: FairShare
    writing_turns: FairShare
    exports: FairShare
    export_threads: CapacityLimiter
    streams: FairShare
    replays: FairShare
    evaluations: CapacityLimiter
    sender: Sender | None = None


def request_state(place: Request | FastAPI) -> RequestState:
    """Return what every request of an application may use."""
    app = place if isinstance(place, FastAPI) else place.app
    return cast("RequestState", app.state.shared)


def server_of(place: Request | FastAPI) -> ServerState:
    """Return what the requests of a server share."""
    return cast("ServerState", request_state(place))


def store_of(place: Request | FastAPI) -> Store:
    """Return the store that an application reads."""
    store = request_state(place).store
    assert store is not None, "this route needs a store"
    return store


def policy_of(request: Request) -> ServerPolicy:
    """Return what requests may run."""
    return request_state(request).policy
