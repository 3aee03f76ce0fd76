"""A model of two replicas on Ray Serve, on a cluster of its own, that keeps the beginnings of prompts as vLLM does.

`serve_app.py PORT ROUTER` serves `/v1/chat/completions` and prints the address of its cluster; it ends with its input.
ROUTER is what the router that looks for beginnings is given, as JSON, or `null` for the usual one. `/counted` tells how
many prompts each replica had.
"""

import json
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import ray
from ray import serve
from ray.llm._internal.serve.routing_policies.prefix_aware.prefix_aware_router import PrefixCacheAffinityRouter
from ray.serve.config import RequestRouterConfig
from starlette.requests import Request

from vivavoce.testing import PrefixCache
from vivavoce.testing.loopback import completion
from vivavoce.testing.prefix_cache import prompt_of

MEMORY = 100_000
VERDICT = {"reasoning": "Fine.", "confidence": 1, "violations": []}


@dataclass
class Asked:
    """A request, with the messages where a router looks for them."""

    messages: list[dict[str, Any]]
    body: dict[str, Any]


class Replica:
    def __init__(self) -> None:
        self.prefixes = PrefixCache(MEMORY)
        self.id = serve.get_replica_context().replica_id.unique_id

    async def chat(self, asked: Asked) -> tuple[str, dict[str, Any]]:
        async with self.prefixes.holding(prompt_of(asked.body)) as (tokens, cached):
            done = completion(VERDICT, asked.body)
        done["usage"] |= {"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": cached}}
        return self.id, done


class Front:
    def __init__(self, model: Any) -> None:
        self.model = model
        self.counted: Counter[str] = Counter()

    async def __call__(self, request: Request) -> Any:
        if request.url.path == "/counted":
            return self.counted
        body = await request.json()
        replica, done = await self.model.chat.remote(Asked(body["messages"], body))
        self.counted[replica] += 1
        return done


def main(port: int, router: dict[str, Any] | None) -> None:
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    routed: dict[str, Any] = {}
    if router is not None:
        looking = RequestRouterConfig(request_router_class=PrefixCacheAffinityRouter, request_router_kwargs=router)
        routed = {"request_router_config": looking}
    most = {"ray_actor_options": {"num_cpus": 0.1}, "max_ongoing_requests": 256}
    model = serve.deployment(num_replicas=2, **most, **routed)(Replica)
    serve.run(serve.deployment(**most)(Front).bind(model.bind()), route_prefix="/")
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]))
