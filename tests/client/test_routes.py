"""Every route of the API is a method of both clients."""

from __future__ import annotations

from fastapi.routing import APIRoute

from vivavoce.client import AsyncClient, Client
from vivavoce.server.app import routers

METHODS: dict[tuple[str, str], str] = {
    ("GET", "/health"): "health",
    ("GET", "/metrics"): "metrics",
    ("GET", "/runs"): "runs",
    ("GET", "/runs/{run}"): "run",
    ("DELETE", "/runs/{run}"): "delete_run",
    ("PATCH", "/runs/{run}"): "remark",
    ("GET", "/runs/{run}/gradings"): "gradings",
    ("GET", "/runs/{run}/samples"): "samples",
    ("GET", "/runs/{run}/errors"): "errors",
    ("GET", "/runs/{run}/groups"): "groups",
    ("GET", "/runs/{run}/scores"): "scores",
    ("GET", "/runs/{run}/export"): "export",
    ("GET", "/runs/{run}/samples/{sample:path}/{trial}"): "conversation",
    ("GET", "/runs/{run}/samples/{sample:path}/{trial}/turns"): "turns",
    ("GET", "/runs/{run}/samples/{sample:path}/{trial}/exchange"): "judge_exchange",
    ("POST", "/runs/{run}/samples/{sample:path}/{trial}/row"): "capture",
    ("GET", "/runs/{run}/labels"): "labels",
    ("GET", "/runs/{run}/labels/agreement"): "agreement",
    ("GET", "/runs/{run}/samples/{sample:path}/{trial}/labels"): "labels_of",
    ("PUT", "/runs/{run}/samples/{sample:path}/{trial}/labels"): "label",
    ("DELETE", "/runs/{run}/samples/{sample:path}/{trial}/labels"): "unlabel",
    ("GET", "/runs/{run}/labels/differing"): "differing_labels",
    ("PUT", "/runs/{run}/samples/{sample:path}/{trial}/decision"): "decide",
    ("DELETE", "/runs/{run}/samples/{sample:path}/{trial}/decision"): "undecide",
    ("GET", "/runs/{run}/calibration"): "calibration",
    ("GET", "/runs/{run}/calibrations"): "calibrations",
    ("POST", "/runs/{run}/calibrations"): "calibrate",
    ("POST", "/label-queues"): "assign",
    ("GET", "/label-queues"): "queues",
    ("GET", "/label-queues/{queue}"): "queue",
    ("GET", "/label-queues/{queue}/items"): "queue_items",
    ("DELETE", "/label-queues/{queue}"): "delete_queue",
    ("GET", "/views"): "views",
    ("POST", "/views"): "save_view",
    ("DELETE", "/views/{view}"): "remove_view",
    ("GET", "/webhooks"): "webhooks",
    ("POST", "/webhooks"): "add_webhook",
    ("GET", "/webhooks/{webhook}/deliveries"): "deliveries",
    ("DELETE", "/webhooks/{webhook}"): "remove_webhook",
    ("GET", "/runs/{run}/comments"): "comments",
    ("GET", "/runs/{run}/samples/{sample:path}/{trial}/comments"): "comments_of",
    ("POST", "/runs/{run}/samples/{sample:path}/{trial}/comments"): "comment",
    ("PUT", "/runs/{run}/comments/{comment}"): "resolve_comment",
    ("DELETE", "/runs/{run}/comments/{comment}"): "remove_comment",
    ("GET", "/runs/{run}/clusters"): "clusters",
    ("POST", "/runs/{run}/clusters/names"): "name_clusters",
    ("GET", "/runs/{run}/fork"): "fork",
    ("GET", "/runs/{run}/forks"): "forks",
    ("GET", "/comparisons"): "compare",
    ("GET", "/comparisons/several"): "compare_several",
    ("GET", "/trends"): "trends",
    ("GET", "/watches"): "watches",
    ("GET", "/watch"): "watched",
    ("GET", "/search"): "search",
    ("GET", "/audit"): "audit",
    ("POST", "/evaluations"): "evaluate",
    ("POST", "/test-results/{run}/{sample:path}/evaluations"): "evaluate_stored",
    ("GET", "/jobs"): "jobs",
    ("POST", "/jobs"): "submit",
    ("GET", "/jobs/{job}"): "job",
    ("DELETE", "/jobs/{job}"): "cancel",
    ("GET", "/jobs/{job}/events"): "events",
}


def test_every_route_of_the_api_is_a_method_of_both_clients() -> None:
    routes = [route for router in routers() for route in router.routes if isinstance(route, APIRoute)]
    routes = [route for route in routes if route.path.startswith("/api/v1")]
    found = {(method, route.path.removeprefix("/api/v1")) for route in routes for method in route.methods or ()}
    assert found == METHODS.keys()
    for name in METHODS.values():
        assert callable(getattr(AsyncClient, name, None)), name
        assert callable(getattr(Client, name, None)), name
